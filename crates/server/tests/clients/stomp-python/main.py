"""Every case of stomp.py against the broker at BROKER_TEST_STOMP_PORT; exits with 1 if one fails."""

import sys

import acknowledgements  # noqa: F401  (each module registers its cases)
import bridge  # noqa: F401
import crash  # noqa: F401
import errors  # noqa: F401
import life  # noqa: F401
import messages  # noqa: F401
import subscriptions  # noqa: F401
from harness import run

sys.exit(1 if run() else 0)
