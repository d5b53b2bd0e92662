"""SigMF recordings being written: samples, captures, and files left after failures."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from spectrod.cli import main
from spectrod.config.config import SourceConfig
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.sound import SoundOptions
from spectrod.formats.sound import sigmf_writer as written_by
from spectrod.formats.sound.sigmf_writer import SigmfWriter
from spectrod.lib.errors import ConfigError, InputError, StorageError
from spectrod.recording.output_plan import check_outputs
from spectrod.source.open_source import open_source

FS = 8000.0
BEGIN_UTC_NS = 1_777_609_800_123_456_789
IQ = SpectrumSpec(FS, 2, iq=True, center_frequency_hz=433.92e6)


def block_of(samples, index=0, **settings):
    t_ns = BEGIN_UTC_NS + index * 10**9 // int(FS)
    return Block(np.asarray(samples, np.float32), index, t_ns, t_ns, **settings)


def noise(n, channels=2, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, (channels, n)).astype(np.float32)


def writer_of(folder, spec=IQ, subtype="", **settings):
    options = SoundOptions(source="radio", software="spectrod 1.2.3", **settings)
    return SigmfWriter(folder / "x.sigmf-meta", spec, subtype, options)


def opened(folder, name="x.sigmf-meta"):
    return open_source(SourceConfig(uri=str(folder / name)), "full")


def metadata(folder, name="x.sigmf-meta"):
    return json.loads((folder / name).read_text())


@pytest.mark.parametrize(
    ("spec", "datatype"),
    [
        (IQ, "cf32_le"),
        (SpectrumSpec(FS, 4, iq=True), "cf32_le"),
        (SpectrumSpec(FS, 1), "rf32_le"),
        (SpectrumSpec(44100.5, 3), "rf32_le"),
    ],
)
def test_samples_gaps_and_times_come_back(tmp_path, collect, spec, datatype):
    """A gap becomes a capture, and samples return at the same indices and times."""
    samples = noise(1000, spec.channels)
    writer = writer_of(tmp_path, spec)
    writer.write(block_of(samples[:, :300], 5000))
    writer.write(block_of(samples[:, 300:600], 5300))
    writer.write(block_of(samples[:, 600:], 7000, discontinuity=True, lost_samples=1400))
    assert writer.n_samples == 2400
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["x.sigmf-data.part", "x.sigmf-meta.part"]
    writer.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.sigmf-data", "x.sigmf-meta"]
    document = metadata(tmp_path)
    assert document["global"]["core:datatype"] == datatype
    assert document["global"]["core:num_channels"] == spec.n_signals
    assert [one["core:sample_start"] for one in document["captures"]] == [0, 600]
    assert [one["core:global_index"] for one in document["captures"]] == [5000, 7000]
    assert document["captures"][0]["core:datetime"] == "2026-05-01T04:30:00.748456789Z"
    assert document["annotations"] == []
    source = opened(tmp_path)
    assert (source.fs, source.channels, source.is_iq) == (spec.fs, spec.channels, spec.iq)
    assert source.center_frequency_hz == spec.center_frequency_hz
    assert source.start_utc_ns == BEGIN_UTC_NS + 625_000_000
    blocks = collect(source)
    assert [(index, one.shape[1]) for index, one, *_ in blocks] == [(0, 600), (2000, 400)]
    np.testing.assert_array_equal(np.concatenate([one for _, one, *_ in blocks], axis=1), samples)


@pytest.mark.parametrize(("subtype", "bits"), [("s16", 16), ("s32", 24)])
def test_integers_come_back_bit_for_bit(tmp_path, collect, subtype, bits):
    """Integers of the file's depth return unchanged; larger values are clipped and counted."""
    top = 2 ** (bits - 1)
    integers = np.random.default_rng(2).integers(-top, top, (2, 999))
    samples = (integers / top).astype(np.float32)
    writer = writer_of(tmp_path, subtype=subtype)
    writer.write(block_of(samples))
    writer.write(block_of(np.full((2, 1), 2.0), 999))
    writer.finish()
    assert writer.clipped_samples == 2
    assert metadata(tmp_path)["global"]["core:datatype"] == f"ci{subtype[1:]}_le"
    ((_, found, *_),) = collect(opened(tmp_path))
    np.testing.assert_array_equal(found[:, :999], samples)


