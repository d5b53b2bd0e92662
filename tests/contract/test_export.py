"""One suite over all formats to which recordings are exported and from which they are read."""

import contextlib
import errno
import json
import resource
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.export.disk import Disk
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.export_writer import chunk_rows
from spectrod.lib.errors import ConfigError, InputError, StorageError, UnavailableError
from spectrod.lib.output_formats import suffixes
from spectrod.recording.inputs import open_recording
from spectrod.recording.output_plan import make_data

EXPORT_SUFFIXES = suffixes(lambda one: one.content == "rows" and not one.recovery)
READABLE_SUFFIXES = suffixes(lambda one: one.reader and not one.recovery)

BEGIN_UTC_NS = 1_795_211_223_123_456_789
SPECS = {
    "density": {"channels": 2},
    "odd": {"win_length": 255, "nfft": 255, "hop": 100, "channels": 3},
    "bands": {"scaling": "spectrum", "bands": "third-octave"},
    "broadband": {"channels": 2, "scaling": "dbfs", "bands": "octave", "broadband": True},
    "levels": {"scaling": "dbfs", "weighting": "A"},
    "radio": {"channels": 2, "iq": True, "center_frequency_hz": 433.92e6},
    "iq": {"channels": 4, "iq": True, "scaling": "dbfs"},
    "peaks": {"averaging": "max", "averaging_frames": 7},
    "complex": {"output": "complex", "channels": 2},
}
EXTRAS = {".nc": "h5netcdf", ".h5": "h5netcdf", ".zarr": "zarr"}


def described(**settings):
    spec = SpectrumSpec(**({"fs": 8000.0, "win_length": 256, "hop": 128} | settings))
    names = tuple(f"mic, {k}: côté" for k in range(spec.n_signals))
    configured = {"source": {"gain": 0.1, "on": True, "names": ["a", "b"], "none": None}}
    about = {"title": "Réef, at night", "license": "CC0"}
    return Description(spec, "reef", names, "spectrod 1.2.3", "cal-7", configured, about)


