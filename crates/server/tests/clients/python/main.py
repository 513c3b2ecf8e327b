"""Every case of pika against the broker at AMQP_URL; exits with 1 if one fails."""

import sys

import access  # noqa: F401  (each module registers its cases)
import basic  # noqa: F401
import confirms  # noqa: F401
import consumers  # noqa: F401
import contents  # noqa: F401
import damage  # noqa: F401
import dead_letters  # noqa: F401
import delayed  # noqa: F401
import durability  # noqa: F401
import errors  # noqa: F401
import exchanges  # noqa: F401
import full_disk  # noqa: F401
import limits  # noqa: F401
import queues  # noqa: F401
import replies  # noqa: F401
import tls  # noqa: F401
import transactions  # noqa: F401
from harness import run

sys.exit(1 if run() else 0)
