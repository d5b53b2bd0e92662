"""Faults of requests and of the configuration."""

import json
import signal
import time
from contextlib import suppress
from random import Random
from typing import Final

import zmq

from spectrod.apps.bench.fault_soak.fault import Fault
from spectrod.apps.bench.fault_soak.journal import Expected
from spectrod.apps.bench.fault_soak.site import SoakSite
from spectrod.lib.errors import InternalError, SpectrodError

_FLOOD = 3000
_INVALID = 60
_REPLY_MS = 5000
_RELOAD_S, _LOOK_S = 10.0, 0.1
_EXTRA = "products.extra"
_CHANGED = Expected(r"^control\.(set|reload) ", 0, 8)
_WRONG: Final[tuple[tuple[str, dict[str, object]], ...]] = (
    ("set", {"changes": {"analysis.hop": 0}}),
    ("set", {"changes": {"analysis.hop": 10**30}}),
    ("set", {"changes": {"nothing.there": 1}}),
    ("set", {"changes": {"analysis.win_length": 1 << 40}}),
    ("set", {"changes": {"publish.queue_frames": 5}}),
    ("get", {"key": "a" * 5000}),
    ("nothing", {}),
    ("replay", {"topic": "spec/tone/0/dbfs/", "first_seq": -1}),
    ("record.start", {"name": "../../x.wav"}),
    ("record.start", {"source": "tone", "name": "x.wav", "duration_s": 1e300}),
    ("source.add", {"name": "x", "settings": {"uri": "/etc/passwd"}}),
    ("pause", {"source": "nobody"}),
    ("latest", {"topic": "spec/", "timeout_s": 1e9}),
)
_DROP_IN: Final = """
[products.extra]
sources = ["scratch"]
win_length = 2048
hop = {hop}
"""
_BROKEN: Final = (
    "analysis = { hop = 0 }\n",
    "analysis = { window = 'nothing' }\n",
    "[analysis\n",
    "[nothing]\nx = 1\n",
    '[recordings.wav]\nsamples = "mp3"\n',
    "[sources.tone]\nsamplerate = -1\n",
    "\x00\x01\x02",
    "a" * 300_000,
)


def _invalid(site: SoakSite, rng: Random) -> str:
    """Send requests that break a rule, and messages that are no requests."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger = 0
        dealer.connect(site.endpoint)
        for number in range(_INVALID):
            if rng.random() < 0.4:
                dealer.send(rng.randbytes(rng.randrange(500)))
            else:
                method, params = rng.choice(_WRONG)
                dealer.send_json({"v": 1, "id": number, "method": method, "params": params})
            if not dealer.poll(_REPLY_MS):
                raise InternalError(f"no reply to an invalid request within {_REPLY_MS} ms")
            reply = json.loads(dealer.recv_multipart()[0])
            if reply["ok"] or reply["error"]["code"] == "internal":
                raise InternalError(f"an invalid request got {reply}")
    return f"{_INVALID} requests"


def _flood(site: SoakSite, rng: Random) -> str:
    """Send many requests and read no reply."""
    method = rng.choice(("status", "metrics", "events"))
    request = json.dumps({"v": 1, "id": 1, "method": method}).encode()
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger = 0
        dealer.connect(site.endpoint)
        for _ in range(_FLOOD):
            with suppress(zmq.Again):
                dealer.send(request, zmq.NOBLOCK)
        site.hold(rng.uniform(0.5, 2.0))
    return f"{_FLOOD} requests {method!r}"


def _change(site: SoakSite, rng: Random) -> str:
    """Add a product, change it and remove it."""
    win_length = 1 << rng.randrange(6, 15)
    for change in (
        {_EXTRA: {"sources": ["scratch"], "win_length": win_length, "hop": win_length // 2}},
        {f"{_EXTRA}.window": rng.choice(("hann", "flattop", "blackman"))},
        {"log.level": rng.choice(("info", "debug"))},
        {"log.level": "info"},
        {_EXTRA: None},
    ):
        site.ask("set", changes=change)
        site.hold(rng.uniform(0.0, 0.5))
    return f"a product of {win_length} samples"


def _pictures(site: SoakSite, rng: Random) -> str:
    """Start recordings on request, and stop them."""
    kind, number = rng.choice(("png", "spd", "wav", "flac")), rng.randrange(10**9)
    site.ask("record.start", source="tone", name=f"x{number}.{kind}", duration_s=60.0)
    site.hold(rng.uniform(0.2, 3.0))
    site.ask("record.stop", name=f"x{number}.{kind}")
    return f"a .{kind}"


def _broken_drop_in(site: SoakSite, rng: Random) -> str:
    """Reload with a file that breaks a rule, then without it.

    A peer gets the reason as the reply; SIGHUP has no reply, so the log has it.
    """
    text, is_signal = rng.choice(_BROKEN), rng.random() < 0.5
    site.write_drop_in("50-soak.toml", text)
    error = _reload(site, is_signal=is_signal)
    site.write_drop_in("50-soak.toml", "")
    if "50-soak.toml" not in error:
        raise InternalError(f"a reload with {text[:40]!r}: {error or 'was accepted'}")
    site.ask("reload")
    return f"{text[:40]!r}{', by SIGHUP' if is_signal else ''}"


def _reload(site: SoakSite, *, is_signal: bool) -> str:
    """Reload the configuration; return the error, "" without one."""
    if not is_signal:
        try:
            site.ask("reload")
        except SpectrodError as error:
            return str(error)
        return ""
    before_ns = site.ask("status")["daemon"]["reload"]["t_utc_ns"]
    site.process.send_signal(signal.SIGHUP)
    deadline_s = time.monotonic() + _RELOAD_S
    while time.monotonic() < deadline_s:
        found = site.ask("status")["daemon"]["reload"]
        if found["t_utc_ns"] != before_ns:
            return str(found["error"])
        site.hold(_LOOK_S)
    raise InternalError(f"no reload within {_RELOAD_S:g} s of SIGHUP")


def _changed_drop_in(site: SoakSite, rng: Random) -> str:
    """Reload with a product and another level of the log, then without."""
    hop = rng.randrange(256, 9600)
    site.write_drop_in("60-soak.toml", _DROP_IN.format(hop=hop))
    site.ask("reload")
    site.hold(rng.uniform(0.2, 2.0))
    site.write_drop_in("60-soak.toml", "")
    site.ask("reload")
    return f"a product with hop={hop}"


FAULTS: Final = (
    Fault("control.invalid", _invalid),
    Fault("control.flood", _flood, (Expected(r"flood|requests", 0, 2),)),
    Fault("control.change", _change, (_CHANGED,)),
    Fault("control.record", _pictures),
    Fault(
        "configuration.broken",
        _broken_drop_in,
        (Expected(r"50-soak\.toml", 0, 1), _CHANGED),
    ),
    Fault("configuration.changed", _changed_drop_in, (_CHANGED,)),
)
"""Faults of requests and of files of the configuration."""
