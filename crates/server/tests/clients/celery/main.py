"""Cases of Celery, with a worker of its own, against the broker at AMQP_URL; exits with 1 if one fails.

Nothing is configured but the URL: what is shown is what a program gets that was written for RabbitMQ.
"""

import os
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager

os.environ["CELERY_QUEUE"] = f"celery-{uuid.uuid4().hex[:8]}"

import cases  # noqa: E402  (the queue's name comes first)
from cases import PATIENCE_S, case  # noqa: E402
from celery import chain, group  # noqa: E402
from tasks import URL, add, app, echo, fail, flaky  # noqa: E402

# How long a worker may take to start.
START_S = 6 * PATIENCE_S


@contextmanager
def worker(*options):
    """A worker of one thread, ready to work."""
    name = f"w-{uuid.uuid4().hex[:8]}@here"
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-n", name]
    here = os.path.dirname(os.path.abspath(__file__))
    options = ["-c", "1", "-P", "threads", "-l", "warning", *options]
    process = subprocess.Popen([*command, *options], cwd=here)
    try:
        assert echo.delay("ready").get(timeout=START_S) == "ready"
        yield name
    finally:
        process.terminate()
        code = process.wait(timeout=START_S)
        # What it had not finished is back in its queue.
        app.control.purge()
    assert code == 0, f"the worker ended with {code}"


@case()
def tasks_that_wait_for_their_time_do_not_hold_up_others():
    with worker():
        # More than its prefetch of 4: it raises that with each.
        later = [echo.apply_async((number,), countdown=3600) for number in range(8)]
        time.sleep(1)
        assert echo.delay("now").get(timeout=PATIENCE_S) == "now"
        soon = [echo.apply_async((number,), countdown=1) for number in range(8)]
        assert [task.get(timeout=PATIENCE_S) for task in soon] == list(range(8))
    assert len(later) == 8


@case()
def results_errors_and_retries_come_back():
    with worker():
        assert echo.delay({"a": [1, None, "ü"]}).get(timeout=PATIENCE_S) == {"a": [1, None, "ü"]}
        try:
            fail.delay("because").get(timeout=PATIENCE_S)
        except ValueError as error:
            assert str(error) == "because"
        else:
            raise AssertionError("it did not fail")
        assert flaky.delay(2).get(timeout=PATIENCE_S) == 2
        many = group(echo.s(number) for number in range(50))()
        assert many.get(timeout=PATIENCE_S) == list(range(50))
        assert chain(add.s(1, 2), add.s(3))().get(timeout=PATIENCE_S) == 6


@case()
def a_worker_answers_its_remote_control():
    with worker() as name:
        inspect = app.control.inspect(destination=[name], timeout=PATIENCE_S)
        assert inspect.ping() == {name: {"ok": "pong"}}
        assert sorted(inspect.registered()[name]) == ["add", "echo", "fail", "flaky"]
        # Broadcast by a fanout exchange; it answers to a queue that expires.
        assert app.control.ping(timeout=1)
        stats = inspect.stats()[name]
        assert stats["prefetch_count"] == 4, stats["prefetch_count"]


@case()
def tasks_wait_for_a_worker_and_survive_it():
    result = echo.apply_async(("early",))
    with worker():
        assert result.get(timeout=PATIENCE_S) == "early"
    with app.connection_for_read() as connection:
        counted = connection.default_channel.queue_declare(os.environ["CELERY_QUEUE"], passive=True)
    assert counted.message_count == 0, counted


@case()
def tasks_move_between_queues_by_priority():
    from kombu import Queue

    urgent = Queue(f"{os.environ['CELERY_QUEUE']}-p", queue_arguments={"x-max-priority": 9})
    with app.connection_for_write() as connection:
        urgent(connection.default_channel).declare()
    for priority in (1, 9, 5):
        echo.apply_async((priority,), queue=urgent, priority=priority)
    with app.connection_for_read() as connection:
        taken = []
        with connection.SimpleQueue(urgent) as queue:
            for _ in range(3):
                message = queue.get(timeout=PATIENCE_S)
                taken.append(message.payload[0][0])
                message.ack()
    assert taken == [9, 5, 1], taken


print(f"broker: {URL}, queue {os.environ['CELERY_QUEUE']}")
sys.exit(1 if cases.run(lambda body: body()) else 0)
