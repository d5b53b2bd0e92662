"""Level statistics as numbers: NPZ with all counts, CSV with the usual levels."""

import csv
import dataclasses
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.formats.description import Description, spec_fields, stored_spec
from spectrod.formats.export.npz import damage_as_value_error, read_array, read_text
from spectrod.formats.longterm.statistics import EXCEEDED, LevelStatistics, level_unit
from spectrod.formats.picture.recorded_spans import NO_PAUSES, Pauses
from spectrod.lib.errors import InputError, SpectrodError

_SCHEMA = "spectrod.levels"
_VERSION = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """Time span of the rows, and gaps in it.

    Attributes
    ----------
    begin_utc_ns, end_utc_ns : int
        UTC of the first row's first sample and of the last row's end [ns].
    gaps, gap_samples : int
        Discontinuities between rows, and the samples missing there.
    pauses : Pauses
        Those of them that a recorder's schedule explains.
    """

    begin_utc_ns: int = 0
    end_utc_ns: int = 0
    gaps: int = 0
    gap_samples: int = 0
    pauses: Pauses = NO_PAUSES

    def fields(self) -> dict[str, Any]:
        """Return the fields of files, as plain values; those of pauses if there are any."""
        names = ("begin_utc_ns", "end_utc_ns", "gaps", "gap_samples")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        return found | ({"pauses": self.pauses._asdict()} if self.pauses.n_pauses else {})


def write_npz(path: Path, statistics: LevelStatistics, about: Description, span: Span) -> None:
    """Write all counts and the usual levels; ``read_npz`` reads them back.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    edges, density = statistics.density()
    arrays: dict[str, Any] = {
        "f": about.spec.frequencies,
        "level_edges": edges,
        "density": density,
        "percent": np.array(EXCEEDED),
        "exceeded": np.stack([statistics.exceeded(percent) for percent in EXCEEDED]),
        "mean": statistics.mean,
        "description": np.array(json.dumps(_document(statistics, about, span))),
        **statistics.state(),
    }
    with path.open("xb") as file:
        np.savez_compressed(file, **arrays)


def read_npz(path: str | os.PathLike[str]) -> LevelStatistics:
    """Read statistics back, to inspect them or to merge others into them.

    Raises
    ------
    InputError
        If the file cannot be read, or is not such a file.
    """
    name = os.fspath(path)
    try:
        with damage_as_value_error(), zipfile.ZipFile(name) as archive:
            return _read(archive)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from error
    except SpectrodError as error:
        raise InputError(f"{name}: {error}") from error
    except (LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{name}: no level statistics of spectrod") from error


def _read(archive: zipfile.ZipFile) -> LevelStatistics:
    with archive.open("description.npy") as member:
        document = json.loads(read_text(member))
    if (document["schema"], document["v"]) != (_SCHEMA, _VERSION):
        raise InputError(f"not level statistics of version {_VERSION}")
    spec = stored_spec(document["spec"])
    statistics = LevelStatistics(spec, float(document["step_db"]))
    state = {}
    for key, like in statistics.state().items():
        with archive.open(f"{key}.npy") as member:
            # Never unpack more than the statistics themselves take.
            lengths = statistics.counts.shape if key == "counts" else like.shape
            state[key] = read_array(member, lengths, like.dtype)
    statistics.restore(state)
    return statistics


def write_csv(path: Path, statistics: LevelStatistics, about: Description, span: Span) -> None:
    """Write a line for each signal and frequency: mean, extremes and exceedance levels.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    text = io.StringIO()
    for key, value in _document(statistics, about, span).items():
        text.write(f"# {key}: {json.dumps(value)}\n")
    writer = csv.writer(text, lineterminator="\n")
    names = [f"L{percent}" for percent in EXCEEDED]
    writer.writerow(["signal", "frequency_hz", "mean", "min", "max", *names])
    exceeded = np.stack([statistics.exceeded(percent) for percent in EXCEEDED])
    for signal, name in enumerate(about.signals):
        table = np.vstack(
            [
                statistics.mean[signal],
                statistics.least[signal],
                statistics.greatest[signal],
                exceeded[:, signal],
            ]
        ).T
        for f_hz, levels in zip(about.spec.frequencies.tolist(), table.tolist(), strict=True):
            writer.writerow([name, f"{f_hz:.10g}", *(f"{level:.2f}" for level in levels)])
    path.write_bytes(text.getvalue().encode("utf-8", "replace"))


def _document(statistics: LevelStatistics, about: Description, span: Span) -> dict[str, Any]:
    spec = about.spec
    return {
        "schema": _SCHEMA,
        "v": _VERSION,
        "unit": level_unit(spec),
        "reference": spec.scale.reference,
        "step_db": statistics.step_db,
        "n_rows": statistics.n_rows,
        "row_s": spec.row_s,
        **span.fields(),
        "source": about.source,
        "signals": list(about.signals),
        "software": about.software,
        "cal_id": about.cal_id,
        "attributes": about.attributes,
        "spec": spec_fields(spec),
    }
