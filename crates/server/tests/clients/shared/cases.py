"""What the suites in Python share: cases, the loop that runs them, and the program under test."""

import os
import subprocess
import sys
import traceback

# Another broker than Angarium: what only Angarium has is then skipped.
PEER = os.environ.get("BROKER_TEST_PEER", "")
# The program under test and its data folder, to administer it as an operator does.
PROGRAM = os.environ.get("BROKER_TEST_PROGRAM", "")
DATA = os.environ.get("BROKER_TEST_DATA", "")
# A folder with certificates: authority.pem, ada.pem, ada.key, and eve's, which revoked.pem revokes.
CERTIFICATES = os.environ.get("BROKER_TEST_CERTIFICATES", "")
# The longest wait for anything that must come.
PATIENCE_S = 10.0
# How long nothing must come before it counts as "does not come".
SILENCE_S = 0.2

CASES = []


def case(ours=False, needs=True):
    """Registers a test case; `ours`: only Angarium has what it shows; `needs`: what it needs is there."""

    def register(function):
        reason = f"not offered by {PEER}" if ours and PEER else "" if needs else "the environment lacks it"
        CASES.append((f"{function.__module__}.{function.__name__}", function, reason))
        return function

    return register


def command(*arguments, text=None):
    """Runs a command of the program, with this text as its standard input."""
    whole = [PROGRAM, *arguments]
    result = subprocess.run(
        whole, input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert result.returncode == 0, f"{arguments}: {result.stderr.strip()}"
    return result.stdout


def administer(*arguments, text=None):
    """Runs a command of the program against the running broker."""
    return command(*arguments, "--data", DATA, text=text)


def run(perform):
    """Has `perform` run all cases, or those whose name contains an argument; returns how many failed."""
    failed = 0
    chosen = sys.argv[1:]
    for name, function, reason in CASES:
        if chosen and not any(part in name for part in chosen):
            continue
        if reason:
            print(f"skip {name}: {reason}")
            continue
        try:
            perform(function)
            print(f"pass {name}")
        except Exception as error:  # Whatever it is, it is this case's failure and the suite goes on.
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}")
            traceback.print_exc(limit=-4)
    return failed
