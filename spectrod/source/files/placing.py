"""Places the files of a folder in one stream, by their start times."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.units import NS_PER_S
from spectrod.source.files.instants import RecordedAt

TOLERANCE_S = 2.0
"""Differences below this between a file's end and the next file's start are neither gaps nor
overlaps: names give whole seconds [s]."""

DRIFT_MAX = 200e-6
"""Largest error of a recorder's sample rate by its own clock. Start times of consecutive files may
deviate by this fraction in addition; a larger deviation is the sum of small pauses."""

_HEAD_BYTES = 1 << 16
"""Bytes by which copies of a file are known, beside its size."""

Note = Callable[[Path, str, str], None]
"""Called with a file, its problem and the consequence."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a folder, as described by its header, and its position in the stream.

    Attributes
    ----------
    path : Path
        The file.
    fs : float
        Sample rate [Hz].
    channels : int
        Channels.
    n_samples : int
        Readable samples per channel.
    n_announced : int
        Samples per channel according to the header; more than ``n_samples`` if truncated.
    recorded : RecordedAt or None
        Start of the recording, if known.
    origin : int
        Index of its sample 0 in the stream.
    first : int
        Its first sample that belongs to the stream; earlier ones overlap the preceding file.
    sample_format : SampleFormat or ""
        Format in which it can be read as it is; empty: it is decoded.
    """

    path: Path
    fs: float
    channels: int
    n_samples: int
    n_announced: int
    recorded: RecordedAt | None
    origin: int = 0
    first: int = 0
    sample_format: SampleFormat | Literal[""] = ""

    @property
    def begin(self) -> int:
        """Index in the stream of the file's first sample that belongs to it."""
        return self.origin + self.first

    @property
    def end(self) -> int:
        """Index in the stream after the file's last sample."""
        return self.origin + self.n_samples

    @property
    def t_ns(self) -> int:
        """UTC of sample 0 [ns]; only if known."""
        assert self.recorded is not None
        return self.recorded.utc_ns

    # What ``tell_passes_apart`` asks for.

    @property
    def begin_utc_ns(self) -> int:
        """The same as ``t_ns``."""
        return self.t_ns

    @property
    def end_utc_ns(self) -> int:
        """UTC after its last readable sample [ns]; only if known."""
        return self.t_ns + round(self.n_samples / self.fs * NS_PER_S)

    @property
    def repeat_ns(self) -> int:
        """After what time its local time comes again [ns]: see ``LocalTime``."""
        return self.recorded.repeat_ns if self.recorded else 0

    @property
    def content(self) -> tuple[int, bytes]:
        """Size and first bytes of the file; raises OSError."""
        with self.path.open("rb") as file:
            return self.path.stat().st_size, file.read(_HEAD_BYTES)

    @property
    def mtime_ns(self) -> int:
        """When the file was changed last [ns]; raises OSError."""
        return self.path.stat().st_mtime_ns

    def repeated(self) -> "Member":
        """Return the file as one that was recorded when its local time came the second time."""
        assert self.recorded is not None
        later = replace(self.recorded, utc_ns=self.recorded.utc_ns + self.repeat_ns)
        return replace(self, recorded=later)


def place(members: Iterable[Member], note: Note) -> list[Member]:
    """Assign each file its position in the stream.

    A file that starts ``TOLERANCE_S`` or more after the end of the preceding one leaves a gap: its
    time gives the index of its first sample, counted at the nominal rate from the first file.
    Otherwise it follows directly, unless pauses have added up (see ``DRIFT_MAX``). A truncated file
    ends where its header says, if the next one starts there.

    If a file starts ``TOLERANCE_S`` or more before the end of the preceding one, its samples up to
    that end are skipped, possibly all of them. No time is counted twice.

    Parameters
    ----------
    members : iterable of Member
        At least one file; all of one rate; sorted by time, if they have times.
    note : callable
        Called for each file that loses samples.

    Returns
    -------
    placed : list of Member
        In the order of the stream, without skipped files.
    """
    first, *rest = members
    placed = [first]
    anchor = first
    for member in rest:
        before = placed[-1]
        if member.recorded is None:
            placed.append(replace(member, origin=before.end))
            continue
        end = _end(before, member)
        late_s = _excess_s(anchor, before, end, member)
        if late_s < 0.0:
            n_before = round(-late_s * member.fs)
            if n_before >= member.n_samples:
                note(member.path, _overlap(member, before, late_s), "left out")
                continue
            consequence = f"its first {-late_s:.1f} s are left out"
            note(member.path, _overlap(member, before, late_s), consequence)
            placed.append(replace(member, origin=end - n_before, first=n_before))
        elif late_s > 0.0:
            stated = round((member.t_ns - first.t_ns) * 1e-9 * member.fs)
            placed.append(replace(member, origin=max(end + 1, stated)))
        else:
            placed.append(replace(member, origin=end))
        if late_s:
            anchor = placed[-1]
    return placed


def _overlap(member: Member, before: Member, late_s: float) -> str:
    return f"{member.path}: begins {-late_s:.1f} s before {before.path.name} ends"


def _end(before: Member, member: Member) -> int:
    """Return the end of the preceding file; the header of a truncated file may be wrong."""
    announced = before.origin + before.n_announced
    if _late_s(before, announced, member) > -TOLERANCE_S:
        return announced
    return before.end


def _excess_s(anchor: Member, before: Member, end: int, member: Member) -> float:
    """Return the delay of a file's start after an end [s]; 0 within the tolerances.

    The start is compared with the samples since the preceding file, and since the last gap.
    """
    allowed_s = TOLERANCE_S + DRIFT_MAX * (member.t_ns - anchor.t_ns) * 1e-9
    found_s = [
        late_s
        for since, limit_s in ((before, TOLERANCE_S), (anchor, allowed_s))
        if abs(late_s := _late_s(since, end, member)) >= limit_s
    ]
    return next((late_s for late_s in found_s if late_s < 0.0), next(iter(found_s), 0.0))


def _late_s(since: Member, end: int, member: Member) -> float:
    """Delay of a file's start after an end, counted in samples since another file's start [s]."""
    return (member.t_ns - since.t_ns) * 1e-9 - (end - since.origin) / member.fs
