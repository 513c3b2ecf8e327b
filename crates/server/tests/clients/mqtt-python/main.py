"""Every case of paho-mqtt against the broker at BROKER_TEST_MQTT_PORT; exits with 1 if one fails."""

import sys

import bridge  # noqa: F401  (each module registers its cases)
import broker_topics  # noqa: F401
import messages  # noqa: F401
import mosquitto  # noqa: F401
import retained  # noqa: F401
import sessions  # noqa: F401
from harness import run

sys.exit(1 if run() else 0)
