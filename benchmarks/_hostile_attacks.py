"""The attackers of ``hostile_run.py``, each a process of its own, bounded in time, rate and memory.

Each function takes a pipe, which ends it when something can be read from it, and a ``Target``; it
returns counts of what it did.
"""

import errno
import json
import os
import random
import resource
import select
import signal
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import zmq
from control_fuzz import Requests

from spectrod.wire.keys import KeyPair, make_keys, read_public, read_secret

Address = tuple[str, int]
Counts = Counter[str]

_CONNECTS_A_TURN = 100
_UPSTREAM_PER_S = 20_000
_UPSTREAM_SOCKETS = 4
_SUBSCRIPTIONS_PER_S = 4_000
_SUBSCRIBERS = 4
_PREFIXES_A_SOCKET = 20_000  # libzmq keeps them on both sides
_UNREAD_SOCKETS = 32
_UNREAD_REQUESTS_PER_S = 320
_UNREAD_RENEW_S = 10.0
_GARBAGE_PER_S = 50
_REQUESTS_PER_S = 200
_STRANGERS_PER_S = 20
_FILES_PER_S = 20
_FILES_MAX = 400
_TORN_MAX = 100
_SILENCE_MS = 200
_REVOKED_FOR_S = 2.0
_CUT_MAX_S = 10.0
_KNOCKS, _KNOCK_MS = 5, 1000


@dataclass(frozen=True)
class Target:
    """Target of the attacks and the keys for them, paths of secret keys but for the server's.

    Attributes
    ----------
    publish, control : str
        Endpoints over TCP, which ask for keys.
    pid : int
        Of the daemon.
    server_key, key, clients : Path
        The server's public key, a key that may read, and the folder of keys that may come in.
    config : Path
        Of the daemon, with ``keep_days = 1`` in it.
    folders : tuple of Path
        Of recordings, where anybody may drop files; the second one's recording restarts.
    connections : int
        To hold open in silence.
    seconds : float
        After which an attacker ends by itself.
    seed : int
        Of everything random.
    """

    publish: str
    control: str
    pid: int
    server_key: Path
    key: Path
    clients: Path
    config: Path
    folders: tuple[Path, ...]
    connections: int
    seconds: float
    seed: int = 1


