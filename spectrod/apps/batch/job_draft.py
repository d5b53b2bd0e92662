"""The commented JOB.toml that ``batch init`` writes of a folder of recordings."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from spectrod.apps.batch.command_text import hours
from spectrod.apps.batch.job import MEASURED_INTERVAL_S
from spectrod.apps.batch.survey import PRODUCTS, SurveyedDeployment
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.text import printable

_QUANTITIES = ("LZeq", "LAeq", "L10", "L90")
_INDICES = ("ACI", "NDSI", "ADI")
_NOTES_MAX = 5
"""Most findings that are comments of a deployment."""
_COMMENT_COLUMN = 40


@dataclass(frozen=True, slots=True)
class JobDraft:
    """What a JOB.toml says.

    Attributes
    ----------
    name : str
        Name of the job.
    folder : Path
        Folder of the recordings, absolute.
    output : Path
        Folder of the results, absolute, beside JOB.toml: paths there are relative.
    deployments : sequence of SurveyedDeployment
        At least one with a file that states a time.
    time_zone : str
        Of tables and pictures; empty: UTC.
    """

    name: str
    folder: Path
    output: Path
    deployments: Sequence[SurveyedDeployment]
    time_zone: str = ""

    def text(self) -> str:
        """Return the content of the file."""
        blocks = [self._job(), self._levels(), *map(self._deployment, self.deployments)]
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"

    def _job(self) -> Iterator[str]:
        yield f"# A job of spectrod batch for {printable(self.folder)}; any line may be changed."
        yield "# The keys of all tables: docs/archives.md. Next: spectrod batch run JOB.toml"
        yield ""
        yield "[job]"
        yield f"name = {quoted(self.name)}"
        yield _with_comment(
            f"output = {quoted(self._path(str(self.output)))}", "folder of the results"
        )
        yield _with_comment('unit = "day"', 'of UTC; or "hour"')
        yield _with_comment(
            f"products = {_list(PRODUCTS)}",
            'Files of each unit; "features", "detect" and "spectra" are others.',
        )
        yield _with_comment(
            'merged = ["pyramid"]', 'what spectrod web shows; "zarr" is one store of all minutes'
        )

    def _levels(self) -> Iterator[str]:
        yield "[levels]"
        yield f"quantities = {_list(_QUANTITIES)}"
        yield _with_comment(f"interval_s = {MEASURED_INTERVAL_S:g}", "of each row")
        if self.time_zone:
            line = f"time_zone = {quoted(self.time_zone)}"
            line = _with_comment(line, "of times; units stay days of UTC")
            yield from (line, "", "[picture]", line)
        yield ""
        yield _with_comment("# [features]", 'of the product "features"')
        yield f"# quantities = {_list(_INDICES)}"
        yield ""
        yield _with_comment("# [detect]", 'of the product "detect": events over the noise floor')
        yield "# f_min_hz = 2000"
        yield "# f_max_hz = 6000"

    def _deployment(self, found: SurveyedDeployment) -> Iterator[str]:
        one = found.deployment
        # A table without a file that has a time would have no units.
        off = "" if found.files else "# "
        yield f"{off}[deployments.{one.name}]"
        yield from (f"# {line}" for line in (summary(found), *notes(found, _NOTES_MAX)))
        yield f"{off}inputs = {_list([self._path(text) for text in one.inputs])}"
        if not one.recursive:
            yield f"{off}recursive = false"
        if one.time_format:
            yield f"{off}time_format = {quoted(one.time_format)}"
        yield from (f"{off}{line}" for line in _time_zone(found))
        yield from (f"{off}{line}" for line in self._calibration(found.calibrations))

    def _calibration(self, paths: Sequence[Path]) -> Iterator[str]:
        if len(paths) == 1:
            yield f"calibration = {quoted(self._path(str(paths[0])))}"
        elif paths:
            yield "# Of these calibrations one may count; without, levels are in dBFS."
            yield from (f"# calibration = {quoted(self._path(str(path)))}" for path in paths)
        else:
            yield _with_comment(
                '# calibration = "NAME.toml"',
                "without one, levels are in dBFS: docs/measurement.md",
            )

    def _path(self, text: str) -> str:
        """Return a path as the file says it: from its folder on, if it lies there."""
        path = os.path.relpath(text, self.output.parent)
        # A ~ at the begin stands for the folder of a user.
        return text if path.startswith(("..", "~")) else path


def _time_zone(found: SurveyedDeployment) -> Iterator[str]:
    if found.deployment.time_zone:
        yield f"time_zone = {quoted(found.deployment.time_zone)}"
    elif found.n_without_zone:
        rule = f"{found.n_without_zone} times state no zone and are taken as UTC"
        yield _with_comment('# time_zone = "Europe/Berlin"', rule)


def summary(found: SurveyedDeployment) -> str:
    """Return what a deployment has, in a line."""
    files = f"{found.n_files} file{'s' * (found.n_files != 1)}"
    if not found.files:
        return f"{files}; none can be put on a time line"
    (fs, channels), _ = found.layouts[0]
    begin, end = (_utc(ns) for ns in (found.files[0].recorded.utc_ns, found.end_utc_ns))
    return printable(
        f"{files}, {hours(found.sound_s)} of sound, {begin} to {end}; {found.formats}, "
        f"{fs:g} Hz x {channels}; times: {found.origins}"
    )


def notes(found: SurveyedDeployment, n_max: int) -> list[str]:
    """Return the schedule of the files of a deployment and what is odd, in at most some lines."""
    lines = []
    if len(found.layouts) > 1:
        others = ", ".join(f"{n} of {fs:g} Hz x {channels}" for (fs, channels), n in found.layouts)
        lines.append(f"rates or channels differ: {others} files; of a day the most common count")
    lines += [f"{unit.name}: refused: {unit.refused}" for unit in found.units if unit.refused]
    lines += [f"{one.kind}: {one.text}" for one in found.findings if one.kind != "format"]
    more = [f"and {len(lines) - n_max} more, which spectrod batch plan lists"]
    shown = lines if len(lines) <= n_max else lines[:n_max] + more
    return [printable(line) for line in shown]


def quoted(text: str) -> str:
    """Return a text as a basic string of TOML; bytes that are no UTF-8 are shown."""
    shown = text.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return msgspec.json.encode(shown).decode().replace("\x7f", "\\u007f")


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"


def _with_comment(line: str, comment: str) -> str:
    if len(line) > _COMMENT_COLUMN:
        return f"# {comment}\n{line}"
    return f"{line:<{_COMMENT_COLUMN}}  # {comment}"


def _utc(ns: int) -> str:
    return f"{np.datetime64(ns // NS_PER_S, 's')}Z"
