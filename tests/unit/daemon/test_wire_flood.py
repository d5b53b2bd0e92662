"""Connections that are cut because of the bytes that they have sent."""

import math
import queue
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from spectrod.daemon.access import flood
from spectrod.daemon.access.flood import (
    BUSY_BYTES,
    BUSY_LOOKS,
    FULL_BYTES,
    HANDSHAKE_BYTES,
    LINK_BURST_BYTES,
    LONG_STALL_S,
    STALL_S,
    TOTAL_BURST_BYTES,
    UNFINISHED_BYTES,
    UNFINISHED_LOOKS,
    UNFINISHED_TOTAL_BYTES,
    FloodWatch,
    Inbound,
    Stall,
    Unfinished,
)
from spectrod.daemon.access.tcp_links import Link, Traffic

PERIOD_S = 0.025
NOBODY = []


def tcp(received_bytes):
    return Traffic(received_bytes, 0)


def ipc(waiting_bytes):
    return Traffic(0, waiting_bytes)


def links(n):
    return [Link(fd, 1000 + fd) for fd in range(n)]


def looks(inbound, traffic_at, n_looks):
    """Sample a number of times; return the connections cut at each sample."""
    cut = {}
    for k in range(n_looks):
        found = {link: one for link, one in traffic_at(k).items() if link not in cut}
        for link in inbound.look(found, k * PERIOD_S):
            cut[link] = k
    return cut