def test_a_recording_without_a_date_has_none(tmp_path):
    """A recording whose times count from its start gets no UTC date."""
    writer = writer_of(tmp_path, SpectrumSpec(FS), has_utc=False)
    writer.write(block_of(noise(10, 1)))
    writer.finish()
    assert metadata(tmp_path)["captures"] == [{"core:sample_start": 0, "core:global_index": 0}]


@pytest.mark.parametrize(
    ("spec", "subtype", "message"),
    [
        (IQ, "s24", "subtype='s24': a .sigmf-meta file has f32, s16, s32"),
        (IQ, "u8", "subtype='u8': must be one of f32, s16, s32"),
        (SpectrumSpec(0.5), "", "fs=0.5: SigMF has sample rates from 1 Hz on"),
    ],
)
def test_a_signal_that_sigmf_cannot_hold_is_refused(tmp_path, spec, subtype, message):
    """A signal that SigMF cannot hold is refused before a file is created."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        writer_of(tmp_path, spec, subtype)
    assert list(tmp_path.iterdir()) == []


def test_bad_blocks(tmp_path):
    """A change of channels and an index that goes back are refused; no empty file is left."""
    writer = writer_of(tmp_path)
    with pytest.raises(InputError, match=r"a block of 3 channels; the recording has 2"):
        writer.write(block_of(noise(5, 3)))
    with pytest.raises(InputError, match=r"x\.sigmf-meta: no samples to write"):
        writer.finish()
    assert list(tmp_path.iterdir()) == []
    writer = writer_of(tmp_path)
    writer.write(block_of(noise(5), 100))
    with pytest.raises(InputError, match="sample 104 comes after sample 104"):
        writer.write(block_of(noise(5), 104))
    writer.finish()
    assert opened(tmp_path).n_samples == 5


@pytest.mark.parametrize("is_copy", [True, False])
def test_an_aborted_recording(tmp_path, is_copy):
    """An aborted copy leaves nothing; an aborted recording leaves two parts that can be read."""
    writer = writer_of(tmp_path, is_copy=is_copy)
    writer.write(block_of(noise(50)))
    writer.abort()
    writer.abort()
    if is_copy:
        assert list(tmp_path.iterdir()) == []
        return
    with pytest.raises(StorageError, match=r"x\.sigmf-data\.part is left of a recording that"):
        writer_of(tmp_path)
    for part in list(tmp_path.iterdir()):
        part.rename(part.with_suffix(""))
    assert opened(tmp_path).n_samples == 50


def test_an_earlier_file_is_replaced_and_a_later_one_is_not(tmp_path, collect):
    """Metadata never describes other data, and a new pair has one number for both names."""
    for seed in (1, 2):
        writer = writer_of(tmp_path)
        writer.write(block_of(noise(20 * seed, seed=seed)))
        writer.finish()
    assert opened(tmp_path).n_samples == 40
    for path in tmp_path.iterdir():
        path.unlink()
    writer = writer_of(tmp_path)
    writer.write(block_of(noise(30)))
    for suffix in ("meta", "data"):
        (tmp_path / f"x.sigmf-{suffix}").write_text("of others")
    writer.finish()
    assert writer.path == tmp_path / "x_1.sigmf-meta"
    assert opened(tmp_path, "x_1.sigmf-meta").n_samples == 30
    assert (tmp_path / "x.sigmf-data").read_text() == "of others"


def test_links_stay_links(tmp_path):
    """If the names are links, the files that they name are replaced."""
    (tmp_path / "disk").mkdir()
    for suffix in ("meta", "data"):
        (tmp_path / f"x.sigmf-{suffix}").symlink_to(tmp_path / f"disk/y.sigmf-{suffix}")
        (tmp_path / f"disk/y.sigmf-{suffix}").write_text("old")
    writer = writer_of(tmp_path)
    writer.write(block_of(noise(30)))
    writer.finish()
    assert all((tmp_path / f"x.sigmf-{suffix}").is_symlink() for suffix in ("meta", "data"))
    assert opened(tmp_path).n_samples == 30
    names = sorted(path.name for path in (tmp_path / "disk").iterdir())
    assert names == ["y.sigmf-data", "y.sigmf-meta"]


def test_a_write_that_fails_is_a_gap(tmp_path, monkeypatch, collect):
    """Data that could not be written is a gap, and no capture without samples is listed."""
    samples = noise(60)
    writer = writer_of(tmp_path)
    writer.write(block_of(samples[:, :20]))
    real = written_by.write_at

    def full(fd, data, offset):
        if fd == writer._data_fd:
            real(fd, data[: len(data) // 2], offset)
            raise OSError(28, "No space left on device")
        real(fd, data, offset)

    monkeypatch.setattr(written_by, "write_at", full)
    for index in (20, 35):  # the second one would be a capture of its own
        with pytest.raises(StorageError, match=r"x\.sigmf-data: No space left on device"):
            writer.write(block_of(samples[:, 20:30], index))
    monkeypatch.undo()
    writer.write(block_of(samples[:, 40:], 40))
    writer.finish()
    blocks = collect(opened(tmp_path))
    assert [(index, one.shape[1]) for index, one, *_ in blocks] == [(0, 20), (40, 20)]
    np.testing.assert_array_equal(blocks[1][1], samples[:, 40:])


def test_captures_are_bounded(tmp_path, monkeypatch):
    """More gaps than a reader accepts end the recording with an error, and the file is valid."""
    monkeypatch.setattr(written_by, "CAPTURES_MAX", 3)
    writer = writer_of(tmp_path)
    for k in range(3):
        writer.write(block_of(noise(5), 10 * k))
    with pytest.raises(StorageError, match="has 3 captures, and room for no more"):
        writer.write(block_of(noise(5), 30))
    writer.finish()
    assert opened(tmp_path).n_samples == 25


@pytest.mark.slow
def test_a_killed_program_leaves_a_recording(tmp_path):
    """The renamed parts of a killed recording can be read, with its last listed gap."""
    program = f"""
        import os, signal
        import numpy as np
        from pathlib import Path
        from spectrod.formats.sound import SoundOptions
        from spectrod.formats.sound.sigmf_writer import SigmfWriter
        from spectrod.dsp.blocks import Block
        from spectrod.dsp.spectrum import SpectrumSpec
        path = Path({os.fspath(tmp_path)!r}) / "x.sigmf-data"
        writer = SigmfWriter(path, SpectrumSpec(8000.0, 2, iq=True), "s16", SoundOptions())
        for index in (0, 100, 900):
            writer.write(Block(np.zeros((2, 100), np.float32), index, index, index))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert done.returncode == -9
    for part in list(tmp_path.iterdir()):
        part.rename(part.with_suffix(""))
    assert opened(tmp_path).n_samples == 1000
    with (tmp_path / "x.sigmf-data").open("r+b") as file:  # killed after a capture was listed
        file.truncate(200 * 4)
    assert opened(tmp_path).n_samples == 200


