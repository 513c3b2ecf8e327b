"""What the attacks share: how a case is registered, and what must hold after each.

A case is one function in a file of its subject, which `main.py` imports:

    @attack(settings=["--memory-max", "64MiB"], grows_mb_max=100)
    def a_name_that_says_what_must_hold(broker, innocent):
        ...the attack...
        assert ...what it is answered...

It gets a fresh broker and innocent clients. While it runs and when it returns, the broker must live, must not
have more memory than it had before and `grows_mb_max`, and must serve the innocent. No case measures time.
"""

import sys
import threading
import traceback

from broker import Broker
from innocent import Innocent

CASES = []


def attack(settings=(), grows_mb_max=150, addresses_mb=None):
    """Registers a case: the broker's settings, how many MB of memory it may have more than before, and how
    many MB of addresses the system gives it."""

    def register(function):
        name = f"{function.__module__}.{function.__name__}"
        CASES.append((name, function, settings, grows_mb_max, addresses_mb))
        return function

    return register


class Watch:
    """How much memory the broker had at most."""

    def __init__(self, broker):
        self.broker, self.most, self.stopped = broker, broker.resident_mb(), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopped.wait(0.02) and self.broker.is_alive():
            try:
                self.most = max(self.most, self.broker.resident_mb())
            except (OSError, AssertionError):
                return

    def end(self):
        self.stopped.set()
        self.thread.join()
        return self.most


def perform(function, settings, grows_mb_max, addresses_mb):
    """Runs one case; returns by how many MB the broker grew at most."""
    broker = Broker(*settings, addresses_mb=addresses_mb)
    try:
        innocent = Innocent(broker)
        try:
            innocent.must_be_served()
            before = broker.resident_mb()
            watch = Watch(broker)
            try:
                function(broker, innocent)
            finally:
                grown = watch.end() - before
            assert broker.is_alive(), f"the broker died: {broker.errors[-3:]}"
            innocent.must_be_served()
            assert grown <= grows_mb_max, f"the broker grew by {grown} MB, {grows_mb_max} are allowed"
            panics = [line for line in broker.errors if "panicked" in line]
            assert not panics, panics
            return grown
        finally:
            innocent.end()
    finally:
        broker.end()


def run():
    """Runs all cases, or those whose name contains an argument; returns how many failed."""
    failed = 0
    chosen = sys.argv[1:]
    for name, function, *conditions in CASES:
        if chosen and not any(part in name for part in chosen):
            continue
        try:
            grown = perform(function, *conditions)
            print(f"pass {name} (+{grown} MB)")
        except Exception as error:  # Whatever it is, it is this case's failure and the others go on.
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}")
            traceback.print_exc(limit=-4)
    return failed
