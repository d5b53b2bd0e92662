"""Files of events in the programs that others use: SigMF's own package, and crowsetta.

They are in no group: ``pip install sigmf crowsetta`` (tried with 1.14.0 and 5.1.2).
"""

import json

import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.formats.event_files import event_file
from spectrod.measure.triggers.detection import Detection
from spectrod.measure.triggers.trigger import TriggerEvent

FS = 48_000.0
BEGIN_NS = 1_777_694_400 * 10**9
N_EVENTS = 100


def write(path):
    """Write random events of a file that is 60 s from the begin; return first samples and counts.

    The events are in the order of their begins.
    """
    rng = np.random.default_rng(3)
    firsts = np.sort(rng.integers(0, round(3600 * FS), N_EVENTS))
    counts = rng.integers(1, round(20 * FS), N_EVENTS)
    with event_file(path) as add:
        for first, count in zip(firsts.tolist(), counts.tolist(), strict=True):
            begin_ns = BEGIN_NS + round(first * 1e9 / FS)
            event = TriggerEvent(
                name="call", kind="band", state="ended", reason="released", product="density",
                channel="0", f_min_hz=2000.0, f_max_hz=6000.0, frequency_hz=None, level=-40.0,
                threshold=-50.0, unit="dBFS", floor=-60.0, begin_utc_ns=begin_ns,
                end_utc_ns=begin_ns, peak_utc_ns=begin_ns, duration_s=count / FS, pulses=None,
            )  # fmt: skip
            places = ("x.wav", first / FS, 60.0 + first / FS)
            add(Detection(event, first, count, *places, has_utc=True, channel=1, fs=FS))
    return firsts, counts


def test_sigmf_reads_annotations(tmp_path):
    """The metadata is valid, and samples and UTC are those of the events."""
    sigmffile = pytest.importorskip("sigmf.sigmffile", reason="pip install sigmf")
    firsts, counts = write(tmp_path / "e.sigmf-meta")
    found = sigmffile.SigMFFile(metadata=json.loads((tmp_path / "e.sigmf-meta").read_text()))
    found.validate()
    annotations = found.get_annotations()
    starts = np.array([one["core:sample_start"] for one in annotations])
    np.testing.assert_array_equal(starts, firsts + round(60 * FS))
    np.testing.assert_array_equal([one["core:sample_count"] for one in annotations], counts)
    (capture,) = found.get_captures()
    assert capture["core:sample_start"] == round(60 * FS)
    assert np.datetime64(capture["core:datetime"].rstrip("Z"), "ns").astype(int) == BEGIN_NS


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [("e.selections.txt", "Raven", {"annot_col": "Annotation"}), ("e.labels.txt", "AudBBox", {})],
)
@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
def test_crowsetta_reads_tables(tmp_path, name, kind, settings):
    """Times of Raven's tables and of Audacity's labels are within a sample; the band is ours."""
    bbox = pytest.importorskip("crowsetta.formats.bbox", reason="pip install crowsetta")
    firsts, counts = write(tmp_path / name)
    boxes = getattr(bbox, kind).from_file(tmp_path / name, **settings).to_bbox()
    onsets = np.array([one.onset for one in boxes]) - 60.0
    offsets = np.array([one.offset for one in boxes]) - 60.0
    np.testing.assert_allclose(onsets * FS, firsts, rtol=0, atol=0.5)
    np.testing.assert_allclose(offsets * FS, firsts + counts, rtol=0, atol=0.5)
    assert {(one.low_freq, one.high_freq) for one in boxes} == {(2000.0, 6000.0)}


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [("t.selections.txt", "Raven", {"annot_col": "Annotation"}), ("t.labels.txt", "AudBBox", {})],
)
@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
def test_crowsetta_reads_tracks(tmp_path, name, kind, settings):
    """Those of two files with a pause between them, on the time of both without it."""
    bbox = pytest.importorskip("crowsetta.formats.bbox", reason="pip install crowsetta")
    t = np.arange(4 * 16000) / 16000
    for clock, f_hz in (("043000", 1000.0), ("043100", 2000.0)):
        x = 0.1 * np.sin(2 * np.pi * f_hz * t) * (t >= 1.0)
        soundfile.write(tmp_path / f"20260501_{clock}.wav", x, 16000, subtype="FLOAT")
    frames = ["--interval", "0.5s", "--win-length", "2048"]
    assert main(["tones", str(tmp_path), *frames, "--tracks", str(tmp_path / name)]) == 0
    low, high = getattr(bbox, kind).from_file(tmp_path / name, **settings).to_bbox()
    assert [(one.onset, one.offset) for one in (low, high)] == [(1.0, 4.0), (5.0, 8.0)]
    for one, f_hz in ((low, 1000.0), (high, 2000.0)):
        assert one.low_freq < f_hz < one.high_freq
        assert one.label.startswith("tone ")
