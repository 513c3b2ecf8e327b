"""Bare clients of AMQP 0-9-1 and NATS that can send anything, at any time."""

import socket
import struct


class Closed(Exception):
    """The broker closed the channel or the connection; the text says with which error."""


def short(text):
    """A short string of AMQP."""
    raw = text.encode() if isinstance(text, str) else text
    return bytes([len(raw)]) + raw


def long(raw):
    """A long string of AMQP."""
    raw = raw.encode() if isinstance(raw, str) else raw
    return struct.pack(">I", len(raw)) + raw


def value(item):
    """A field value of AMQP."""
    if isinstance(item, bool):
        return b"t" + bytes([item])
    if isinstance(item, int):
        return b"l" + struct.pack(">q", item)
    if isinstance(item, str):
        return b"S" + long(item)
    if isinstance(item, dict):
        return b"F" + table(item)
    raise TypeError(item)


def table(items):
    """A field table of AMQP."""
    return long(b"".join(short(name) + value(item) for name, item in items.items()))


def frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(channel, class_id, method_id, fields=b""):
    return frame(1, channel, struct.pack(">HH", class_id, method_id) + fields)


def header(channel, size, flags=0, properties=b""):
    return frame(2, channel, struct.pack(">HHQH", 60, 0, size, flags) + properties)


def body(channel, part):
    return frame(3, channel, part)


def publish(exchange, key, content, channel=1):
    """The frames of a whole message."""
    fields = b"\0\0" + short(exchange) + short(key) + b"\0"
    parts = [content[at : at + 131000] for at in range(0, len(content), 131000)]
    frames = [method(channel, 60, 40, fields), header(channel, len(content))]
    return b"".join(frames + [body(channel, part) for part in parts])


class Amqp:
    """A connection of AMQP, logged in."""

    def __init__(self, port, user="guest", password="guest", timeout=20.0, heartbeat=0, receive_bytes=0):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.buffer = b""
        self.send(b"AMQP\0\0\x09\x01")
        self.expect(10, 10)
        capabilities = {"connection.blocked": True, "consumer_cancel_notify": True}
        login = short("PLAIN") + long(b"\0" + user.encode() + b"\0" + password.encode()) + short("en_US")
        self.send(method(0, 10, 11, table({"capabilities": capabilities}) + login))
        self.expect(10, 30)
        self.send(method(0, 10, 31, struct.pack(">HIH", 2047, 131072, heartbeat)))
        self.send(method(0, 10, 40, short("/") + short("") + b"\0"))
        self.expect(10, 41)

    def send(self, raw):
        self.socket.sendall(raw)

    def read(self, count):
        while len(self.buffer) < count:
            more = self.socket.recv(65536)
            if not more:
                raise Closed("the broker closed the transport")
            self.buffer += more
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def frame(self):
        kind, channel, size = struct.unpack(">BHI", self.read(7))
        return kind, channel, self.read(size + 1)[:-1]

    def method(self):
        """The next method, with its numbers and its fields; contents and heartbeats are passed over."""
        while True:
            kind, _, payload = self.frame()
            if kind == 1:
                return struct.unpack(">HH", payload[:4]), payload[4:]

    def expect(self, class_id, method_id):
        """The fields of the next method, which has to be that one."""
        numbers, fields = self.method()
        while numbers in ((10, 60), (10, 61)):
            numbers, fields = self.method()
        if numbers in ((10, 50), (20, 40)):
            (code,) = struct.unpack(">H", fields[:2])
            raise Closed(f"{code} {fields[3 : 3 + fields[2]].decode(errors='replace')}")
        if numbers != (class_id, method_id):
            raise Closed(f"method {numbers} came where {(class_id, method_id)} should have")
        return fields

    def closed_with(self):
        """The error with which the broker closes a channel or the connection, or closes the transport."""
        try:
            while True:
                self.expect(0, 0)
        except Closed as error:
            if str(error).startswith("method "):
                return self.closed_with()
            return str(error)
        except OSError as error:
            return str(error)

    def open(self, channel=1):
        self.send(method(channel, 20, 10, short("")))
        self.expect(20, 11)

    def queue(self, name, channel=1, bits=0, arguments=None):
        self.send(method(channel, 50, 10, b"\0\0" + short(name) + bytes([bits]) + table(arguments or {})))
        self.expect(50, 11)

    def consume(self, queue, channel=1, no_ack=True):
        fields = b"\0\0" + short(queue) + short("") + bytes([2 * no_ack]) + table({})
        self.send(method(channel, 60, 20, fields))
        self.expect(60, 21)

    def delivered(self):
        """The body of the next delivery."""
        while True:
            numbers, _ = self.method()
            if numbers == (60, 60):
                break
        _, _, head = self.frame()
        (size,) = struct.unpack(">Q", head[4:12])
        content = b""
        while len(content) < size:
            content += self.frame()[2]
        return content

    def close(self):
        self.socket.close()


class Nats:
    """A connection of NATS, logged in."""

    def __init__(self, port, user=None, password=None, timeout=20.0, receive_bytes=0):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.buffer = b""
        self.line()
        login = f',"user":"{user}","pass":"{password}"' if user else ""
        self.send(f'CONNECT {{"verbose":false,"headers":true{login}}}\r\nPING\r\n'.encode())
        while self.line() != b"PONG":
            pass

    def send(self, raw):
        self.socket.sendall(raw)

    def line(self):
        while b"\r\n" not in self.buffer:
            more = self.socket.recv(65536)
            if not more:
                raise Closed("the broker closed the transport")
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        if line.startswith(b"-ERR"):
            raise Closed(line.decode(errors="replace"))
        return line

    def close(self):
        self.socket.close()
