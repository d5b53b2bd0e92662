"""A hub behind a real server, and pages that read what it sends, for tests and benchmarks."""

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections import deque
from pathlib import Path

import numpy as np
import uvicorn
import websockets
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

from spectrod.apps.web.hub import Hub
from spectrod.apps.web.limits import Limits

TIMEOUT_S = 30.0
_MESSAGE = struct.Struct("<BBHI")
_BLOCK = struct.Struct("<HHHHII")
_ROW = struct.Struct("<IIHHIdd")


def make_hub(*endpoints, limits=None):
    return Hub(
        endpoints,
        server_key=None,
        key_file=None,
        limits=limits or Limits(),
        history=False,
        can_control=False,
    )


@contextlib.asynccontextmanager
async def served(hub):
    """Serve a hub at a free port of this machine; yield the address of its WebSocket."""

    async def stream(websocket):
        await websocket.accept()
        await hub.serve(websocket)

    app = Starlette(routes=[WebSocketRoute("/api/stream", stream)])
    config = uvicorn.Config(
        app, log_config=None, lifespan="off", ws_per_message_deflate=False, ws_max_size=16384
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with asyncio.timeout(TIMEOUT_S * 4):
            running = asyncio.create_task(hub.run())
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield f"ws://127.0.0.1:{port}/api/stream"
            finally:
                server.should_exit = True
                await serving
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


class Page:
    """A page that acknowledges what it receives, and keeps texts and rows."""

    def __init__(self, connection):
        self._connection = connection
        self.texts = deque(maxlen=1000)
        self.descriptions = {}
        self.rows = deque(maxlen=1000)
        self.acknowledges = True
        self.received_bytes = 0

    async def say(self, op, **fields):
        await self._connection.send(json.dumps({"op": op, **fields}))

    async def view(self, *streams, generation=1, **fields):
        await self.say("view", generation=generation, streams=list(streams), **fields)

    async def next(self):
        """Receive one message; return its text, or None for rows."""
        message = await asyncio.wait_for(self._connection.recv(), TIMEOUT_S)
        self.received_bytes += len(message)
        if isinstance(message, str):
            text = json.loads(message)
            self.texts.append(text)
            if text["op"] == "stream":
                self.descriptions[text["id"], text["generation"] & 0xFFFF] = text
            return text
        number, rows = decode(message)
        self.rows += rows
        if self.acknowledges:
            await self.say("ack", message=number)
        return None

    async def text(self, op, condition=bool):
        """Receive until a text comes of which a condition is true."""
        while True:
            text = await self.next()
            if text is not None and text["op"] == op and condition(text):
                return text

    async def row(self, condition=bool):
        """Receive until a row comes of which a condition is true."""
        while True:
            while self.rows:
                row = self.rows.popleft()
                if condition(row):
                    return row
            await self.next()

    async def topic(self, name):
        """Return the number of a topic once it is listed."""

        def numbers(text):
            return [one["id"] for one in text["topics"] if one["topic"] == name]

        for text in reversed(self.texts):
            if text["op"] == "topics" and numbers(text):
                return numbers(text)[0]
        return numbers(await self.text("topics", numbers))[0]

    def describe(self, row):
        return self.descriptions[row["stream"], row["generation"]]

    def levels(self, row):
        """Return the levels of a row [dB], NaN for no data."""
        described = self.describe(row)
        values = row["values"]
        if described["bits"] == 8:
            return np.where(values == 0, np.nan, described["lo"] + (values - 1.0) * 0.5)
        return np.where(values == 65535, np.nan, described["lo"] + values * described["step"])

    def hertz(self, row):
        """Return the first and the last frequency of each value's bins [Hz]."""
        described = self.describe(row)
        first, last = [], []
        for piece in described["slices"]:
            start = piece["first"] + piece["per_value"] * np.arange(piece["values"])
            first.append(start)
            last.append(np.minimum(start + piece["per_value"], described["n_bins"]) - 1)
        bins = np.concatenate(first), np.concatenate(last)
        return [described["first_hz"] + k * described["bin_hz"] for k in bins]


def decode(message):
    """Decode a binary message by the text of the protocol; return its number and its rows."""
    version, kind, n_blocks, number = _MESSAGE.unpack_from(message)
    assert (version, kind) == (1, 1)
    at, rows = _MESSAGE.size, []
    for _ in range(n_blocks):
        stream, generation, n_rows, bits, n_values, dropped = _BLOCK.unpack_from(message, at)
        at += _BLOCK.size
        names = ("seq", "missed", "merged", "flags", "zero", "t_ms", "gap_samples")
        found = [
            dict(zip(names, _ROW.unpack_from(message, at + k * _ROW.size), strict=True))
            for k in range(n_rows)
        ]
        at += n_rows * _ROW.size
        values = np.frombuffer(message, f"<u{bits // 8}", n_rows * n_values, at)
        at += values.nbytes + -values.nbytes % 4
        about = {"stream": stream, "generation": generation, "client_dropped": dropped}
        rows += [
            one | about | {"values": row}
            for one, row in zip(found, values.reshape(n_rows, n_values), strict=True)
        ]
    assert at == len(message)
    return number, rows


@contextlib.asynccontextmanager
async def opened(address):
    """Open a page at an address."""
    async with websockets.connect(address, compression=None, max_size=None) as connection:
        yield Page(connection)


async def open_silent(address, streams):
    """Open a page that shows streams and never reads what comes; return its socket."""
    loop = asyncio.get_running_loop()
    host, _, path = address.removeprefix("ws://").partition("/")
    name, _, port = host.partition(":")
    connection = socket.socket()
    connection.settimeout(0.0)
    await loop.sock_connect(connection, (name, int(port)))
    lines = [
        f"GET /{path} HTTP/1.1",
        f"Host: {host}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]
    await loop.sock_sendall(connection, "\r\n".join([*lines, "", ""]).encode())
    answer = await loop.sock_recv(connection, 32)
    assert answer.startswith(b"HTTP/1.1 101"), answer
    text = json.dumps({"op": "view", "generation": 1, "streams": streams}).encode()
    frame = struct.pack("!BBH", 0x81, 0x80 | 126, len(text)) + bytes(4) + text
    await loop.sock_sendall(connection, frame)
    return connection


def resident_bytes():
    """Return the memory of this process [bytes]."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def wish(topic_id, **fields):
    """Return a stream of a view."""
    return {"id": 1, "topic_id": topic_id, "f0": 0, "f1": 24000, "px": 1200} | fields
