"""The notebook of the examples runs from top to bottom, and shows what it says."""

from pathlib import Path

import numpy as np
import pytest

from spectrod import spectrogram
from spectrod.lib import notebook as pictures

nbclient = pytest.importorskip("nbclient", reason="is of the group reference")
nbformat = pytest.importorskip("nbformat", reason="is of the group reference")
formatters = pytest.importorskip("IPython.core.formatters", reason="is of the group reference")
for package in ("ipykernel", "polars", "duckdb"):
    pytest.importorskip(package, reason="is of the group reference")

pytestmark = pytest.mark.extended

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Run it; return what each cell of code shows, by type."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    folder = str(tmp_path_factory.mktemp("notebook"))
    nbclient.NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    cells = [one for one in notebook.cells if one.cell_type == "code"]
    return [{kind for out in one.outputs for kind in out.get("data", {})} for one in cells], [
        "\n".join(out.get("data", {}).get("text/plain", "") for out in one.outputs) for one in cells
    ]


def test_each_cell_shows_what_it_is_about(outputs):
    """Pictures of the spectrogram and of xarray, tables of xarray, polars and DuckDB."""
    kinds, texts = outputs
    assert ["image/png" in one for one in kinds].count(True) == 3
    assert "image/png" in kinds[1]
    assert "<Spectrogram: 513 values of 1874 rows" in texts[1]
    assert "(513,), (1874,), (513, 1874)" in texts[2]
    assert "text/html" in kinds[4]
    assert (
        "<MeasurementTable: 60 rows, 5 columns: time, duration_s, flags, LAeq, LAFmax>" in texts[6]
    )
    assert "(513, 1874), 7.0)" in texts[-1]


def test_libraries_find_the_same_levels(outputs):
    """The bird calls in the first second of five, 15 dB above the noise of the others."""
    _, texts = outputs
    assert "shape: (6, 3)" in texts[7]
    rows = [line.split("│")[1:3] for line in texts[8].splitlines() if line.count("│") == 3]
    levels = {int(a): float(b) for a, b in rows if a.strip().isdigit()}
    assert sorted(levels) == [0, 1, 2, 3, 4]
    assert all(levels[0] - levels[n] > 10 for n in (1, 2, 3, 4))


def test_it_is_stored_without_outputs():
    """Outputs of one machine do not lie in the repository."""
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


def test_a_picture_is_drawn_once(monkeypatch):
    """IPython asks for all kinds, and gets picture and HTML of one drawing."""
    drawn = []
    monkeypatch.setattr(pictures, "png_of", lambda figure: drawn.append(figure) or b"picture")
    samples = np.random.default_rng(1).standard_normal(8000).astype(np.float32)
    spectra = spectrogram(samples, 8000.0, win_length=256, hop=128, engine="numpy")
    formatter = formatters.DisplayFormatter()
    formatter.active_types = ["image/png", "text/html", "text/plain"]
    shown, _ = formatter.format(spectra)
    assert len(drawn) == 1
    assert shown["image/png"] == b"picture"
    assert shown["text/html"] == spectra._repr_html_()
    assert shown["text/plain"] == repr(spectra)
