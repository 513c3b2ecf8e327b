"""mosquitto_pub and mosquitto_sub, as people use them in a shell."""

import subprocess

from cases import PATIENCE_S, case
from harness import PORT, VERSIONS

OURS = ["-h", "127.0.0.1", "-p", str(PORT)]
MOSQUITTO = {"3.1": "mqttv31", "3.1.1": "mqttv311", "5": "mqttv5"}


def publish(*arguments, **options):
    """What mosquitto_pub says of each packet."""
    command = ["mosquitto_pub", *OURS, "-d", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@case()
def mosquitto_pub_completes_its_handshakes(world):
    topic = world.name()
    client = world.connect()
    client.subscribe(topic, 2)
    for version in VERSIONS:
        for qos, answers in (("0", []), ("1", ["PUBACK"]), ("2", ["PUBREC", "PUBREL", "PUBCOMP"])):
            said = publish("-V", MOSQUITTO[version], "-q", qos, "-t", topic, "-m", f"{version} {qos}")
            assert all(answer in said for answer in answers), said
            got = client.message()
            assert (got.payload, got.qos) == (f"{version} {qos}".encode(), int(qos))


@case()
def mosquitto_sub_gets_what_its_session_collected(world):
    topic, name = world.name(), world.name("mosquitto")
    for version in ("mqttv311", "mqttv5"):
        own = [*OURS, "-V", version, "-i", f"{name}-{version}", "-t", topic, "-q", "2", "-c"]
        own += ["-x", "600"] if version == "mqttv5" else []
        subprocess.run(["mosquitto_sub", *own, "-E"], check=True, timeout=PATIENCE_S)
        lines = [f"line {number}" for number in range(100)]
        publish("-q", "2", "-t", topic, "-l", input="\n".join(lines) + "\n")
        command = ["mosquitto_sub", *own, "-C", "100"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        assert done.stdout.splitlines() == lines
        world.connect(f"{name}-{version}", version="3.1.1")
