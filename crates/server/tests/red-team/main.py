"""Small, bounded versions of attacks on the real program; exits with 1 if one of them does harm."""

import sys

import logins  # noqa: F401  (each module registers its cases)
import memory  # noqa: F401
import patterns  # noqa: F401
from attack import run

sys.exit(1 if run() else 0)
