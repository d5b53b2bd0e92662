"""NPY files: the values as one array, and a JSON file beside it that describes them."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.dsp.row_grid import as_number
from spectrod.dsp.spectrum_rules import Output
from spectrod.formats.export.attributes import Coverage, elapsed_time, global_attributes, iso_time
from spectrod.formats.export.export_rows import Rows
from spectrod.formats.export.export_writer import ExportWriter
from spectrod.formats.export.layout import frequency_edges
from spectrod.formats.whole_files import check_writable, whole_file

_HEADER_BYTES = 128
_MAGIC = b"\x93NUMPY\x01\x00"


class NpyWriter(ExportWriter):
    """Writes values, (rows, signals, values), and ``NAME.npy.json``; see ``ExportWriter``.

    An .npy file holds only one array, so the JSON file has the axes, the description, and a list of
    runs. A run begins where a row does not follow the one before, is cut off, or comes from another
    engine. The JSON file appears just before the array. spectrod does not read these files back;
    use .npz for that.
    """

    def _check(self) -> None:
        check_writable(self.path)
        check_writable(self._beside)

    @property
    def _beside(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def _open(self, part: Path) -> None:
        self._file = self._stack.enter_context(closing(part.open("xb")))
        self._file.write(bytes(_HEADER_BYTES))
        notes = self._stack.enter_context(whole_file(self._beside))
        self._notes = self._stack.enter_context(closing(notes.open("x", encoding="ascii")))
        self._written = 0
        self._engine = -1
        self._cut = 0
        self._coverage = Coverage(self.description)
        self._write_axes()

    def _write(self, rows: Rows) -> None:
        self._coverage.add(rows)
        self._write_runs(rows)
        self._file.write(np.ascontiguousarray(rows.values).data)
        self._written += len(rows)

    def _close(self) -> None:
        spec = self.description.spec
        rest: dict[str, Any] = {"rows": self._written, **self._coverage.attributes()}
        rest |= self._end_attributes()
        self._notes.write("\n],\n" + json.dumps(rest)[1:] + "\n")
        self._notes.flush()
        self._file.seek(0)
        self._file.write(_header(spec.output, (self._written, *self._row_shape)))
        self._file.flush()

    @property
    def _row_shape(self) -> tuple[int, int]:
        spec = self.description.spec
        return spec.n_signals, spec.n_values

    def _write_axes(self) -> None:
        spec = self.description.spec
        about: dict[str, Any] = {
            "dimensions": ["time", "channel", "frequency"],
            "unit": spec.scale.unit,
            "reference": spec.scale.reference,
            "channel_name": self.description.signals,
            "frequency_hz": spec.frequencies.tolist(),
            "frequency_edges_hz": frequency_edges(spec).tolist(),
            "row_samples": as_number(spec.row_step),
            "attributes": global_attributes(self.description, self.options.attributes),
        }
        self._notes.write(json.dumps(about)[:-1] + ',\n"runs": [')

    def _time(self, t_ns: int) -> dict[str, str]:
        if self.description.has_utc:
            return {"t_utc": iso_time(t_ns)}
        return {"elapsed_s": elapsed_time(t_ns)}

    def _write_runs(self, rows: Rows) -> None:
        """Add a line for each run that begins in these rows."""
        columns = rows.columns
        engine = columns["engine_index"]
        begins = columns["discontinuity"].astype(bool) | (columns["gap_samples"] != 0)
        begins |= (columns["skipped_rows"] != 0) | (np.diff(engine, prepend=self._engine) != 0)
        cut = columns["cut_frames"]
        begins |= (cut != 0) | (np.concatenate([[self._cut], cut[:-1]]) != 0)
        self._cut = int(cut[-1])
        for at in np.flatnonzero(begins):
            run = {
                "row": self._written + int(at),
                **self._time(int(columns["t_utc_ns"][at])),
                "sample_index": int(columns["sample_index"][at]),
                "gap_samples": int(columns["gap_samples"][at]),
                "skipped_rows": int(columns["skipped_rows"][at]),
                "cut_frames": int(cut[at]),
                "engine": self.engines[int(engine[at])],
            }
            self._notes.write(("" if self._engine < 0 else ",") + "\n" + json.dumps(run))
            self._engine = int(engine[at])


def _header(output: Output, shape: tuple[int, ...]) -> bytes:
    """Return the header of an .npy file, always of the same length."""
    descr = "<c8" if output == "complex" else "<f4"
    text = str({"descr": descr, "fortran_order": False, "shape": shape})
    n = _HEADER_BYTES - len(_MAGIC) - 2
    return _MAGIC + n.to_bytes(2, "little") + text.ljust(n - 1).encode() + b"\n"
