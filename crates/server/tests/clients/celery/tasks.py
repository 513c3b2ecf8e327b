"""The application of the Celery cases: what its workers run."""

import os

from celery import Celery

URL = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2f").replace("/%2f", "//")

app = Celery("tasks", broker=URL, backend="rpc://")
# Nothing is set that a first program would not set, but for what tells two runs apart and what worker it is.
app.conf.update(
    task_default_queue=os.environ.get("CELERY_QUEUE", "celery"),
    broker_connection_retry_on_startup=True,
)


@app.task(name="echo")
def echo(value):
    """The value."""
    return value


@app.task(name="fail")
def fail(why):
    """Raises."""
    raise ValueError(why)


@app.task(name="flaky", bind=True, max_retries=3, default_retry_delay=0.1)
def flaky(self, successes_after):
    """Succeeds after so many attempts."""
    if self.request.retries < successes_after:
        raise self.retry()
    return self.request.retries


@app.task(name="add")
def add(one, other):
    """The sum."""
    return one + other
