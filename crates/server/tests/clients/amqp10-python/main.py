"""Cases of Qpid Proton and RabbitMQ's client against the broker at AMQP_URL; exits with 1 if one fails."""

import sys

import beside_amqp091  # noqa: F401  (each module registers its cases)
import management  # noqa: F401
import messages  # noqa: F401
import rabbitmq  # noqa: F401
import subscriptions  # noqa: F401
import tls  # noqa: F401
import transactions  # noqa: F401
from harness import run

sys.exit(1 if run() else 0)
