"""Text metadata of a sound file: its begin, the software, and gaps."""

import datetime as dt
from dataclasses import dataclass, field
from pathlib import Path

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NO_RECORDING = "(none)"
"""Stands for no recording; names of recordings have no brackets."""
_UNLISTED_MAX = 56
"""Reserve for the number of unlisted gaps, and for the growth of one gap [bytes]."""


def boot_id() -> str:
    """Return an identifier of the present boot; empty if the system has none.

    Data written without ``fsync`` are in a file for certain only within the same boot.
    """
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def utc(t_utc_ns: int) -> dt.datetime:
    """Convert nanoseconds since 1970 to a datetime, truncated to microseconds."""
    return _EPOCH + dt.timedelta(microseconds=t_utc_ns // 1000)


@dataclass(slots=True)
class Gaps:
    """List of gaps, as text of a bounded length.

    A gap is ``FIRST+COUNT``: the index in the file of the first missing sample, and the number of
    missing samples, which are replaced by silence. A count of 0 means that an unknown number of
    samples was lost, for which there is no silence.

    Attributes
    ----------
    room : int
        Limit of the text's length [characters].
    count, samples : int
        Number and total samples of all gaps, listed or not.
    """

    room: int
    count: int = 0
    samples: int = 0
    _listed: list[tuple[int, int]] = field(default_factory=list)
    _length: int = 0
    _end: int = -1

    @property
    def is_full(self) -> bool:
        """True after a gap did not fit."""
        return self.count > len(self._listed)

    def add(self, first: int, n_missing: int) -> None:
        """Add a gap; one that does not fit is only counted.

        A gap that begins at the end of the last one extends that.
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
        # After an omission the list stays unchanged: it has all gaps up to that time.
        length = len(f"{first}+{n_missing} ")
        if (
            self._length + length + _UNLISTED_MAX <= self.room
            and self.count == len(self._listed) + 1
        ):
            self._listed.append((first, n_missing))
            self._length += length

    def text(self) -> str:
        """Return the listed gaps, followed by the number of others."""
        unlisted = self.count - len(self._listed)
        more = [f"and {unlisted} more"] if unlisted else []
        return " ".join([*(f"{first}+{n}" for first, n in self._listed), *more])


@dataclass(frozen=True, slots=True)
class Notes:
    """Constant metadata of a file; texts have one line."""

    fs: int
    channels: int
    begin_utc_ns: int | None
    source: str
    software: str
    name: str
    boot: str
    recording: str = ""

    def guano(self, gaps: Gaps, n_samples: int) -> str:
        """Return the GUANO metadata, one "key: value" per line.

        References
        ----------
        .. [1] GUANO 1.0: UTF-8, a version first; ``Timestamp`` is ISO 8601, ``Length`` in s, and
           custom keys begin with a namespace.
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
            # Written by all writers: files of earlier versions have no such line.
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
        """Describe the file in a sentence or two, like AudioMoth's recorders.

        They begin ``Recorded at 04:30:00 01/05/2026 (UTC)``, which other programs parse.
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
