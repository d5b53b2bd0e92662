"""What pages cost: processor share and bytes of ``spectrod web`` with many clients.

    python benchmarks/bench_web.py [--clients 20] [--channels 4] [--bins 4096] [--rows 50]
        [--seconds 20] [--px 1200] [--past] [--json FILE]

A publisher sends made-up rows of all channels; each client shows all of them as bytes on a log axis
and acknowledges what it gets. The server is a process of its own, whose processor time is read; the
publisher and the clients are others. Correctness is asserted: no client may lose a row. With
``--past`` somebody also asks for the past of all channels, always another minute of it, so that all
that the server keeps is used.
"""

import argparse
import asyncio
import contextlib
import http.client
import itertools
import json
import os
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import websockets
import zmq
from _report import new_report, write_report

from spectrod.wire.schema import Frame, Meta, MetaHeader, SpectrumHeader, encode

_TICKS_S = os.sysconf("SC_CLK_TCK")
_START_S = 60.0
_WARM_UP_S = 3.0
_PAST_S = 0.3
_ORIGIN = "http://127.0.0.1:{port}"


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--bins", type=int, default=4096)
    parser.add_argument("--rows", type=float, default=50.0, help="of each channel a second")
    parser.add_argument("--px", type=int, default=1200, help="width of each view")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--past", action="store_true", help="ask for the past meanwhile")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("web")
    with Rows(args.channels, args.bins, args.rows) as rows, served(rows.endpoint) as (pid, port):
        report["results"] = [asyncio.run(_measure(args, pid, port))]
    for result in report["results"]:
        print(", ".join(f"{key}: {value}" for key, value in result.items()))
    if args.json:
        write_report(report, args.json)


