"""Cost of encryption: a real publisher, with and without CURVE, to one reader and to four.

    python benchmarks/curve_throughput.py [--megabytes 80] [--rounds 5] [--json FILE]

A ``Publisher`` sends spectra of 8 KB and of 64 KB as fast as it can over TCP on this machine; each
reader is a process of its own that receives them. All four pairs are run in turns, several rounds,
and a pair's ratio is the median of its rounds' ratios. Asserted for each reader: every message has
arrived, in order. Shares of a core are those of the publisher's process, encryption included.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import zmq
from _report import new_report, write_report

from spectrod.client.connection import Connection, Credentials, read_credentials
from spectrod.config.settings import SecurityConfig
from spectrod.daemon.access.access import Access
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.stats import Stats
from spectrod.wire.endpoint import parse_remote
from spectrod.wire.keys import make_keys

_NFFT = {"8 KB": 4096, "64 KB": 32768}
_READERS = (1, 4)
_WAIT_S = 60.0
_FRAMES_A_BATCH = 64


class _Seen(msgspec.Struct):
    seq: int


class _Run(NamedTuple):
    """Results of one run."""

    seconds: float
    """From a reader's first message to its last, of the slowest."""
    cpu_seconds: float
    """Of the publisher's process."""


def main() -> None:
    """Run all pairs in turns, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=80.0, help="of spectra, for each reader")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("curve throughput")
    with tempfile.TemporaryDirectory() as folder:
        security, credentials = _make_keys(Path(folder))
        for size, nfft in _NFFT.items():
            for n_readers in _READERS:
                spec = SpectrumSpec(fs=48000.0, win_length=nfft, hop=nfft, scaling="dbfs")
                n_messages = round(args.megabytes * 1e6 / (4 * spec.n_values))
                runs: dict[str, list[_Run]] = defaultdict(list)
                for _ in range(args.rounds):
                    plain = _measure(spec, n_messages, n_readers, SecurityConfig(), None)
                    curve = _measure(spec, n_messages, n_readers, security, credentials)
                    runs["plain"].append(plain)
                    runs["curve"].append(curve)
                result = _summary(size, n_readers, n_messages, 4 * spec.n_values, runs)
                report["results"].append(result)
                print(", ".join(f"{key}: {value}" for key, value in result.items()), flush=True)
    if args.json:
        write_report(report, args.json)


def _make_keys(folder: Path) -> tuple[SecurityConfig, Credentials | None]:
    public, secret = make_keys(folder / "server", "server", "read")
    _, client = make_keys(folder / "clients", "reader", "read")
    security = SecurityConfig(str(secret), str(folder / "clients"), "always")
    return security, read_credentials(public, client)


def _summary(
    size: str, n_readers: int, n_messages: int, n_bytes: int, runs: dict[str, list[_Run]]
) -> dict[str, Any]:
    def rate(run: _Run) -> float:
        return (n_messages - 1) / run.seconds

    pairs = list(zip(runs["plain"], runs["curve"], strict=True))
    result: dict[str, Any] = {"payload": size, "readers": n_readers, "messages": n_messages}
    for name, those in runs.items():
        median = statistics.median(map(rate, those))
        result[f"{name}_messages_per_s"] = round(median)
        result[f"{name}_mb_per_s_a_reader"] = round(median * n_bytes / 1e6)
        cpu_us = statistics.median(run.cpu_seconds for run in those) / n_messages * 1e6
        result[f"{name}_publisher_us_a_message"] = round(cpu_us, 1)
    ratios = [rate(curve) / rate(plain) for plain, curve in pairs]
    result["curve_over_plain"] = round(statistics.median(ratios), 3)
    result["curve_over_plain_rounds"] = [round(ratio, 3) for ratio in ratios]
    return result


def _measure(
    spec: SpectrumSpec,
    n_messages: int,
    n_readers: int,
    security: SecurityConfig,
    credentials: Credentials | None,
) -> _Run:
    with ExitStack() as cleanup:
        access = Access(security)
        cleanup.callback(access.close)
        access.start()
        publisher = Publisher(
            ["tcp://127.0.0.1:*"],
            queue_frames=n_messages,
            high_water_mark=n_messages + 100,  # beside the values there are signs of life
            replay_mb=0.0,
            access=access,
        )
        feed = publisher.add_source("load", _stats)
        feed.offer([spec])
        publisher.start()
        cleanup.callback(publisher.stop)
        readers = [
            _Reader(publisher.endpoints[0], n_messages, credentials) for _ in range(n_readers)
        ]
        for reader in readers:
            cleanup.callback(reader.close)
        for reader in readers:
            reader.wait()
        before_s = sum(os.times()[:2])
        for first in range(0, n_messages, _FRAMES_A_BATCH):
            feed.write(_batch(spec, first, min(_FRAMES_A_BATCH, n_messages - first)))
        seconds = max(reader.wait() for reader in readers)
        cpu_s = sum(os.times()[:2]) - before_s
        assert publisher.failure is None
        assert feed.dropped == 0
        return _Run(seconds, cpu_s)


class _Reader:
    """A process that receives all messages, and then says how long that took."""

    def __init__(self, endpoint: str, n_messages: int, credentials: Credentials | None) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        self._process = context.Process(
            target=_read, args=(endpoint, n_messages, credentials, child)
        )
        self._process.start()

    def wait(self) -> float:
        """Wait for what it says next."""
        if not self._pipe.poll(_WAIT_S):
            raise TimeoutError("a reader has not received all")
        return float(self._pipe.recv())

    def close(self) -> None:
        """Have it end."""
        self._process.kill()
        self._process.join()


def _read(endpoint: str, n_messages: int, credentials: Credentials | None, pipe: Pipe) -> None:
    options = {zmq.RCVHWM: 0}
    connection = Connection(parse_remote(endpoint), zmq.SUB, credentials, None, options)
    socket = connection.socket
    socket.subscribe("hb/")
    socket.recv_multipart()
    socket.subscribe("spec/")
    socket.recv_multipart()  # the sign of life that answers a subscription
    pipe.send(0.0)
    decoder = msgspec.json.Decoder(_Seen)
    received, first_s = 0, 0.0
    while received < n_messages:
        topic, header, *_ = socket.recv_multipart()
        if topic.startswith(b"spec/"):
            first_s = first_s or time.perf_counter()
            assert decoder.decode(header).seq == received
            received += 1
    pipe.send(time.perf_counter() - first_s)
    time.sleep(_WAIT_S)  # until it is killed: closing would be counted


def _stats() -> Stats:
    none = dict.fromkeys(("samples", "rows", "messages", "overflows", "overruns", "dropped"), 0)
    return Stats(
        "running", "benchmark", "none", 48000.0, 1, **none, gaps=0, gap_samples=0, ring_peak=0.0
    )


def _batch(spec: SpectrumSpec, first: int, n_frames: int) -> SpectrumBatch:
    index = (first + np.arange(n_frames, dtype=np.int64)) * spec.hop
    values = np.full((n_frames, 1, spec.n_values), -60.0, np.float32)
    return SpectrumBatch(values, index, index, index, spec, "none", 0)


if __name__ == "__main__":
    main()
