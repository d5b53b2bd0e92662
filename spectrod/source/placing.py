"""Files of a folder, placed in one stream by the times at which they begin."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from spectrod.source.recorded_at import RecordedAt

TOLERANCE_S = 2.0
"""Smaller differences between a file's end and the next file's time are neither gaps nor overlaps:
names give whole seconds."""

DRIFT_MAX = 200e-6
"""Largest error of a recorder's sample rate by its own clock. The times of consecutive files may
differ from their samples by this much more; a larger difference is the sum of small pauses."""

Note = Callable[[Path, str, str], None]
"""Takes a file, what is wrong with it, and what becomes of it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a folder, as its header says, and its place in the stream.

    Attributes
    ----------
    path : Path
        The file.
    fs : float
        Sample rate [Hz].
    channels : int
        Channels.
    n_samples : int
        Samples a channel that can be read.
    n_announced : int
        Samples a channel that its header announces; more than ``n_samples`` of a truncated file.
    recorded : RecordedAt or None
        When it began, if anything says so.
    origin : int
        Index of its sample 0 in the stream.
    first : int
        Its first sample that belongs to the stream: those before overlap the file before.
    """

    path: Path
    fs: float
    channels: int
    n_samples: int
    n_announced: int
    recorded: RecordedAt | None
    origin: int = 0
    first: int = 0

    @property
    def begin(self) -> int:
        """Index in the stream of the first sample that belongs to it."""
        return self.origin + self.first

    @property
    def end(self) -> int:
        """Index after the last one."""
        return self.origin + self.n_samples

    @property
    def t_ns(self) -> int:
        """UTC of sample 0 [ns]; only where it is known."""
        assert self.recorded is not None
        return self.recorded.utc_ns


def place(members: Iterable[Member], note: Note) -> list[Member]:
    """Give each file its place in the stream.

    A file that begins ``TOLERANCE_S`` or more after the end of the one before leaves a gap: the
    index of its first sample is what its time says, counted at the nominal rate from the first
    file's. Below that it follows directly, unless pauses have added up (see ``DRIFT_MAX``). A
    truncated file ends where its header says, if the next one begins there.

    If a file begins ``TOLERANCE_S`` or more before the end of the one before, its samples up to
    that end are left out; that may be all of them. No time is counted twice.

    Parameters
    ----------
    members : iterable of Member
        At least one, of one rate; in the order of their times, if they have times.
    note : callable
        Called with each file that loses samples.

    Returns
    -------
    placed : list of Member
        In the order of the stream, without those that are left out.
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
    """Find where the file before ends: if it is truncated, its header may be wrong."""
    announced = before.origin + before.n_announced
    if _late_s(before, announced, member) > -TOLERANCE_S:
        return announced
    return before.end


def _excess_s(anchor: Member, before: Member, end: int, member: Member) -> float:
    """Say by how much a file begins after an end [s]; 0 where that is within the tolerances.

    Its time is compared with the samples since the file before, and with those since the last gap.
    """
    allowed_s = TOLERANCE_S + DRIFT_MAX * (member.t_ns - anchor.t_ns) * 1e-9
    found_s = [
        late_s
        for since, limit_s in ((before, TOLERANCE_S), (anchor, allowed_s))
        if abs(late_s := _late_s(since, end, member)) >= limit_s
    ]
    return next((late_s for late_s in found_s if late_s < 0.0), next(iter(found_s), 0.0))


def _late_s(since: Member, end: int, member: Member) -> float:
    """By how much a file begins after an end, by the samples since another file's begin [s]."""
    return (member.t_ns - since.t_ns) * 1e-9 - (end - since.origin) / member.fs
