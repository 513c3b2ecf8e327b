"""Heart-beats and ends."""

import time

from cases import case
from harness import VERSIONS


@case()
def heart_beats_keep_idle_connections(world):
    client = world.connect(heartbeats=(1_000, 1_000))
    time.sleep(3.5)
    assert client.connection.is_connected()
    queue = f"/queue/{world.name()}"
    client.subscribe(queue)
    client.send(queue, "still there")
    assert client.bodies(1) == ["still there"]
    assert client.got.ends.empty()


@case()
def disconnect_waits_for_all_messages(world):
    for version in VERSIONS:
        queue = f"/queue/{world.name()}"
        client = world.connect(version)
        for number in range(500):
            client.send(queue, str(number), persistent="true")
        client.connection.disconnect(receipt="bye")
        other = world.connect()
        other.subscribe(queue)
        assert other.bodies(500) == [str(number) for number in range(500)]