class Rows:
    """A publisher of channels with noise and a tone, each a fixed set of rows again and again."""

    def __init__(self, channels: int, bins: int, rows_s: float) -> None:
        self._socket = zmq.Context.instance().socket(zmq.PUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self.endpoint = f"tcp://127.0.0.1:{self._socket.bind_to_random_port('tcp://127.0.0.1')}"
        self._channels, self._bins, self._rows_s = channels, bins, rows_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        rng = np.random.default_rng(1)
        self._values = rng.normal(-110.0, 5.6, (16, bins)).astype(np.float32)
        self._values[:, bins // 10] = -20.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        start_s, seq = time.monotonic(), 0
        while not self._stopped.wait(max(0.0, start_s + seq / self._rows_s - time.monotonic())):
            for channel in range(self._channels):
                if seq % round(self._rows_s) == 0:
                    self._socket.send_multipart(encode(self._meta(channel, seq)))
                self._socket.send_multipart(encode(self._frame(channel, seq)))
            seq += 1

    def _analysis(self, seq: int) -> dict[str, Any]:
        nfft = 2 * (self._bins - 1)
        return {
            "seq": seq,
            "epoch": 1,
            "t_utc_ns": time.time_ns(),
            "fs": 48000.0,
            "win_length": nfft,
            "nfft": nfft,
            "hop": round(48000 / self._rows_s),
            "window": "hann",
            "enbw_hz": 1.5 * 48000 / nfft,
            "shape": (self._bins,),
            "unit": "dBFS",
            "ref": "0 dBFS = full-scale sine",
            "engine": "numpy",
        }

    def _meta(self, channel: int, seq: int) -> Meta:
        header = MetaHeader(device="made up", channels=self._channels, **self._analysis(seq))
        hertz = np.linspace(0.0, 24000.0, self._bins)
        return Meta(f"meta/mic/{channel}/dbfs/", header, hertz)

    def _frame(self, channel: int, seq: int) -> Frame:
        header = SpectrumHeader(t_mono_ns=0, sample_index=0, **self._analysis(seq))
        return Frame(f"spec/mic/{channel}/dbfs/", header, self._values[seq % 16])


class Client:
    """A page without a picture: it counts rows and bytes, and acknowledges each message."""

    def __init__(self) -> None:
        self.n_bytes = self.n_messages = self.n_rows = self.dropped = 0
        self.has_rows = asyncio.Event()

    async def run(self, port: int, args: argparse.Namespace) -> None:
        """Show all channels until cancelled."""
        url, origin = f"ws://127.0.0.1:{port}/api/stream", _ORIGIN.format(port=port)
        async with websockets.connect(url, origin=origin, compression=None) as connection:
            while True:
                message = await connection.recv()
                self.n_bytes += len(message)
                if isinstance(message, bytes):
                    self._count(message)
                    (number,) = struct.unpack_from("<I", message, 4)
                    await connection.send(json.dumps({"op": "ack", "message": number}))
                elif '"op":"topics"' in message:
                    view = _view(json.loads(message)["topics"], args)
                    await connection.send(json.dumps(view))

    def _count(self, message: bytes) -> None:
        self.n_messages += 1
        self.has_rows.set()
        at = 8
        for _ in range(struct.unpack_from("<H", message, 2)[0]):
            _, _, rows, bits, values, self.dropped = struct.unpack_from("<HHHHII", message, at)
            self.n_rows += rows
            n_bytes = rows * values * bits // 8
            at += 16 + 32 * rows + n_bytes + -n_bytes % 4


def _view(topics: list[dict[str, Any]], args: argparse.Namespace) -> dict[str, Any]:
    shown = {"f0": 20, "f1": 24000, "px": args.px, "axis": "log", "rows_s": 200, "bits": 8}
    streams = [shown | {"id": k, "topic_id": one["id"]} for k, one in enumerate(topics)]
    return {"op": "view", "generation": 1, "streams": streams}


async def _ask_for_the_past(port: int, args: argparse.Namespace) -> None:
    """Ask for a minute of each channel, another one each time, until cancelled."""
    for n in itertools.count():
        t1 = round(time.time() * 1e3) - 2000 - 100 * n
        for topic in range(args.channels):
            asked = {"topic": topic, "t0": t1 - 60_000, "t1": t1, "f0": 20, "f1": 24000}
            asked |= {"w": 256, "h": args.px, "axis": "log", "step": 0.1, "layers": "max"}
            await asyncio.to_thread(_fetch, port, f"/api/history?{urllib.parse.urlencode(asked)}")
        await asyncio.sleep(_PAST_S)


def _fetch(port: int, path: str) -> bytes:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        return answer.read()


@contextlib.contextmanager
def served(endpoint: str) -> Iterator[tuple[int, int]]:
    """Run the server; yield its process and its port."""
    command = [sys.executable, "-m", "spectrod", "web", endpoint, "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.pid, int(server.stdout.readline().rstrip().rstrip("/").rpartition(":")[2])
    finally:
        server.terminate()
        server.wait(10)


async def _measure(args: argparse.Namespace, pid: int, port: int) -> dict[str, Any]:
    clients = [Client() for _ in range(args.clients)]
    tasks = [asyncio.create_task(one.run(port, args)) for one in clients]
    async with asyncio.timeout(_START_S):
        await asyncio.gather(*(one.has_rows.wait() for one in clients))
    if args.past:
        tasks.append(asyncio.create_task(_ask_for_the_past(port, args)))
    await asyncio.sleep(_WARM_UP_S)
    before, begin_s, start_s = _counts(clients), cpu_s(pid), time.monotonic()
    await asyncio.sleep(args.seconds)
    seconds = time.monotonic() - start_s
    used_s, after, memory = cpu_s(pid) - begin_s, _counts(clients), memory_mb(pid)
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    failed = [end for end in ends if not isinstance(end, asyncio.CancelledError)]
    assert not failed, failed
    assert not sum(one.dropped for one in clients), "rows were dropped"
    n_bytes, n_messages, n_rows = np.subtract(after, before) / seconds / args.clients
    expected = args.channels * args.rows
    assert abs(n_rows / expected - 1.0) < 0.02, f"{n_rows:.1f} of {expected:g} rows a second"
    asked = {
        name: getattr(args, name) for name in ("clients", "channels", "bins", "rows", "px", "past")
    }
    return asked | {
        "processor_share": round(used_s / seconds, 3),
        "client_bytes_s": round(n_bytes),
        "client_messages_s": round(n_messages, 1),
        "client_rows_s": round(n_rows, 1),
        "memory_mb": memory,
    }


def _counts(clients: list[Client]) -> Any:
    counts = [(one.n_bytes, one.n_messages, one.n_rows) for one in clients]
    return np.sum(counts, axis=0)


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_S


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process [MB]."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


if __name__ == "__main__":
    main()
