"""Faults of sources: a FIFO and its writer, a sound card, its process and its server."""

import os
import signal
from random import Random
from typing import Final

from spectrod.apps.bench.fault_soak.fault import Fault
from spectrod.apps.bench.fault_soak.journal import Expected
from spectrod.apps.bench.fault_soak.site import SoakSite
from spectrod.lib.errors import InternalError

_SILENCE_S = 5.0
_CAPTURE = b"spectrod.source.capture"
CARD_WAITS: Final = Expected(r"sound card .*: waiting: ", 1, 3)
"""A sound card delivers nothing."""
CARD_BACK: Final = Expected(r"sound card .*: back after ")
"""It delivers again."""
_CHECKS = Expected(r": (digital silence for over|no longer silent)", 0, 8)
NO_LONGER_SILENT: Final = Expected(r": no longer silent", 0, 4)
"""A player that starts late may end a silence after the next fault has started."""
_GAP = Expected(r"^source\.gap |samples lost in", 0, 2)
_SUSPECTED = Expected(r"suspected", 0, 2)


def _stall(site: SoakSite, rng: Random) -> str:
    seconds = rng.uniform(0.5, 9.0)
    site.feeder.stall()
    site.hold(seconds)
    site.feeder.go_on()
    return f"{seconds:.1f} s"


def _new_writer(site: SoakSite, rng: Random) -> str:
    seconds, is_torn = rng.uniform(0.0, 4.0), rng.random() < 0.5
    site.feeder.leave(is_torn=is_torn)
    site.hold(seconds)
    site.feeder.go_on()
    return f"after {seconds:.1f} s{', torn' if is_torn else ''}"


def _new_fifo(site: SoakSite, rng: Random) -> str:
    """Remove the FIFO and make it again; its writer comes back."""
    seconds, path = rng.uniform(0.5, 3.0), site.folder / "fifo"
    site.feeder.leave(is_torn=False)
    # What is in a FIFO that has lost its name can still be read.
    path.unlink()
    site.hold(seconds)
    os.mkfifo(path)
    site.feeder.go_on()
    return f"after {seconds:.1f} s"


def _capture_process(site: SoakSite) -> int:
    pid = site.child(_CAPTURE)
    if pid is None:
        raise InternalError("the daemon has no capture process")
    return pid


def _capture_killed(site: SoakSite, _rng: Random) -> str:
    os.kill(_capture_process(site), signal.SIGKILL)
    return "SIGKILL"


def _capture_stopped(site: SoakSite, rng: Random) -> str:
    """Let the capture process hang; the daemon kills it."""
    os.kill(_capture_process(site), signal.SIGSTOP)
    site.hold(seconds := rng.uniform(3.0, 5.0))
    return f"SIGSTOP for {seconds:.1f} s"


def _server_restarted(site: SoakSite, rng: Random) -> str:
    seconds = rng.uniform(0.0, 5.0)
    assert site.pulse is not None
    site.stop_player()
    site.pulse.kill()
    site.hold(seconds)
    site.pulse.start()
    site.player = site.pulse.play_numbered()
    return f"after {seconds:.1f} s"


def _server_stopped(site: SoakSite, rng: Random) -> str:
    """Let the sound server stand still; it delivers nothing, and then all or a part."""
    seconds = rng.uniform(0.3, 4.0)
    assert site.pulse is not None
    assert site.pulse.process is not None
    site.pulse.process.send_signal(signal.SIGSTOP)
    site.hold(seconds)
    site.pulse.process.send_signal(signal.SIGCONT)
    return f"SIGSTOP for {seconds:.1f} s"


def _no_card(site: SoakSite) -> str:
    return "" if site.pulse else "PulseAudio is missing"


_STALLED = Expected(r"waiting: nothing is written to", 0, 1)
_NO_WRITER = Expected(r"waiting: no program writes to", 0, 1)
"""None where the next writer comes at once."""
_NO_FIFO = Expected(r"waiting: (no program writes to|.*No such file)", 1, 3)
"""Its writer leaves, it is gone, and it is back before a writer that is slow."""
OF_CARD: Final = (_CHECKS, _GAP, _SUSPECTED)
"""What may be found in its samples."""
FAULTS: Final = (
    Fault("capture.stall", _stall, (_STALLED, _CHECKS)),
    Fault(
        "capture.new_writer",
        _new_writer,
        (_NO_WRITER, Expected(r"unfinished sample, dropped", 0, 1), _CHECKS, _GAP),
    ),
    Fault("capture.new_fifo", _new_fifo, (_NO_FIFO, _CHECKS, _GAP)),
    Fault("capture.killed", _capture_killed, (CARD_WAITS, CARD_BACK, *OF_CARD), _no_card),
    Fault("capture.stopped", _capture_stopped, (CARD_WAITS, CARD_BACK, *OF_CARD), _no_card),
    Fault("server.restarted", _server_restarted, (CARD_WAITS, CARD_BACK, *OF_CARD), _no_card),
    Fault(
        "server.stopped",
        _server_stopped,
        (
            Expected(CARD_WAITS.pattern, 0, 3),
            Expected(CARD_BACK.pattern, 0, 1),
            Expected(r"delivers in bursts", 0, 1),
            *OF_CARD,
        ),
        _no_card,
    ),
)
"""Faults of sources."""