def test_subscribers_that_connect_and_beat_are_left_alone():
    """A thousand connect within 2 s, subscribe, and send a heartbeat every 2 s for an hour."""
    every, inbound = links(1000), Inbound(0.0)

    def traffic_at(k):
        there = every[: 1 + k * 100]
        return {link: tcp(250 + 125 * (k - fd // 100)) for fd, link in enumerate(there)}

    for k in range(360):
        assert inbound.look(traffic_at(k), k * 10.0) == NOBODY


def test_one_that_sends_on_and_on_is_cut_off():
    """After its burst, however slowly it continues; the others are not cut."""
    inbound, (flood, drip, quiet) = Inbound(0.0), links(3)

    def traffic_at(k):
        return {flood: tcp(5000 * k), drip: tcp(int(200 * k)), quiet: tcp(300)}

    cut = looks(inbound, traffic_at, 2000)
    assert list(cut) == [flood, drip]
    assert cut[flood] <= LINK_BURST_BYTES / 5000 + 2
    assert quiet not in cut


def test_many_that_send_a_little_each_are_cut_off_together():
    """A hundred connections, each below the bound of one."""
    every, inbound = links(101), Inbound(0.0)

    def traffic_at(k):
        return {link: tcp(1200 * (k + 1)) for link in every[:100]} | {every[100]: tcp(300)}

    cut = looks(inbound, traffic_at, 3)
    assert len(cut) == 100
    assert set(cut.values()) == {0}
    assert BUSY_BYTES <= 1200
    assert TOTAL_BURST_BYTES < 100 * 1200


@pytest.mark.parametrize("period_s", [PERIOD_S, 0.005])
def test_who_is_busy_does_not_depend_on_how_often_it_looks(period_s):
    """A hundred connections that send 50 kB/s each are cut together within twice the period."""
    every, inbound = links(101), Inbound(0.0)
    for k in range(1, 1 + round(2 * PERIOD_S / period_s)):
        found = {link: tcp(int(50_000 * k * period_s)) for link in every[:100]}
        if cut := inbound.look(found | {every[100]: tcp(300)}, k * period_s):
            break
    assert cut == every[:100]


def test_over_ipc_one_that_sends_on_and_on_is_cut_off():
    """Received bytes are unknown there; unchanged waiting bytes are only unread."""
    inbound, (full, flowing, slow, burst) = Inbound(0.0), links(4)

    def traffic_at(k):
        return {
            full: ipc(FULL_BYTES + 1),
            flowing: ipc(50_000 + k),
            slow: ipc(50_000),
            burst: ipc(50_000 if k == 1 else 0),
        }

    assert looks(inbound, traffic_at, 20) == {full: BUSY_LOOKS - 1, flowing: BUSY_LOOKS - 1}


class Requests:
    """Connections that send requests: bytes and complete messages of each."""

    def __init__(self, n):
        self.links = links(n)
        self.counts = {}
        self.judge = Unfinished(self.counts)

    def look(self, traffic):
        return self.judge.look(dict(zip(self.links, traffic, strict=True)), 0.0)


def test_a_request_without_end_is_cut_off():
    """One that has sent as much in complete requests is not."""
    requests = Requests(2)
    endless, proper = requests.links
    for k in range(1, 100):
        requests.counts[proper] = k
        n_bytes = k * UNFINISHED_BYTES // 10
        cut = requests.look([tcp(n_bytes), tcp(n_bytes)])
        assert cut == ([endless] if n_bytes > UNFINISHED_BYTES else [])
        if cut:
            return
    pytest.fail("was not cut off")


def test_many_requests_without_end_are_cut_off_from_the_longest_on():
    """Each is below the bound of one; handshakes of thousands do not count."""
    n_idle = 2 * UNFINISHED_TOTAL_BYTES // HANDSHAKE_BYTES
    requests = Requests(n_idle + 6)
    sent = [tcp(HANDSHAKE_BYTES)] * n_idle
    sent += [tcp(UNFINISHED_BYTES - 6000 + 1000 * k) for k in range(6)]
    cut = requests.look(sent)
    assert cut == requests.links[: n_idle + 1 : -1][: len(cut)]
    assert 1 <= len(cut) <= 2
    assert requests.look([tcp(HANDSHAKE_BYTES)] * (n_idle + 6)) == []


def test_over_ipc_requests_without_end_are_cut_off_by_how_long_data_flows():
    """One that waits to be read on a busy machine is not, nor one that sends many."""
    requests = Requests(4)
    full, flowing, _waiting, many = requests.links
    cut = {}
    for k in range(100):
        requests.counts[many] = k
        found = [ipc(FULL_BYTES + 1), ipc(1 + k % 7), ipc(60_000), ipc(1 + k)]
        for link in requests.look(found):
            cut.setdefault(link, k)
    assert cut == {full: UNFINISHED_LOOKS / 2 - 1, flowing: UNFINISHED_LOOKS - 1}


@pytest.mark.parametrize(
    ("stall_s", "cut"),
    [
        (STALL_S / 2, []),
        (STALL_S, ["tcp busy", "ipc waiting"]),
        (LONG_STALL_S, ["tcp busy", "ipc waiting", "ipc"]),
    ],
)
def test_while_the_publisher_is_held_up_more_are_cut_off(stall_s, cut):
    """Possible causes are cut; over IPC finally all connections. Silent TCP connections never."""
    inbound = Inbound(0.0)
    traffic = {
        "tcp busy": tcp(BUSY_BYTES),
        "tcp": tcp(300),
        "ipc waiting": ipc(1),
        "ipc": ipc(0),
    }
    named = dict(zip(links(4), traffic, strict=True))
    found = {link: traffic[name] for link, name in named.items()}
    assert [named[link] for link in inbound.look(found, 0.0, stall_s)] == cut


def test_a_thread_that_waits_or_makes_steps_is_not_held_up():
    """Only the processor's time of one step counts."""
    going, done, steps = threading.Event(), threading.Event(), [0]

    def work():
        going.wait()
        while not done.is_set():
            steps[0] += int(is_stepping)

    is_stepping = False
    thread = threading.Thread(target=work)
    thread.start()
    stall = Stall(thread, lambda: steps[0])
    try:
        assert stall.look() == 0.0
        assert stall.look() < STALL_S
        going.set()
        while stall.look() < STALL_S:
            pass
        is_stepping = True
        while stall.look() > STALL_S / 2:
            pass
    finally:
        done.set()
        thread.join()
    deadline_s = time.monotonic() + 10.0
    while stall.look():  # of a thread that the kernel knows no more, 0
        assert time.monotonic() < deadline_s


class _Bell(threading.Event):
    """Says when its waiter sleeps."""

    def __init__(self):
        super().__init__()
        self.has_sleeper = threading.Event()

    def wait(self, timeout=None):
        self.has_sleeper.set()
        return super().wait(timeout)


class _Looks(queue.Queue):
    """A judge that cuts nobody, and keeps the number of connections at each sample."""

    def look(self, found, _now_s, _stall_s=0.0):
        self.put(len(found))
        return NOBODY


def test_without_connections_nothing_is_sampled_until_there_is_one(monkeypatch):
    """The watch sleeps, and samples as before once it is woken."""
    monkeypatch.setattr(flood, "_PERIOD_S", 0.0)
    monkeypatch.setattr(flood, "_SHARE", 1.0)
    looks, bell = _Looks(), _Bell()
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        watch = FloodWatch([endpoint], looks, on_cut=pytest.fail)
        monkeypatch.setattr(watch, "_awake", bell)
        watch.start()
        try:
            assert bell.has_sleeper.wait(10.0)
            before = [looks.get_nowait() for _ in range(looks.qsize())]
            assert before == [0] * len(before)
            with socket.create_connection(server.getsockname()), server.accept()[0]:
                watch.wake()
                while not looks.get(timeout=10.0):
                    pass
        finally:
            watch.stop()


class _Waits(threading.Event):
    """Keeps how long it was waited for, and is set after three times."""

    def __init__(self):
        super().__init__()
        self.waits_s = []

    def wait(self, timeout=None):
        self.waits_s.append(timeout)
        return len(self.waits_s) > 3


class _CutsAll:
    """A judge that cuts every connection."""

    def look(self, found, _now_s, _stall_s=0.0):
        return list(found)


@pytest.mark.parametrize("is_cut", [False, True])
def test_after_a_cut_it_looks_more_often(monkeypatch, is_cut):
    """Whoever was cut connects again at once, and would send until the next look."""
    monkeypatch.setattr(flood, "_AFTER_CUT_S", math.inf)
    for share in ("_SHARE", "_WAITING_SHARE"):  # however long a look takes
        monkeypatch.setattr(flood, share, math.inf)
    cuts = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        watch = FloodWatch([f"tcp://127.0.0.1:{address[1]}"], _CutsAll(), cuts.append)
        monkeypatch.setattr(watch, "_stopping", waits := _Waits())
        with ExitStack() as opened:
            if is_cut:
                opened.enter_context(socket.create_connection(address))
                opened.enter_context(server.accept()[0])
            watch.start()
            watch.stop()
    after_s = flood._WAITING_PERIOD_S if is_cut else flood._PERIOD_S
    assert waits.waits_s == [flood._PERIOD_S, *[after_s] * 3]
    assert set(cuts) == ({"tcp"} if is_cut else set())


@pytest.mark.parametrize("shift_s", [3 * 86400.0, -40 * 86400.0])
def test_clocks_that_are_shifted_are_no_stall(monkeypatch, shift_s):
    """A jump of the thread's clock counts as the elapsed time at most, so it is no stall."""
    clocks = {"cpu_s": 1.0, "elapsed_s": 100.0}
    monkeypatch.setattr(flood.time, "clock_gettime", lambda _: clocks["cpu_s"])
    monkeypatch.setattr(flood.time, "monotonic", lambda: clocks["elapsed_s"])
    stall = Stall(threading.current_thread(), lambda: 1)

    def look(cpu_s):
        clocks["cpu_s"] += cpu_s
        clocks["elapsed_s"] += PERIOD_S
        return stall.look()

    assert look(0.001) == 0.0
    assert look(0.001) == pytest.approx(0.001)
    assert look(shift_s) <= 0.0011 + PERIOD_S < STALL_S
    before_s = look(0.0)
    for n in range(1, 9):  # a stall is found as before
        assert look(PERIOD_S) == pytest.approx(before_s + n * PERIOD_S)
    assert before_s + 8 * PERIOD_S > STALL_S
