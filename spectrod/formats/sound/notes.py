"""What a sound file says of itself in words: when it began, what made it, what is missing."""

import datetime as dt
from dataclasses import dataclass, field
from pathlib import Path

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NO_RECORDING = "(none)"
"""In place of the name of a recording, which has no brackets."""
_UNLISTED_MAX = 56
"""Room for what counts the gaps that the list has no room for, and for one gap to grow [bytes]."""


def boot_id() -> str:
    """Identify this start of the machine; empty if the system does not say.

    What was written without ``fsync`` is sure to be in a file only until the machine stops.
    """
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def utc(t_utc_ns: int) -> dt.datetime:
    """Make a time of nanoseconds since 1970, cut to microseconds."""
    return _EPOCH + dt.timedelta(microseconds=t_utc_ns // 1000)


@dataclass(slots=True)
class Gaps:
    """Where samples are missing, as text of a bounded length.

    One gap is ``FIRST+COUNT``: the index in the file of the first missing sample, and how many are
    missing; silence stands for them. A count of 0: samples were lost there, and nobody knows how
    many, so that no silence stands for them.

    Attributes
    ----------
    room : int
        Characters that the list may take.
    count, samples : int
        Of all gaps, listed or not.
    """

    room: int
    count: int = 0
    samples: int = 0
    _listed: list[tuple[int, int]] = field(default_factory=list)
    _length: int = 0
    _end: int = -1

    @property
    def is_full(self) -> bool:
        """True once there was no room for a gap."""
        return self.count > len(self._listed)

    def add(self, first: int, n_missing: int) -> None:
        """Note a gap; where there is no room for it, it is only counted.

        One that begins where the last one ends is the same one.
        """
        self.samples += n_missing
        if first == self._end:
            if not self.is_full:
                begin, before = self._listed.pop()
                self._listed.append((begin, before + n_missing))
        else:
            self.count += 1
            self._list(first, n_missing)
        self._end = first + n_missing

    def _list(self, first: int, n_missing: int) -> None:
        # Once one is left out, the list stays as it is: it is all gaps up to a moment.
        length = len(f"{first}+{n_missing} ")
        if (
            self._length + length + _UNLISTED_MAX <= self.room
            and self.count == len(self._listed) + 1
        ):
            self._listed.append((first, n_missing))
            self._length += length

    def text(self) -> str:
        """List them; after the listed ones it says how many more there are."""
        unlisted = self.count - len(self._listed)
        more = [f"and {unlisted} more"] if unlisted else []
        return " ".join([*(f"{first}+{n}" for first, n in self._listed), *more])


@dataclass(frozen=True, slots=True)
class Notes:
    """What does not change while a file is written; texts are of one line."""

    fs: int
    channels: int
    begin_utc_ns: int | None
    source: str
    software: str
    name: str
    boot: str
    recording: str = ""

    def guano(self, gaps: Gaps, n_samples: int) -> str:
        """Describe the file, one "key: value" a line.

        References
        ----------
        .. [1] GUANO 1.0: UTF-8, a version first; ``Timestamp`` is ISO 8601, ``Length`` in s, and
           keys of its own begin with a name of their maker's.
        """
        fields = {
            "GUANO|Version": "1.0",
            "Timestamp": self._timestamp(),
            "Length": f"{n_samples / self.fs:.6f}",
            "Samplerate": str(self.fs),
            "Original Filename": self.name,
            "spectrod|Source": self.source,
            "spectrod|Software": self.software,
            "spectrod|Boot": self.boot,
            # Said also of other writers' files: earlier versions said it of none.
            "spectrod|Recording": self.recording or NO_RECORDING,
            "spectrod|Missing Samples": str(gaps.samples),
            "spectrod|Gap Count": str(gaps.count),
            "spectrod|Gaps": gaps.text(),
        }
        return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)

    def _timestamp(self) -> str:
        if self.begin_utc_ns is None:
            return ""
        return utc(self.begin_utc_ns).isoformat(timespec="microseconds")

    def _when(self) -> str:
        if self.begin_utc_ns is None:
            return ""
        return f" at {utc(self.begin_utc_ns):%H:%M:%S.%f %d/%m/%Y} (UTC)"

    def comment(self, gaps: Gaps) -> str:
        """Describe the file in a sentence or two, as AudioMoth's recorders do.

        They begin ``Recorded at 04:30:00 01/05/2026 (UTC)``, which other programs read as well.
        """
        text = f"Recorded{self._when()} by {self.software}"
        text += f" from {self.source}." if self.source else "."
        text += f" Recording {self.recording}, file" if self.recording else " File"
        text += f" {self.name}."
        if gaps.count:
            text += (
                f" Gaps: {gaps.count}, {gaps.samples} samples missing (first+count): {gaps.text()}"
            )
        return text