def batches_of(spec, rows_each=(5, 1, 40, 12), seed=1):
    """Make batches with missing samples, skipped rows and a change of the engine between them."""
    rng = np.random.default_rng(seed)
    about = [
        {},
        {"gap_samples": 12_345_678_901, "discontinuity": True, "cut_frames": 2},
        {"skipped_rows": 3, "discontinuity": True},
        {"engine": 'opencl:PoCL/a, "b"'},
    ]
    first, batches = 0, []
    for n, more in zip(rows_each, about, strict=True):
        first += more.get("gap_samples", 0) + 3 * more.get("skipped_rows", 0)
        index = first + np.arange(n, dtype=np.int64) * spec.hop * spec.averaging_frames
        first = int(index[-1]) + spec.hop
        t_ns = BEGIN_UTC_NS + (index * 1e9 / spec.fs).astype(np.int64)
        shape = (n, spec.n_signals, spec.n_values)
        values = rng.standard_normal(shape).astype(np.float32) * np.float32(1e-9) ** rng.random(n)[
            :, np.newaxis, np.newaxis
        ].astype(np.float32)
        if spec.output == "complex":
            values = (values + 1j * rng.standard_normal(shape)).astype(np.complex64)
        values.flat[0] = np.finfo(np.float32).smallest_subnormal
        values.flat[-1] = np.finfo(np.float32).max
        fields = {"engine": "numpy"} | more
        if n > 1:
            fields["conditions"] = rng.integers(0, 256, shape[:2]).astype(np.uint8)
        if spec.broadband:
            fields["broadband"] = rng.standard_normal(shape[:2]).astype(np.float32)
        batches.append(SpectrumBatch(values, index, t_ns // 7, t_ns, spec, **fields))
    return batches


def write(path, description, batches, **options):
    writer = make_data(path, description, ExportOptions(**options))
    for batch in batches:
        writer.write(batch)
    assert writer.n_frames == sum(batch.n_frames for batch in batches)
    writer.finish()
    return path


def joined(batches, name):
    return np.concatenate([getattr(batch, name) for batch in batches])


def conditions(batches):
    """Return the conditions of all rows, 0 where nobody checked."""
    return np.concatenate([
        np.zeros(one.values.shape[:2], np.uint8) if one.conditions is None else one.conditions
        for one in batches
    ])  # fmt: skip


def breaks(batches):
    """Return the breaks before rows, by the rows' numbers."""
    first, found = 0, {}
    for batch in batches:
        about = (batch.gap_samples, batch.discontinuity, batch.skipped_rows, batch.cut_frames)
        if any(about):
            found[first] = about
        first += batch.n_frames
    return found


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("suffix", READABLE_SUFFIXES)
def test_values_times_gaps_and_names_are_read_back(tmp_path, suffix, kind):
    """Every bit of the values, every time, gap and name survives a round trip."""
    about = described(**SPECS[kind])
    given = batches_of(about.spec)
    reader = open_recording(write(tmp_path / f"x{suffix}", about, given))
    for _ in range(2):
        got = list(reader.batches())
        assert reader.description == about
        values = joined(got, "values")
        assert values.dtype == given[0].values.dtype
        assert values.tobytes() == joined(given, "values").tobytes()
        for name in ("sample_index", "t_mono_ns", "t_utc_ns"):
            np.testing.assert_array_equal(joined(got, name), joined(given, name))
            assert joined(got, name).dtype == np.int64
        if about.spec.broadband:
            assert joined(got, "broadband").tobytes() == joined(given, "broadband").tobytes()
        if suffix != ".csv":
            np.testing.assert_array_equal(conditions(got), conditions(given))
        assert breaks(got) == breaks(given)
        assert [b.engine for b in got for _ in b.sample_index] == [
            b.engine for b in given for _ in b.sample_index
        ]
    reader.close()
    reader.close()
    assert left_in(tmp_path) == [f"x{suffix}"]


def test_files_without_conditions_do_not_say_what_was_checked(tmp_path):
    """A CSV file has no room for what checks found, so it does not say that there were any."""
    about = described(channels=2)
    path = write(tmp_path / "x.csv", about, batches_of(about.spec))
    assert "checked_rows" not in path.read_text()


def test_files_of_earlier_versions_have_no_conditions(tmp_path):
    """Without the attribute that says which rows were checked, nothing is known of them."""
    about = described(channels=2)
    path = write(tmp_path / "x.npz", about, batches_of(about.spec))
    with np.load(path) as stored:
        arrays = dict(stored)
    attributes = json.loads(str(arrays["attributes"]))
    assert attributes.pop("checked_rows") == "some"
    del arrays["conditions"]
    np.savez(path, **arrays | {"attributes": np.array(json.dumps(attributes))})
    reader = open_recording(path)
    assert {one.conditions for one in reader.batches()} == {None}
    reader.close()


@pytest.mark.parametrize("wrong", [np.zeros((58, 2), np.int8), np.zeros((58, 1), np.uint8)])
def test_conditions_of_another_form_are_refused(tmp_path, wrong):
    """They are flags of eight bits of each row and channel."""
    about = described(channels=2)
    path = write(tmp_path / "x.npz", about, batches_of(about.spec))
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **arrays | {"conditions": wrong})
    rule = r"conditions of shape \(58, [12]\), u?int8: must be \(58, 2\), uint8"
    with pytest.raises(StorageError, match=rule):
        open_recording(path)


@pytest.mark.parametrize("suffix", READABLE_SUFFIXES)
def test_names_may_be_anything(tmp_path, suffix):
    """Characters that a format cannot store are replaced or left out, except in the description."""
    odd = {"title": "\udcff\0.wav", "NAME": "x", "": "x", "a b\nc": "x", "window": "flat"}
    about = replace(described(channels=2), signals=("a\nb", "\udcff"), attributes=odd)
    given = batches_of(about.spec)
    write(tmp_path / f"x{suffix}", about, given)
    with contextlib.closing(open_recording(tmp_path / f"x{suffix}")) as reader:
        assert reader.description == about
        np.testing.assert_array_equal(
            joined(list(reader.batches()), "values"), joined(given, "values")
        )


@pytest.mark.parametrize("name", ["gap_samples", "skipped_rows"])
@pytest.mark.parametrize("suffix", EXPORT_SUFFIXES)
def test_more_cannot_be_missing_than_counts_hold(tmp_path, suffix, name):
    """The largest count of missing samples is 2^63 - 1."""
    about = described()
    (first, *_) = batches_of(about.spec)
    writer = make_data(tmp_path / f"x{suffix}", about, ExportOptions())
    writer.write(replace(first, **{name: 2**63 - 1}))
    with pytest.raises(InputError, match=f"{name}=9223372036854775808: must be less than 2\\^63"):
        writer.write(replace(first, **{name: 2**63}))
    writer.abort()
    assert left_in(tmp_path) == []


def test_a_row_of_many_channels_is_few_chunks(tmp_path):
    """Each chunk of a store is a file of at most a mebibyte, also for rows of many channels."""
    about = described(channels=9, win_length=1 << 16, hop=1 << 15)
    given = batches_of(about.spec, (1, 1, 1, 1))
    write(tmp_path / "x.zarr", about, given, compression=0)
    chunks = [path for path in (tmp_path / "x.zarr/psd").rglob("*") if path.is_file()]
    assert len(chunks) == 1 + 2 * len(given)  # and its metadata
    assert max(path.stat().st_size for path in chunks) <= (1 << 20) + 4  # and a checksum
    with contextlib.closing(open_recording(tmp_path / "x.zarr")) as reader:
        np.testing.assert_array_equal(
            joined(list(reader.batches()), "values"), joined(given, "values")
        )


@pytest.mark.parametrize("compression", [0, 9])
@pytest.mark.parametrize("suffix", READABLE_SUFFIXES)
def test_many_rows_come_in_pieces(tmp_path, suffix, compression, monkeypatch):
    """At most a chunk is held in memory, and batches of any size make the same file."""
    monkeypatch.setattr("spectrod.formats.export.export_writer.CHUNK_BYTES", 4000)
    about = described()
    assert chunk_rows(about) == 7
    given = batches_of(about.spec, (1, 6, 50, 13))
    writer = make_data(tmp_path / f"x{suffix}", about, ExportOptions(compression=compression))
    for batch in given:
        writer.write(batch)
        assert sum(map(len, writer._parts)) < 7
    writer.finish()
    reader = open_recording(tmp_path / f"x{suffix}")
    got = list(reader.batches())
    reader.close()
    assert max(batch.n_frames for batch in got) <= 7
    assert joined(got, "values").tobytes() == joined(given, "values").tobytes()
    assert breaks(got) == breaks(given)


@pytest.mark.parametrize("suffix", EXPORT_SUFFIXES)
def test_nothing_appears_before_the_end(tmp_path, suffix):
    """The name appears with finish and never after abort, which may be called twice."""
    about = described()
    path = tmp_path / f"x{suffix}"
    for end in ("abort", "finish"):
        writer = make_data(path, about, ExportOptions())
        writer.write(batches_of(about.spec)[0])
        assert not path.exists()
        getattr(writer, end)()
        assert path.exists() == (end == "finish")
        writer.abort()
    assert not [name for name in left_in(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("suffix", EXPORT_SUFFIXES)
def test_an_earlier_file_stays_until_the_end(tmp_path, suffix):
    """An aborted file leaves the earlier one, and a finished one replaces it."""
    about = described()
    first, other = (batches_of(about.spec, seed=seed) for seed in (1, 2))
    path = write(tmp_path / f"x{suffix}", about, first)
    writer = make_data(path, about, ExportOptions())
    writer.write(other[0])
    writer.abort()
    if suffix in READABLE_SUFFIXES:
        reader = open_recording(path)
        assert joined(reader.batches(), "values").tobytes() == joined(first, "values").tobytes()
        reader.close()
        write(path, about, other)
        reader = open_recording(path)
        assert joined(reader.batches(), "values").tobytes() == joined(other, "values").tobytes()
        reader.close()


@pytest.mark.parametrize("suffix", EXPORT_SUFFIXES)
def test_no_rows_make_no_file(tmp_path, suffix):
    """Fewer samples than a window are an error and leave no file."""
    writer = make_data(tmp_path / f"x{suffix}", described(), ExportOptions())
    with pytest.raises(InputError, match=r"nothing to write: fewer than 256 samples in a row"):
        writer.finish()
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("suffix", EXPORT_SUFFIXES)
def test_one_kind_of_spectra_in_a_file(tmp_path, suffix):
    """Rows of another analysis, and names for too many signals, are refused."""
    about = described()
    writer = make_data(tmp_path / f"x{suffix}", about, ExportOptions())
    other = replace(about.spec, hop=64)
    with pytest.raises(ConfigError, match="the analysis has changed; a file holds one kind"):
        writer.write(batches_of(other)[0])
    writer.abort()
    with pytest.raises(ConfigError, match="must be 1 names"):
        make_data(tmp_path / f"x{suffix}", replace(about, signals=("a", "b")), ExportOptions())
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("suffix", EXPORT_SUFFIXES)
@pytest.mark.parametrize("limit", [100, 30_000, 200_000])
def test_a_full_disk_leaves_nothing(tmp_path, suffix, limit):
    """A full disk at any point is one error with the system's reason and leaves no file."""
    about = described(channels=2)
    # 8 MB a format: past what HDF5 and the C library keep in memory.
    given = [
        batch for seed in range(4) for batch in batches_of(about.spec, (1, 1, 1, 1000), seed=seed)
    ]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(StorageError, match=rf"x\{suffix}: File too large$"):
            write(tmp_path / f"x{suffix}", about, given, compression=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("suffix", EXPORT_SUFFIXES)
def test_a_folder_that_is_not_there_is_named_at_once(tmp_path, suffix):
    """A missing folder is an error before the first row."""
    with pytest.raises(StorageError, match=rf"/none/x\{suffix}: No such file or directory$"):
        make_data(tmp_path / "none" / f"x{suffix}", described(), ExportOptions())


def test_a_folder_of_something_else_is_no_store_to_replace(tmp_path):
    """A folder that is not a Zarr store is not replaced by one."""
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(StorageError, match=r"x\.zarr: exists, and is no Zarr store"):
        make_data(tmp_path / "x.zarr", described(), ExportOptions())


@pytest.mark.parametrize("suffix", [".nc", ".npz", ".csv"])
def test_half_a_file_is_an_error(tmp_path, suffix):
    """A truncated file is an error after at most its complete rows."""
    about = described()
    given = batches_of(about.spec)
    content = write(tmp_path / f"x{suffix}", about, given).read_bytes()
    cut = tmp_path / f"cut{suffix}"
    for part in (0.0, 0.01, 0.5, 0.99):
        cut.write_bytes(content[: int(part * len(content))])
        with pytest.raises(StorageError, match=rf"cut\{suffix}: "):
            list(read_rows(cut))


@pytest.mark.parametrize("suffix", [".nc", ".npz", ".zarr"])
def test_a_flipped_bit_is_found(tmp_path, suffix):
    """A flipped bit is detected by a checksum and is an error, never a level."""
    about = described()
    path = write(tmp_path / f"x{suffix}", about, batches_of(about.spec), compression=0)
    file = path / "psd" / "c" / "0" / "0" / "0" if suffix == ".zarr" else path
    content = bytearray(file.read_bytes())
    pattern = batches_of(about.spec)[2].values[7, 0, :4].tobytes()
    if suffix == ".nc":  # HDF5 keeps the bytes as they are where it does not compress
        assert pattern in content
    at = content.find(pattern)
    assert at > 0
    content[at] ^= 1
    file.write_bytes(content)
    with pytest.raises(StorageError, match=rf"x\{suffix}: cannot be read: "):
        list(read_rows(path))


def test_a_lost_chunk_of_a_store_is_found(tmp_path):
    """A missing chunk of a Zarr store is an error and does not become a row."""
    about = described()
    path = write(tmp_path / "x.zarr", about, batches_of(about.spec))
    (path / "sample_index" / "c" / "0").unlink()
    with pytest.raises(StorageError, match="sample_index: 1 of 1 chunks are missing"):
        list(read_rows(path))


class FailingWrites:
    """Fails the n-th write of each ``Disk`` and all later ones."""

    def __init__(self, monkeypatch):
        self._write = Disk.write
        self.n = self.failing = 0

        def write(disk, data):
            self.n += 1
            if self.n == self.failing:
                disk._failure = OSError(errno.EIO, "Input/output error")
            return self._write(disk, data)

        monkeypatch.setattr(Disk, "write", write)


@pytest.mark.slow
def test_hdf5_outlives_a_write_that_fails(tmp_path, monkeypatch):
    """Any failed write of HDF5 is one error with the system's reason, and the process continues."""
    monkeypatch.setattr("spectrod.formats.export.export_writer.CHUNK_BYTES", 16_000)
    about = described()
    given = batches_of(about.spec)
    writes = FailingWrites(monkeypatch)
    write(tmp_path / "x.nc", about, given)
    n_writes = writes.n
    (tmp_path / "x.nc").unlink()
    assert n_writes > 50
    for failing in {*range(1, n_writes, n_writes // 20), n_writes}:
        writes.n, writes.failing = 0, failing
        with pytest.raises(StorageError, match=r"x\.nc: Input/output error$"):
            write(tmp_path / "x.nc", about, given)
        assert left_in(tmp_path) == []


def read_rows(path):
    reader = open_recording(path)
    try:
        yield from reader.batches()
    finally:
        reader.close()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".nc", ".npz", ".zarr"])
def test_damage_is_an_error_or_harmless(tmp_path, suffix):
    """Changed, missing or extra bytes give one line, or all rows unchanged."""
    about = described()
    given = batches_of(about.spec)
    path = write(tmp_path / f"x{suffix}", about, given)
    files = sorted(one for one in [path, *path.rglob("*")] if one.is_file())
    rng = np.random.default_rng(7)
    errors = []
    for _ in range(60):
        file = files[rng.integers(len(files))]
        content = file.read_bytes()
        file.write_bytes(damaged(content, rng))
        try:
            got = joined(read_rows(path), "values")
        except StorageError as error:
            errors.append(str(error))
        else:
            assert got.tobytes() == joined(given, "values").tobytes()
        file.write_bytes(content)
    assert len(errors) > 5
    assert not [error for error in errors if "\n" in error]


def damaged(content, rng):
    """Change, cut or remove some bytes, more often among the first thousand."""
    at = int(rng.integers(min(len(content), int(rng.choice([1000, len(content)])))))
    kind = rng.integers(3)
    if kind == 0:
        return content[:at] + rng.bytes(1) + content[at + 1 :]
    return content[:at] if kind == 1 else content[:at] + content[at + 20 :]


def test_files_of_others_are_named_as_such(tmp_path):
    """A file without our description is refused as no recording, in any format."""
    np.savez(tmp_path / "x.npz", values=np.zeros(3))
    (tmp_path / "x.csv").write_text("time,1\n0,1\n")
    (tmp_path / "x.nc").write_text("no HDF5")
    (tmp_path / "x.zarr").mkdir()
    for suffix in (".npz", ".csv", ".nc", ".zarr"):
        with pytest.raises(StorageError, match=rf"x\{suffix}: "):
            open_recording(tmp_path / f"x{suffix}")
        with pytest.raises(StorageError, match=rf"none\{suffix}: "):
            open_recording(tmp_path / f"none{suffix}")


def test_a_suffix_selects_the_format(tmp_path):
    """An unknown suffix is refused with the known ones, and a bare array is not read."""
    with pytest.raises(ConfigError, match=r"x\.mat: suffix must be one of \.png, "):
        make_data(tmp_path / "x.mat", described(), ExportOptions())
    with pytest.raises(ConfigError, match=r"x\.wav: suffix must be one of \.spd, \.nc"):
        make_data(tmp_path / "x.wav", described(), ExportOptions())
    with pytest.raises(InputError, match=r"x\.npy: must be a recording of spectra \(\.spd"):
        open_recording(tmp_path / "x.npy")
    with pytest.raises(ConfigError, match=r"profile='millidecade': must be a \.nc file"):
        make_data(tmp_path / "x.csv", described(), ExportOptions(profile="millidecade"))


@pytest.mark.parametrize(("suffix", "package"), EXTRAS.items())
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, suffix, package):
    """A missing package is one line with what to install."""
    monkeypatch.setitem(sys.modules, package, None)
    extra = "zarr" if suffix == ".zarr" else "netcdf"
    with pytest.raises(UnavailableError, match=rf"{package} .*pip install 'spectrod\[{extra}\]'$"):
        make_data(tmp_path / f"x{suffix}", described(), ExportOptions())
    assert left_in(tmp_path) == []


@pytest.mark.slow
def test_packages_are_imported_when_they_are_used():
    """The registry of formats imports neither HDF5 nor Zarr before use."""
    program = (
        "import sys, spectrod.formats.export; "
        "sys.exit(bool({'h5py', 'h5netcdf', 'zarr'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"compression": 10}, "compression=10: must be 0 to 9"),
        ({"profile": "hmd"}, "profile='hmd': must be millidecade"),
        ({"attributes": {"a b": "c"}}, "attribute 'a b': must be ASCII letters"),
        ({"attributes": {"NAME": "c"}}, "attribute 'NAME': .* none of HDF5's own CLASS, "),
    ],
)
def test_options_have_rules(asked, rule):
    """Each broken rule of an option is refused with its value."""
    with pytest.raises(ConfigError, match=rule):
        ExportOptions(**asked)


def test_settings_that_json_cannot_hold_are_refused(tmp_path):
    """Settings that JSON cannot express are refused before a file is created."""
    about = replace(described(), settings={"a": float("nan")})
    for suffix in EXPORT_SUFFIXES:
        with pytest.raises(ConfigError, match="settings of 'reef': must fit in JSON"):
            make_data(tmp_path / f"x{suffix}", about, ExportOptions())
    assert left_in(tmp_path) == []


def test_an_array_alone_has_its_description_beside_it(tmp_path):
    """A bare array has a JSON file with axes, runs and the description beside it."""
    about = described(channels=2)
    given = batches_of(about.spec)
    path = write(tmp_path / "x.npy", about, given)
    np.testing.assert_array_equal(np.load(path, mmap_mode="r"), joined(given, "values"))
    notes = json.loads((tmp_path / "x.npy.json").read_text())
    assert (notes["rows"], notes["unit"]) == (58, "FS^2/Hz")
    assert notes["frequency_hz"] == about.spec.frequencies.tolist()
    runs = [(run["row"], run["gap_samples"], run["skipped_rows"]) for run in notes["runs"]]
    assert runs == [(0, 0, 0), (5, 12_345_678_901, 0), (6, 0, 3), (46, 0, 0)]
    assert notes["runs"][3]["engine"] == 'opencl:PoCL/a, "b"'
    assert notes["attributes"]["title"] == "Réef, at night"


def test_numpy_loads_an_npz_without_us(tmp_path):
    """NumPy loads an NPZ file alone, with a name and a unit for every array."""
    about = described(channels=2)
    given = batches_of(about.spec)
    write(tmp_path / "x.npz", about, given, attributes={"title": "ours"})
    with np.load(tmp_path / "x.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["psd"], joined(given, "values"))
        np.testing.assert_array_equal(arrays["frequency"], about.spec.frequencies)
        assert arrays["channel_name"].tolist() == list(about.signals)
        assert arrays["gap_length"].tolist() == [12_345_678_901]
        assert arrays["gap_start"] == given[1].sample_index[0] - 12_345_678_901
        assert json.loads(str(arrays["attributes"]))["title"] == "ours"
        assert json.loads(str(arrays["variable_attributes"]))["psd"]["units"] == "Hz-1"


def test_pandas_style_readers_skip_the_notes_of_a_csv(tmp_path):
    """A CSV has comments after #, then one line of names, then numbers."""
    about = replace(described(), signals=("left",))
    given = batches_of(about.spec)
    path = write(tmp_path / "x.csv", about, given)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    names = lines[0].split(",")
    assert names[:2] == ["time", "sample_index"]
    assert names[-1] == "left:4000.0"
    assert lines[1].startswith("2026-11-20T21:47:03.123456789Z,0,")
    values = np.array(lines[1].split(",")[-about.spec.n_values :], np.float32)
    np.testing.assert_array_equal(values, given[0].values[0, 0])


@pytest.mark.parametrize(
    ("shape", "dtype", "text"),
    [
        ((10, 1, 130), "<f4", "of shape .* not those described"),
        ((10, 1, 129), "<f8", "of shape .* not those described"),
        ((1 << 40, 1, 129), "<f4", r"must be \(1099511627776,\)"),
        ((-1, 1, 129), "<f4", "negative length"),
        ((58, 1, 129), "|O", "must be of numbers"),
    ],
)
def test_an_archive_is_checked_before_it_is_unpacked(tmp_path, shape, dtype, text):
    """Lengths and types of arrays are compared with the description before unpacking."""
    path = write(tmp_path / "x.npz", described(), batches_of(described().spec))
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "y.npz", "w") as new:
        for name in old.namelist():
            with new.open(name, "w") as member:
                if name == "psd.npy":
                    np.lib.format.write_array_header_1_0(member, about)
                member.write(b"" if name == "psd.npy" else old.read(name))
    with pytest.raises(StorageError, match=rf"y\.npz: damaged.*{text}"):
        open_recording(tmp_path / "y.npz")


@pytest.mark.parametrize("suffix", [".nc", ".npz", ".zarr"])
def test_rows_that_are_too_large_to_be_unpacked_are_refused(tmp_path, suffix, monkeypatch):
    """Rows too large to unpack are refused, as a small file may expand a thousandfold."""
    path = write(tmp_path / f"x{suffix}", described(), batches_of(described().spec))
    monkeypatch.setattr("spectrod.formats.export.grid.PIECE_BYTES_MAX", 500)
    with pytest.raises(StorageError, match=r"psd: rows or chunks of \d+ bytes: must be at most"):
        open_recording(path)
