"""Faults of subscribers: many, slow ones, and such that are none."""

import socket
from contextlib import ExitStack, suppress
from random import Random
from typing import Final

import zmq

from spectrod.apps.bench.fault_soak.fault import Fault
from spectrod.apps.bench.fault_soak.journal import Expected
from spectrod.apps.bench.fault_soak.site import SoakSite

_CHURN = 200
_SILENT = 100
_GARBAGE = 100
_TCP = "tcp://"


def _address(site: SoakSite) -> tuple[str, int]:
    host, _, port = site.publish.removeprefix(_TCP).rpartition(":")
    return host, int(port)


def _churn(site: SoakSite, rng: Random) -> str:
    """Subscribe and leave, many times."""
    with zmq.Context() as context:
        for _ in range(_CHURN):
            with context.socket(zmq.SUB) as one:
                one.linger = 0
                one.connect(site.publish)
                one.subscribe(rng.choice((b"", b"spec/", b"hb/", b"nothing/")))
                if rng.random() < 0.3:
                    one.poll(50)
            if site.has_ended:
                break
    return f"{_CHURN} subscribers"


def _slow(site: SoakSite, rng: Random) -> str:
    """Subscribe to everything and read nothing."""
    seconds, n = rng.uniform(3.0, 10.0), rng.randrange(1, 20)
    with zmq.Context() as context, ExitStack() as sockets:
        for _ in range(n):
            one = sockets.enter_context(context.socket(zmq.SUB))
            one.linger = 0
            one.rcvhwm = 1
            one.setsockopt(zmq.RCVBUF, 2048)
            one.connect(site.publish)
            one.subscribe(b"")
        site.hold(seconds)
    return f"{n} subscribers that read nothing for {seconds:.1f} s"


def _garbage(site: SoakSite, rng: Random) -> str:
    """Send bytes that are no ZMTP."""
    for _ in range(_GARBAGE):
        with suppress(OSError), socket.create_connection(_address(site), 2.0) as one:
            one.sendall(rng.randbytes(rng.randrange(1, 20_000)))
    return f"{_GARBAGE} connections"


def _silent(site: SoakSite, rng: Random) -> str:
    """Hold connections that say nothing."""
    seconds = rng.uniform(2.0, 6.0)
    with ExitStack() as sockets:
        for _ in range(_SILENT):
            with suppress(OSError):
                sockets.enter_context(socket.create_connection(_address(site), 2.0))
        site.hold(seconds)
    return f"{_SILENT} connections for {seconds:.1f} s"


def _subscription_flood(site: SoakSite, rng: Random) -> str:
    """Subscribe to new prefixes without end."""
    n = rng.randrange(2_000, 20_000)
    with zmq.Context() as context, context.socket(zmq.XSUB) as one:
        one.linger = 0
        one.sndhwm = 1000
        one.connect(site.publish)
        for k in range(n):
            with suppress(zmq.Again):
                one.send(b"\x01spec/%d/" % k, zmq.NOBLOCK)
            if k % 1000 == 0:
                one.poll(10)
    return f"{n} subscriptions"


_REFUSED = Expected(r"connection|refused|closed|cut|subscri", 0, 4)
REFUSED_IN_A_MINUTE: Final = Expected(r"^security\.flood refused (a|\d+) connection", 0, 1)
"""The first are logged at once, the rest after a minute, which may be in a later fault."""
FAULTS: Final = (
    Fault("subscribers.churn", _churn),
    Fault("subscribers.slow", _slow),
    Fault("subscribers.garbage", _garbage, (_REFUSED,)),
    Fault("subscribers.silent", _silent, (_REFUSED,)),
    Fault("subscribers.flood", _subscription_flood, (_REFUSED,)),
)
"""Faults of subscribers."""
