"""One publisher and many subscribers, half of which never read, and one that comes and goes.

    python benchmarks/publish_load.py [--seconds 20] [--readers 32] [--idle 32] [--json FILE]

A thread submits 8 KB spectra to a real ``Publisher`` at an even rate, as an analysis would.
Subscribers are plain SUB sockets over TCP in processes of their own: those that read, those that
subscribe and do not, and one that connects and vanishes over and over. Measured are the time from
``submit`` to the receipt by each reader, and to the hand-over to ZeroMQ.

Asserted before anything is printed: each subscriber, the idle ones when they read at last, knows by
``seq`` what it missed, to the message; memory has grown by no more than is promised. The exit code
is 1 if readers have lost messages after the warm-up, in which the machine makes room for sockets'
buffers.
"""

import argparse
import multiprocessing
import os
import socket as sockets
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import zmq
from _report import new_report, write_report

from spectrod.cli.tables import Column, heading, line
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.daemon.publisher.sent_messages import Stored
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.stats import Stats

_SPEC = SpectrumSpec(fs=48000.0, win_length=4096, hop=48, nfft=4096, scaling="dbfs")
_MESSAGE_BYTES = 4 * _SPEC.n_values + 700  # payload, header and topic
_HIGH_WATER_MARK = 256
_QUEUE_FRAMES = 256
_REPLAY_MB = 16.0
_OWN_BYTES = 16 << 20
"""What interpreter, libzmq's structures and allocator may take beside messages."""
_READERS_A_PROCESS = 16
_WAIT_S = 15.0


class _Seen(msgspec.Struct):
    """Fields of a header that are read."""

    seq: int
    t_mono_ns: int


_decoder = msgspec.json.Decoder(_Seen)


class _Tally:
    """Messages that one subscriber received and missed, during and after the warm-up."""

    def __init__(self, warm_up: int) -> None:
        self.warm_up = warm_up
        self.received = self.missed = self.next_seq = 0
        self.missed_at_first = 0

    def take(self, seen: _Seen) -> None:
        """Count a message, and those that are missing before it."""
        late = max(0, seen.seq - max(self.next_seq, self.warm_up))
        self.missed_at_first += seen.seq - self.next_seq - late
        self.missed += late
        self.next_seq = seen.seq + 1
        self.received += 1


def _connect(context: "zmq.Context[zmq.SyncSocket]", endpoint: str) -> zmq.SyncSocket:
    sub = context.socket(zmq.SUB)
    sub.setsockopt(zmq.LINGER, 0)
    sub.subscribe("spec/")
    sub.connect(endpoint)
    return sub


def _subscribe(pipe: Connection, endpoint: str, count: int, warm_up: int, *, reads: bool) -> None:
    """Be some subscribers; report when the message comes whose number the pipe tells."""
    with zmq.Context() as context, ExitStack() as stack:
        subs = [stack.enter_context(_connect(context, endpoint)) for _ in range(count)]
        poller = zmq.Poller()
        tallies = {sub: _Tally(warm_up) for sub in subs}
        delays_ns: list[int] = []
        for sub in subs:
            poller.register(sub, zmq.POLLIN)
        pipe.send("connected")
        last_seq = None if reads else pipe.recv()  # here an idle one waits for the end
        while last_seq is None or any(t.next_seq <= last_seq for t in tallies.values()):
            for sub, _ in poller.poll(100):
                _read_all(sub, tallies[sub], delays_ns)
            if last_seq is None and pipe.poll():
                last_seq = pipe.recv()
        rows = [(t.received, t.missed_at_first, t.missed, t.next_seq) for t in tallies.values()]
        pipe.send((rows, np.array(delays_ns if reads else [], dtype=np.int64)))


def _read_all(sub: zmq.SyncSocket, tally: _Tally, delays_ns: list[int]) -> None:
    while True:
        try:
            _, header, _ = sub.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return
        seen = _decoder.decode(header)
        if seen.seq >= tally.warm_up:
            delays_ns.append(time.monotonic_ns() - seen.t_mono_ns)
        tally.take(seen)


def _vanish(pipe: Connection, endpoint: str) -> None:
    """Come and go, with a ZeroMQ socket and with a bare connection, until the end."""
    address = ("127.0.0.1", int(endpoint.rpartition(":")[2]))
    times = 0
    pipe.send("ready")
    with zmq.Context() as context:
        while not pipe.poll(0.01):
            sub = _connect(context, endpoint)
            sub.poll(5)
            sub.close()
            with sockets.create_connection(address) as bare:
                bare.sendall(b"\xff\0\0\0\0\0\0\0\x01\x7f")
            times += 1
    pipe.send(times)


