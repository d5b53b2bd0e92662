"""What a picture shows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from spectrod.apps.view.controls import Look
from spectrod.apps.view.history import HistoryRow
from spectrod.apps.view.status import plain
from spectrod.apps.view.traces import Trace
from spectrod.dsp.peak import Peak
from spectrod.dsp.units import Float64Array
from spectrod.wire.schema import Frame


@dataclass(slots=True)
class Scene:
    """The content of the picture."""

    endpoint: str
    now_s: float = 0.0
    has_keys: bool = True
    """Whether keys change the picture."""
    daemon_state: str | None = None
    """State from the last heartbeat of the visible source."""
    waiting_for: str = ""
    """Why that source delivers no samples."""
    silence_s: float = 0.0
    """Time since the last message [s]."""
    alive: bool = False
    hint: str = ""
    """Why nothing may come; empty if unknown."""
    frame: Frame | None = None
    levels: Float64Array | None = None
    """Levels of ``frame``, shape (n_bins,) [dB]."""
    history: Sequence[HistoryRow] = field(default_factory=list)
    """Rows of the waterfall, the newest first."""
    n_rows: int = 0
    """Number of rows of the waterfall since the start."""
    generation: int = 0
    """Changes when rows of the waterfall were forgotten."""
    channels: Sequence[str] = field(default_factory=list)
    """All channels to choose from, each SOURCE/CHANNEL."""
    missed: int = 0
    n_invalid: int = 0
    """Number of messages that did not follow the protocol."""
    invalid: str = ""
    """What was wrong with the last of them."""
    products: Sequence[str] = field(default_factory=list)
    """Products of the visible channel."""
    look: Look = field(default_factory=Look)
    meters: Sequence[str] = field(default_factory=list)
    """Lines of the sound levels of the visible channel."""
    traces: Sequence[Trace] = field(default_factory=list)
    """Lines beside that of the visible channel."""
    peaks: Sequence[Peak] | None = None
    """Strongest tones of the visible frequencies; None without a list."""


def alarm(scene: Scene) -> str:
    """Return why the picture does not move; empty if it does."""
    if scene.alive:
        if scene.waiting_for:
            return waiting_text(scene)
        return "paused; space resumes" if scene.look.is_paused else ""
    text = f"no signal since {scene.silence_s:.1f} s"
    if scene.daemon_state in ("finished", "failed", "stopped"):
        text += f": the daemon has {scene.daemon_state}"
    return text


def waiting_text(scene: Scene) -> str:
    """Return why the daemon's source delivers no samples."""
    return f"the daemon is waiting: {plain(scene.waiting_for)}"


def first_text(scene: Scene) -> str:
    """Return what is known before the first spectrum."""
    text = f"waiting for {plain(scene.endpoint)}"
    if scene.n_invalid:
        return f"{text}: {invalid_text(scene)}"
    if scene.alive and scene.daemon_state is not None:
        if scene.waiting_for:
            return f"{text}: {waiting_text(scene)}"
        return f"{text}: the daemon is {plain(scene.daemon_state)}, no spectrum yet"
    return f"{text}: {scene.hint}" if scene.hint else text


def invalid_text(scene: Scene) -> str:
    """Return the number of invalid messages and what is wrong with the last one."""
    return f"invalid messages: {scene.n_invalid}; the last one: {plain(scene.invalid)}"