def test_a_recording_is_not_written_into_itself():
    """A recording is not written over its own input under either of its names."""
    with pytest.raises(ConfigError, match=r"x\.sigmf-data: must be named once"):
        check_outputs(["x.sigmf-meta", "x.sigmf-data"])
    for source in ("x.sigmf-meta", "x.sigmf-data"):
        with pytest.raises(ConfigError, match="must be another file than the one that is read"):
            check_outputs(["x.sigmf-data"], Path(source))


@pytest.mark.slow
def test_record_writes_samples_of_a_receiver(tmp_path, monkeypatch, collect):
    """Raw bytes survive as SigMF with datatype, centre frequency, date and samples."""
    monkeypatch.chdir(tmp_path)
    codes = np.random.default_rng(3).integers(0, 256, 4000).astype(np.uint8)
    (tmp_path / "x.raw").write_bytes(codes.tobytes())
    arguments = ["--rate", "2.048M", "--format", "cu8", "--center-frequency", "433.92M"]
    arguments += ["--start-time", "2026-05-01T04:30:00Z", "--subtype", "s16"]
    assert main(["record", "pcm:x.raw", "-o", "y.sigmf-data", *arguments]) == 0
    document = metadata(tmp_path, "y.sigmf-meta")
    assert document["global"]["core:datatype"] == "ci16_le"
    assert document["global"]["core:sample_rate"] == 2048000
    assert document["captures"] == [
        {
            "core:sample_start": 0,
            "core:global_index": 0,
            "core:datetime": "2026-05-01T04:30:00.000000000Z",
            "core:frequency": 433.92e6,
        }
    ]
    ((_, samples, *_),) = collect(opened(tmp_path, "y.sigmf-meta"))
    np.testing.assert_array_equal(samples.T.ravel(), (codes - np.float32(127.5)) / 128)