def run(pipe: Connection, name: str, target: Target) -> None:
    """Report readiness, attack from one word of the pipe to the next, return the counts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(-min(0, os.nice(0)))  # they would be other machines
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    pipe.send("ready")
    pipe.recv()
    pipe.send(dict(ATTACKS[name](pipe, target)))


def _turns(pipe: Connection, target: Target, per_s: float) -> Iterator[int]:
    """Yield the number of each turn, at a rate, until it is over; who is late does not catch up."""
    end_s = time.monotonic() + target.seconds
    due_s, turn = time.monotonic(), 0
    while not pipe.poll(max(0.0, due_s - time.monotonic())) and time.monotonic() < end_s:
        yield turn
        due_s, turn = max(due_s + 1.0 / per_s, time.monotonic() - 0.1), turn + 1


def _address(endpoint: str) -> Address:
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    return host, int(port)


# ---- connections


def _silent(pipe: Connection, target: Target) -> Counts:
    """Hold connections that say nothing, to both endpoints, and renew those that are cut."""
    addresses = (_address(target.publish), _address(target.control))
    counts, poll, peers = Counts(), select.epoll(), dict[int, socket.socket]()
    try:
        for turn in _turns(pipe, target, 100.0):
            for _ in range(min(_CONNECTS_A_TURN, target.connections - len(peers))):
                peer = _connect(addresses[(turn + counts["opened"]) % 2])
                if peer is None:
                    counts["not opened"] += 1
                    break
                peers[peer.fileno()] = peer
                poll.register(peer.fileno(), select.EPOLLRDHUP)
                counts["opened"] += 1
            for fd, _ in poll.poll(0):
                poll.unregister(fd)
                peers.pop(fd).close()
                counts["cut"] += 1
    finally:
        for peer in peers.values():
            peer.close()
    return counts


def _connect(address: Address) -> socket.socket | None:
    peer = socket.socket(socket.AF_INET)
    peer.setblocking(False)  # noqa: FBT003 - the standard library's own
    if peer.connect_ex(address) in (0, errno.EINPROGRESS):
        return peer
    peer.close()
    return None


_GREETING: Final = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01"
_GARBAGE: Final[Sequence[bytes]] = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\xff\0\0\0\0\0\0\0\x01\x7f",
    b"\x01\0" + b"\x05\x01spec/",  # ZMTP 1.0
    _GREETING + b"NULL".ljust(20, b"\0") + b"\0" * 32 + b"\x04\x19\x05READY" + b"\xff" * 18,
    _GREETING + b"CURVE".ljust(20, b"\0") + b"\0" * 32 + b"\x04\xc8\x05HELLO" + b"\xff" * 194,
    _GREETING + b"CURVE".ljust(20, b"\0") + b"\0" * 32 + b"\x06" + struct.pack(">Q", 2**63 - 1),
    _GREETING + b"PLAIN".ljust(20, b"\0") + b"\0" * 32,
    _GREETING + b"\xff" * 52,
    b"\xff" * 65536,
)


def _malformed(pipe: Connection, target: Target) -> Counts:
    """Send bytes that are no ZMTP to both endpoints, and requests that are none."""
    rng, requests = random.Random(target.seed), iter(Requests(target.seed))  # noqa: S311
    addresses = (_address(target.publish), _address(target.control))
    counts = Counts()
    with zmq.Context() as context, _open(context, zmq.DEALER, target) as dealer:
        dealer.connect(target.control)
        for turn in _turns(pipe, target, _REQUESTS_PER_S):
            with suppress(zmq.Again):
                dealer.send_multipart(next(requests), zmq.NOBLOCK)
                counts["requests"] += 1
            with suppress(zmq.Again):
                while True:
                    dealer.recv_multipart(zmq.NOBLOCK)
                    counts["replies"] += 1
            if turn % (_REQUESTS_PER_S // _GARBAGE_PER_S) == 0:
                counts[_throw(addresses[turn // 4 % 2], rng)] += 1
    return counts


def _throw(address: Address, rng: random.Random) -> str:
    """Send garbage over a connection of its own; say what became of it."""
    garbage = rng.choice((*_GARBAGE, rng.randbytes(rng.randrange(1, 4096))))
    try:
        with socket.create_connection(address, timeout=0.05) as peer:
            peer.sendall(garbage)
    except TimeoutError:
        return "closed to new connections"
    except OSError:
        return "cut off"
    return "garbage"


def _strangers(pipe: Connection, target: Target) -> Counts:
    """Come with keys that nobody knows, over and over."""
    counts = Counts()
    with zmq.Context() as context, ExitStack() as stack:
        subs: list[zmq.SyncSocket] = []
        for _ in _turns(pipe, target, _STRANGERS_PER_S):
            if len(subs) >= _STRANGERS_PER_S:
                subs.pop(0).close()
            pair = KeyPair("stranger", *zmq.curve_keypair())
            subs.append(stack.enter_context(_open(context, zmq.SUB, target, pair)))
            subs[-1].subscribe("")
            subs[-1].connect(target.publish)
            counts["keys"] += 1
    return counts


def _open(
    context: "zmq.Context[zmq.SyncSocket]", kind: int, target: Target, pair: KeyPair | None = None
) -> zmq.SyncSocket:
    """Open a socket with a key, the one that may read unless another is given."""
    pair = read_secret(target.key) if pair is None else pair
    opened = context.socket(kind)
    opened.setsockopt(zmq.LINGER, 0)
    opened.setsockopt(zmq.CURVE_SERVERKEY, read_public(target.server_key).key)
    opened.setsockopt(zmq.CURVE_PUBLICKEY, pair.key)
    opened.setsockopt(zmq.CURVE_SECRETKEY, pair.secret)
    return opened


# ---- messages, with a key that may read


def _upstream(pipe: Connection, target: Target) -> Counts:
    """Send messages to the publisher that are no subscriptions, short and long ones."""
    counts = Counts()
    with zmq.Context() as context, ExitStack() as stack:
        subs = []
        for _ in range(_UPSTREAM_SOCKETS):
            subs.append(stack.enter_context(_open(context, zmq.XSUB, target)))
            subs[-1].connect(target.publish)
        for turn in _turns(pipe, target, 100.0):
            message = b"\x02" * (65_000 if turn % 50 == 0 else 200 if turn % 5 == 0 else 1)
            for sub in subs:
                for _ in range(_UPSTREAM_PER_S // 100 // _UPSTREAM_SOCKETS):
                    with suppress(zmq.Again):
                        sub.send(message, zmq.NOBLOCK)
                        counts["messages"] += 1
    return counts


def _subscriptions(pipe: Connection, target: Target) -> Counts:
    """Subscribe to ever new prefixes, long and short, and take many of them back."""
    counts = Counts()
    with zmq.Context() as context, ExitStack() as stack:
        subs: list[zmq.SyncSocket] = []
        for turn in _turns(pipe, target, 100.0):
            sub = _replaced(context, stack, subs, target, counts)
            for k in range(_SUBSCRIPTIONS_PER_S // 100):
                word = ("spec/", "bands/", "last/", "meta/", "hb/", "nobody/")[k % 6]
                prefix = f"{word}tone/{turn}.{k}".encode() + b"x" * (k % 7 * 30)
                with suppress(zmq.Again):
                    sub.send(b"\x01" + prefix, zmq.NOBLOCK)
                    counts["subscriptions"] += 1
                    if k % 4 == 0:
                        sub.send(b"\x00" + prefix, zmq.NOBLOCK)
    return counts


def _replaced(
    context: "zmq.Context[zmq.SyncSocket]",
    stack: ExitStack,
    subs: list[zmq.SyncSocket],
    target: Target,
    counts: Counts,
) -> zmq.SyncSocket:
    """Return the socket in use; after a number of prefixes a new one, and the oldest is closed."""
    if counts["subscriptions"] >= _PREFIXES_A_SOCKET * counts["sockets"]:
        if len(subs) >= _SUBSCRIBERS:
            subs.pop(0).close()
        subs.append(stack.enter_context(_open(context, zmq.XSUB, target)))
        subs[-1].connect(target.publish)
        counts["sockets"] += 1
    return subs[-1]


def _unread(pipe: Connection, target: Target) -> Counts:
    """Ask for large replies and read none; subscribe to everything, and read nothing."""
    counts = Counts()
    requests = [
        json.dumps({"v": 1, "id": 1, "method": method, "params": params}).encode()
        for method, params in (
            ("replay", {"topic": "spec/tone/0/dbfs/", "first_seq": 0, "limit": 64}),
            ("events", {"since": 0, "limit": 1000}),
            ("get", {}),
            ("status", {}),
        )
    ]
    with zmq.Context() as context, ExitStack() as stack:
        for _ in range(_UNREAD_SOCKETS):
            sub = stack.enter_context(_open(context, zmq.SUB, target))
            sub.setsockopt(zmq.RCVHWM, 1)
            sub.subscribe("")
            sub.connect(target.publish)
        dealers: list[zmq.SyncSocket] = []
        for turn in _turns(pipe, target, _UNREAD_REQUESTS_PER_S):
            k = turn % _UNREAD_SOCKETS
            if k == len(dealers):
                dealers.append(_unread_dealer(context, target))
            elif turn % round(_UNREAD_REQUESTS_PER_S * _UNREAD_RENEW_S) == k:
                dealers[k].close()
                dealers[k] = _unread_dealer(context, target)
            with suppress(zmq.Again):
                dealers[k].send(requests[turn // _UNREAD_SOCKETS % len(requests)], zmq.NOBLOCK)
                counts["requests"] += 1
        for dealer in dealers:
            dealer.close()
    return counts


def _unread_dealer(context: "zmq.Context[zmq.SyncSocket]", target: Target) -> zmq.SyncSocket:
    dealer = _open(context, zmq.DEALER, target)
    dealer.setsockopt(zmq.RCVHWM, 1)
    dealer.setsockopt(zmq.RCVBUF, 4096)
    dealer.connect(target.control)
    return dealer


# ---- keys


def _revocations(pipe: Connection, target: Target) -> Counts:
    """Admit a key, revoke it while it listens, and check whether it still receives anything.

    Each turn also changes a recording, which then begins new files among those that were dropped.
    """
    counts = Counts()
    own = target.config.parent / "revoked"
    with zmq.Context() as context:
        for turn in _turns(pipe, target, 0.1):
            public, secret = make_keys(own, f"eve{turn}", "read")
            known = target.clients / public.name
            known.write_bytes(public.read_bytes())
            _change_config(target.config, turn)
            _reload(target.pid)
            sub = _subscribe_with(context, target, read_secret(secret))
            known.unlink()
            _reload(target.pid)
            if sub is None:
                counts["not let in within 5 s"] += 1
            else:
                _drain_until_silent(sub)
                counts["frames after the revocation"] += _drain_for(sub, _REVOKED_FOR_S)
                sub.close()
            counts["revocations"] += 1
    return counts


def _reload(pid: int) -> None:
    with suppress(ProcessLookupError):  # the run reports a daemon that has ended
        os.kill(pid, signal.SIGHUP)


def _subscribe_with(
    context: "zmq.Context[zmq.SyncSocket]", target: Target, pair: KeyPair
) -> zmq.SyncSocket | None:
    """Subscribe by a new key until a row comes; None if none does within 5 s."""
    for _ in range(_KNOCKS):  # libzmq knocks once only where it is refused
        sub = _open(context, zmq.SUB, target, pair)
        sub.subscribe("spec/")
        sub.connect(target.publish)
        if sub.poll(_KNOCK_MS):
            return sub
        sub.close()
    return None


def _drain_until_silent(sub: zmq.SyncSocket) -> None:
    """Receive until nothing comes for a time: a signal does not say when its reload is done."""
    end_s = time.monotonic() + _CUT_MAX_S
    while time.monotonic() < end_s and sub.poll(round(_REVOKED_FOR_S * 1e3)):
        sub.recv_multipart()


def _drain_for(sub: zmq.SyncSocket, seconds: float) -> int:
    """Count the messages of a time."""
    n, end_s = 0, time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        if sub.poll(round(min(left_s * 1e3, _SILENCE_MS))):
            sub.recv_multipart()
            n += 1
    return n


def _change_config(path: Path, turn: int) -> None:
    text = path.read_text()
    changed = path.with_suffix(".new")
    changed.write_text(
        "\n".join(
            f"keep_days = {1 + turn % 2}" if line.startswith("keep_days") else line
            for line in text.splitlines()
        )
    )
    changed.rename(path)


# ---- files


def _files(pipe: Connection, target: Target) -> Counts:
    """Drop torn, forged and odd files into the folders of recordings.

    What must stay as it is, by its name or its content, is looked at in the end: it is counted as
    ``touched`` if it has gone or changed. Copies of the recording's own files, which it may take
    for its own, go into the second folder only, and are not looked at.
    """
    rng, counts, dropped = random.Random(target.seed), Counts(), list[_Dropped]()  # noqa: S311
    for turn in _turns(pipe, target, _FILES_PER_S):
        folder = target.folders[turn // 2 % len(target.folders)]
        if not folder.is_dir() or len(dropped) >= _FILES_MAX:
            continue
        try:
            dropped.append(_drop(folder, turn, rng))
            counts["files"] += 1
        except FileExistsError:
            counts["name taken"] += 1
        if turn % 20 == 0 and counts["torn copies"] < _TORN_MAX:
            counts["torn copies"] += _tear(target.folders[1], turn, rng)
    counts["touched"] += sum(one.is_touched() for one in dropped)
    (target.config.parent / "dropped.json").write_text(
        json.dumps([os.fsencode(one.path).hex() for one in dropped])
    )
    return counts


@dataclass(frozen=True)
class _Dropped:
    path: Path
    content: bytes | None
    """None of what is no regular file."""

    def is_touched(self) -> bool:
        if self.content is None:
            return not os.path.lexists(self.path)
        return not self.path.is_file() or self.path.read_bytes() != self.content


_SUFFIXES: Final = (".spd", ".spd.part", ".wav", ".wav.part", ".flac", ".flac.part", ".png", ".tmp")


def _drop(folder: Path, turn: int, rng: random.Random) -> _Dropped:
    """Make one file, link or FIFO that was not there."""
    suffix = _SUFFIXES[turn % len(_SUFFIXES)]
    stem = (f"forged{turn}".encode(), f"caf\xe9{turn}".encode("latin-1"), b"\x1b[31mred%d" % turn)
    name = os.fsdecode(stem[turn % 3]) + suffix
    match turn % 11:
        case 0:
            path = folder / name
            path.symlink_to(folder.parent / f"nowhere{turn}")
            return _Dropped(path, None)
        case 1:
            path = folder / name
            os.mkfifo(path)
            return _Dropped(path, None)
        case 2:  # the name that the recording needs next
            soon = datetime.fromtimestamp(time.time() + rng.randrange(1, 60), UTC)
            path = folder / f"{soon:%Y%m%dT%H%M%SZ}{suffix}"
        case _:
            path = folder / name
    content = rng.choice(_HEADS)(rng)
    with path.open("xb") as file:
        file.write(content)
    if turn % 2:
        os.utime(path, (1.0, 1.0))
    return _Dropped(path, content)


_HEADS: Final[Sequence[Callable[[random.Random], bytes]]] = (
    lambda _: b"",
    lambda rng: rng.randbytes(60_000),
    lambda _: b"fLaC\0\0\0\x22" + b"\0" * 60_000,
    lambda rng: b"fLaC\0\0\0\x22" + rng.randbytes(34) + b"\xff\xf8" * 4000,
    lambda _: b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0" + b"\xff" * 4096,
    lambda _: b"RF64\xff\xff\xff\xffWAVEds64" + b"\xff" * 4096,
)


def _tear(folder: Path, turn: int, rng: random.Random) -> int:
    """Leave a torn copy of one of the recording's own files, as a crash would; return how many."""
    finished = [one for one in folder.glob("2*.*") if one.suffix in (".spd", ".wav")]
    if not finished:
        return 0
    model = rng.choice(finished)
    try:
        content = bytearray(model.read_bytes()[: rng.randrange(1, 200_000)])
    except OSError:  # it was deleted meanwhile
        return 0
    for _ in range(rng.randrange(4) if content else 0):
        content[rng.randrange(len(content))] = rng.randrange(256)
    # Names without a number are of the recording; those with one may be.
    name = f"{model.stem}_{1 + turn % 9000}{model.suffix}.part"
    (folder / name).write_bytes(content)
    return 1


ATTACKS: Final[dict[str, Callable[[Connection, Target], Counts]]] = {
    "silent": _silent,
    "upstream": _upstream,
    "subscriptions": _subscriptions,
    "unread": _unread,
    "malformed": _malformed,
    "strangers": _strangers,
    "files": _files,
    "revocations": _revocations,
}
"""By the name that ``--only`` takes."""
