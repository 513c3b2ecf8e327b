"""The broker under attack: the real program, with its own data folder, ports and limits."""

import os
import shutil
import subprocess
import tempfile
import threading

PROGRAM = os.environ.get("BROKER_TEST_PROGRAM", "target/release/angarium")
PATIENCE_S = 30.0


class Broker:
    """A running broker; ports are those that the system chose."""

    def __init__(self, *settings, addresses_mb=None):
        """`addresses_mb`: how many MB of addresses the system gives it."""
        self.addresses_mb = addresses_mb
        self.data = tempfile.mkdtemp(prefix="angarium-red-team-")
        self.settings = settings
        self.start()

    def start(self):
        """Starts it, or starts it again, and waits until it listens."""
        any_port = "127.0.0.1:0"
        listeners = ["--amqp", any_port, "--nats", any_port, "--stomp", any_port, "--http", any_port]
        listeners += ["--mqtt", any_port]
        command = [PROGRAM, "serve", "--data", self.data, *listeners, *self.settings]
        if self.addresses_mb:
            command = ["prlimit", f"--as={self.addresses_mb << 20}", *command]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        self.errors = []
        threading.Thread(target=self._keep_errors, args=(self.process.stderr,), daemon=True).start()
        self.ports = {}
        for line in self.process.stdout:
            name, _, address = line.strip().partition(" on ")
            if line.startswith("Try next"):
                break
            if ":" in address:
                self.ports[name] = int(address.rpartition(":")[2])
        else:
            raise AssertionError(f"the broker ended at its start: {self.errors[-3:]}")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.amqp, self.nats, self.http = (self.ports[name] for name in ("amqp", "nats", "http"))

    def _keep_errors(self, stream):
        for line in stream:
            self.errors.append(line.rstrip())
            del self.errors[:-50]

    def command(self, *arguments, given=None):
        """Runs a command of the program against it; returns what it prints."""
        whole = [PROGRAM, *arguments, "--data", self.data]
        result = subprocess.run(
            whole, capture_output=True, text=True, input=given, timeout=PATIENCE_S, check=False
        )
        assert result.returncode == 0, f"{arguments}: {result.stderr.strip()}"
        return result.stdout

    def add_user(self, name, configure=".*", write=".*", read=".*"):
        """Adds a user with the password `pw` and these rights."""
        self.command("user", "add", name, given="pw\n")
        rights = ["--configure", configure, "--write", write, "--read", read]
        self.command("permission", "set", name, *rights)

    def resident_mb(self):
        """How much memory it has from the system."""
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) // 1024
        raise AssertionError("the broker is gone")

    def is_alive(self):
        return self.process.poll() is None

    def end(self):
        """Kills it and removes its data."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.data, ignore_errors=True)