class _Peers:
    """Subscribers in processes."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._spawn = multiprocessing.get_context("spawn")
        self._started: list[tuple[multiprocessing.process.BaseProcess, Connection]] = []

    def start(self, target: Callable[..., None], *args: object, **options: object) -> Connection:
        """Start one process; its function gets a pipe and the endpoint first."""
        parent, child = self._spawn.Pipe()
        process = self._spawn.Process(
            target=target, args=(child, self._endpoint, *args), kwargs=options, daemon=True
        )
        process.start()
        self._started.append((process, parent))
        return parent

    def close(self) -> None:
        """End those that have not ended."""
        for process, _ in self._started:
            process.join(1.0)
            if process.is_alive():
                process.kill()


class _Producer:
    """Submits rows at an even rate, and knows when each was submitted and handed to ZeroMQ."""

    def __init__(self, publisher: Publisher) -> None:
        self._feed = publisher.sources[0]
        self._rng = np.random.default_rng(1)
        self._values = self._rng.normal(-80, 10, (64, 1, 1, _SPEC.n_values)).astype(np.float32)
        self.submitted_ns: list[int] = []
        self._delays: list[tuple[int, int]] = []
        publisher.history.watch("spec/load/0/dbfs/", self._note_sent)

    def submit(self) -> None:
        """Submit one row."""
        k = len(self.submitted_ns)
        index = np.array([k * _SPEC.hop], np.int64)
        now_ns = time.monotonic_ns()
        now = np.array([now_ns], np.int64)
        self.submitted_ns.append(now_ns)
        batch = SpectrumBatch(self._values[k % 64], index, now, now, _SPEC, "numpy")
        self._feed.write(batch)

    def hand_over_ns(self, first_seq: int) -> np.ndarray:
        """Time from submit to the hand-over to ZeroMQ of each message from a number on [ns]."""
        return np.array([delay_ns for seq, delay_ns in self._delays if seq >= first_seq])

    def _note_sent(self, message: Stored) -> None:
        now_ns = time.monotonic_ns()
        self._delays.append((message.seq, now_ns - self.submitted_ns[message.seq]))

    def run(self, seconds: float, rate_hz: float) -> None:
        """Submit until the time is over; one that is late catches up."""
        start_s = time.monotonic()
        for k in range(round(seconds * rate_hz)):
            left_s = start_s + k / rate_hz - time.monotonic()
            if left_s > 0:
                time.sleep(left_s)
            self.submit()


def main() -> None:
    """Run, check, print and optionally store."""
    args = _arguments()
    report = new_report("publish_load")
    report["results"] = [result] = [_measure(args)]
    columns = [
        Column("what", "from submit to", 26),
        Column("p50_ms", "p50 ms", 8, lambda value: f"{value:.3f}"),
        Column("p99_ms", "p99 ms", 8, lambda value: f"{value:.3f}"),
        Column("max_ms", "max ms", 8, lambda value: f"{value:.1f}"),
    ]
    print(heading(columns))
    for row in result["latency"]:
        print(line(columns, row))
    for key, value in result.items():
        if key != "latency":
            print(f"{key}: {value}")
    if args.json:
        write_report(report, args.json)
    if "failed" in result:
        raise SystemExit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--readers", type=int, default=32, help="subscribers that read")
    parser.add_argument("--idle", type=int, default=32, help="subscribers that do not")
    parser.add_argument("--warm-up", type=float, default=5.0, help="seconds that do not count")
    parser.add_argument("--rate", type=float, default=1000.0, help="messages a second")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def _measure(args: argparse.Namespace) -> dict[str, Any]:
    publisher = Publisher(
        ["tcp://127.0.0.1:*"],
        queue_frames=_QUEUE_FRAMES,
        high_water_mark=_HIGH_WATER_MARK,
        replay_mb=_REPLAY_MB,
    )
    publisher.add_source("load", _stats)
    publisher.start()
    peers = _Peers(publisher.endpoints[0])
    try:
        return _measure_with(args, publisher, peers)
    finally:
        publisher.stop()
        peers.close()


def _measure_with(args: argparse.Namespace, publisher: Publisher, peers: _Peers) -> dict[str, Any]:
    counts = [
        min(_READERS_A_PROCESS, args.readers - k)
        for k in range(0, args.readers, _READERS_A_PROCESS)
    ]
    warm_up = round(args.warm_up * args.rate)
    readers = [peers.start(_subscribe, count, warm_up, reads=True) for count in counts]
    idle = peers.start(_subscribe, args.idle, warm_up, reads=False)
    for pipe in (*readers, idle):
        _receive(pipe)
    _wait(lambda: publisher.subscribers >= args.readers + args.idle)
    vanishing = peers.start(_vanish)
    _receive(vanishing)
    producer = _Producer(publisher)
    before = _memory_bytes()
    producer.run(args.warm_up, args.rate)
    cpu_before_s, peak = time.process_time(), _Peak()
    submitting = threading.Thread(target=producer.run, args=(args.seconds, args.rate))
    submitting.start()
    while submitting.is_alive():
        submitting.join(0.1)
        peak.note()
    cpu_s = time.process_time() - cpu_before_s
    n = len(producer.submitted_ns)
    vanishing.send("end")
    for pipe in (*readers, idle):
        pipe.send(n - 1)
    # Whose queue is full has not got the last one: more are sent until each has got one.
    while not all(pipe.poll() for pipe in (*readers, idle)):
        producer.submit()
        peak.note()
        time.sleep(0.1)
    rows, delays_ns = [], []
    for pipe in readers:
        some_rows, some_delays = _receive(pipe)
        rows += some_rows
        delays_ns.append(some_delays)
    idle_rows, _ = _receive(idle)
    limit = _limit_bytes(args.readers + args.idle)
    grown = peak.bytes - before
    result: dict[str, Any] = {
        "messages": n - warm_up,
        "latency": [
            _row("receipt by a reader", np.concatenate(delays_ns)),
            _row("hand-over to ZeroMQ", producer.hand_over_ns(warm_up)),
        ],
        "readers": args.readers,
        "idle": args.idle,
        "readers_missed": _span([missed for _, _, missed, _ in rows]),
        "readers_missed_warming_up": _span([missed for _, missed, _, _ in rows]),
        "idle_received": _span([received for received, *_ in idle_rows]),
        "idle_missed": _span([first + missed for _, first, missed, _ in idle_rows]),
        "vanished": _receive(vanishing),
        "dropped_by_queue": publisher.sources[0].dropped,
        "publisher_cpu": round(cpu_s / args.seconds, 3),
        "memory_grown_mb": round(grown / 1e6, 1),
        "memory_limit_mb": round(limit / 1e6, 1),
        "threads": threading.active_count(),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
    }
    for received, first, missed, next_seq in rows + idle_rows:
        assert received + first + missed == next_seq >= n, (received, first, missed, next_seq)
    for _, _, missed, _ in idle_rows:
        assert missed > 0, "the idle ones were not slow: try longer"
    assert grown <= limit, (grown, limit)
    if publisher.sources[0].dropped or any(missed for _, _, missed, _ in rows):
        result["failed"] = "too much for this machine: readers have lost messages"
    return result


def _limit_bytes(subscribers: int) -> int:
    """Bound the memory as docs/protocol.md promises."""
    return (
        subscribers * _HIGH_WATER_MARK * _MESSAGE_BYTES
        + _QUEUE_FRAMES * _MESSAGE_BYTES
        + round(_REPLAY_MB * 1e6)
        + _OWN_BYTES
    )


class _Peak:
    """The most memory that there was."""

    def __init__(self) -> None:
        self.bytes = 0

    def note(self) -> None:
        """Look at it now."""
        self.bytes = max(self.bytes, _memory_bytes())


def _memory_bytes() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123 - not a file that lies anywhere
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _stats() -> Stats:
    return Stats("running", "synthetic", "numpy", _SPEC.fs, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)


def _receive(pipe: Connection) -> Any:
    if not pipe.poll(_WAIT_S):
        raise SystemExit(f"a subscriber's process said nothing for {_WAIT_S:.0f} s")
    return pipe.recv()


def _wait(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _WAIT_S
    while not is_so():
        if time.monotonic() > deadline_s:
            raise SystemExit(f"the subscribers were not there within {_WAIT_S:.0f} s")
        time.sleep(0.01)


def _row(what: str, delays_ns: np.ndarray) -> dict[str, object]:
    p50, p99, most = np.percentile(delays_ns, [50, 99, 100]) * 1e-6
    return {"what": what, "p50_ms": p50, "p99_ms": p99, "max_ms": most}


def _span(counts: list[int]) -> str:
    return f"{min(counts, default=0)} to {max(counts, default=0)}"


if __name__ == "__main__":
    main()
