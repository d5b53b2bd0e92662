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
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable
from spectrod.measure.features.features_config import FeaturesConfig

_QUANTITIES = ("LZeq", "LAeq", "L10", "L90")
_BANDS_HZ = 1000.0
"""Width of the bands of indices; their tops are multiples of it."""
_EVENTS_HZ = (2000.0, 6000.0)
"""Band of events where the rate has it."""
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
            f"output = {quoted(self._path(str(self.output)))}",
            "folder of the results; or, without merged, s3://BUCKET/FOLDER",
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
        if indices := indices_of(self._fs):
            yield ""
            yield _with_comment("# [features]", 'of the product "features"')
            yield f"# quantities = {_list(indices)}"
        yield ""
        yield _with_comment("# [detect]", 'of the product "detect": events over the noise floor')
        if self.time_zone:
            yield f"# time_zone = {quoted(self.time_zone)}"
        low_hz, high_hz = _event_band_hz(self._fs)
        yield f"# f_min_hz = {low_hz:g}"
        yield f"# f_max_hz = {high_hz:g}"

    @property
    def _fs(self) -> float:
        """The lowest of the rates that most files of each deployment have [Hz]."""
        return min(one.layouts[0][0][0] for one in self.deployments if one.files)

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


def indices_of(fs: float) -> list[str]:
    """Return the acoustic indices that a rate [Hz] has, by the names that a job has.

    Those of published parameters, where the rate has their bands; else bands end below fs / 2.
    """
    top_hz = fs / 2.0 // _BANDS_HZ * _BANDS_HZ
    forms = (
        ("ACI", "ACI_10s", "ACI_60s"),
        ("NDSI", f"NDSI_1000-2000Hz_2000-{top_hz:.0f}Hz"),
        ("ADI", f"ADI_0-{top_hz:.0f}Hz_1000Hz_-50dB" if top_hz > _BANDS_HZ else ""),
    )
    fitting = ([name for name in names if name and _has_index(fs, name)] for names in forms)
    return [names[0] for names in fitting if names]


def _has_index(fs: float, name: str) -> bool:
    try:
        FeaturesConfig("features", quantities=(name,), interval_s=MEASURED_INTERVAL_S).check(fs)
    except ConfigError:
        return False
    return True


def _event_band_hz(fs: float) -> tuple[float, float]:
    """Return the band of the example of events [Hz]: the middle half, if 2 to 6 kHz is too high."""
    if _EVENTS_HZ[1] <= fs / 2.0:
        return _EVENTS_HZ
    return float(f"{fs / 8.0:.2g}"), float(f"{3.0 * fs / 8.0:.2g}")


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
