"""Every case of nats.py against the broker at NATS_URL; exits with 1 if one fails."""

import sys

import access  # noqa: F401  (each module registers its cases)
import basic  # noqa: F401
import bridge  # noqa: F401
import errors  # noqa: F401
import slow_consumers  # noqa: F401
import life  # noqa: F401
import requests  # noqa: F401
import tls  # noqa: F401
from harness import run

sys.exit(1 if run() else 0)
