import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from spectrod.analysis.stft.stft_stage import StftSpec
from spectrod.fft import wisdom
from spectrod.fft.stage import TransformSpec
from spectrod.lib.errors import StorageError
from spectrod.opencl.source import kernel_dir, program_source

SPEC = TransformSpec(1024)


def device(platform="Plat Form(TM)", name="Dev/ice 9", driver="1.2.3"):
    return SimpleNamespace(platform=platform, name=name, driver=driver)


def result(n=1024, kind="c2c", precision="single", family="local", **params):
    return wisdom.Result(
        n=n,
        kind=kind,
        precision=precision,
        family=family,
        params=params or {"radices": [8, 16, 8], "pad": 1},
        gb_per_s=2.0,
        untuned_gb_per_s=1.0,
        relative_l2=1e-7,
        kernels=wisdom.kernel_version(family),
    )


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(wisdom, "SHIPPED", tmp_path / "shipped")
    wisdom._known.cache_clear()
    yield
    wisdom._known.cache_clear()


def test_a_saved_result_is_found_again():
    """A result saved for a transform is found in both directions, and for no other transform."""
    wisdom.save(device(), [result()])
    found = ("local", {"radices": [8, 16, 8], "pad": 1})
    assert wisdom.lookup(device(), SPEC) == found
    assert wisdom.lookup(device(), TransformSpec(1024, inverse=True)) == found
    assert wisdom.lookup(device(), TransformSpec(1024, kind="r2c")) is None
    assert wisdom.lookup(device(), TransformSpec(1024, precision="double")) is None
    assert wisdom.lookup(device(), TransformSpec(512)) is None


def test_results_are_added_and_replaced():
    """A second save keeps other transforms' results and replaces its own."""
    wisdom.save(device(), [result(), result(n=64)])
    path = wisdom.save(device(), [result(family="simd")])
    assert [(r.n, r.family) for r in wisdom.results(device())] == [(64, "local"), (1024, "simd")]
    assert list(path.parent.iterdir()) == [path]


def test_the_file_can_be_read_by_a_person():
    """The file is JSON that names the device and its driver, with one result per line."""
    path = wisdom.save(device(), [result(), result(n=64)])
    assert path.name == "plat-form-tm-dev-ice-9.json"
    text = path.read_text()
    content = json.loads(text)
    assert (content["platform"], content["device"]) == ("Plat Form(TM)", "Dev/ice 9")
    assert content["driver"] == "1.2.3"
    assert content["results"][1]["params"] == {"radices": [8, 16, 8], "pad": 1}
    assert sum('"family":"local"' in line for line in text.splitlines()) == 2


def test_files_are_read_once():
    """A file is read once per process, and a save in this process counts."""
    path = wisdom.save(device(), [result()])
    assert wisdom.lookup(device(), SPEC)
    path.unlink()
    assert wisdom.lookup(device(), SPEC)
    wisdom.save(device(), [result(n=64)])
    assert wisdom.lookup(device(), SPEC) is None


def damaged(change):
    path = wisdom.save(device(), [result()])
    content = json.loads(path.read_text())
    path.write_text(change(content))
    wisdom._known.cache_clear()
    return path


def changed(**values):
    return lambda content: json.dumps(content | values)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed(driver="1.2.4"), "it is for driver 1.2.4, but the driver is 1.2.3"),
        (changed(device="other"), "it is of Plat Form(TM)/other"),
        (changed(platform="other"), "it is of other/Dev/ice 9"),
        (changed(format=1), "Invalid enum value 1 - at `$.format`"),
        (changed(results=[{"n": "64"}]), "Expected `int`, got `str` - at `$.results[0].n`"),
        (lambda content: json.dumps(content)[:-9], "Input data was truncated"),
        (lambda _: "", "Input data was truncated"),
        (lambda _: "\0\0", "JSON is malformed"),
        (lambda _: "[" * 100_000, "Expected `object`, got `array`"),
        (lambda text: json.dumps(text).replace('"pad": 1', '"pad": ' + "[" * 100_000), "nested"),
    ],
)
def test_a_file_that_is_not_valid_is_ignored(change, reason, caplog):
    """A foreign, stale or corrupt file is ignored with one warning that names it and the reason."""
    path = damaged(change)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert wisdom.lookup(device(), SPEC) is None
    (record,) = caplog.records
    assert record.message.startswith(f"{path} is ignored: {reason}")


def test_a_file_that_is_not_valid_is_replaced():
    """A new result replaces a file that is not valid."""
    damaged(changed(driver="old"))
    wisdom.save(device(), [result(n=64)])
    assert [r.n for r in wisdom.results(device())] == [64]


def test_an_unreadable_file_is_ignored(caplog):
    """An unreadable file, such as a folder of that name, is a warning and no result."""
    wisdom.file_for(device()).mkdir(parents=True)
    assert wisdom.lookup(device(), SPEC) is None
    assert "is a folder; must be a file" in caplog.text


def test_shipped_results_come_after_the_users_own(tmp_path):
    """A result of the user precedes a shipped one, which may be marked valid for any driver."""
    own = wisdom.file_for(device())
    shipped = tmp_path / "shipped" / own.name
    wisdom.save(device(driver=wisdom.ANY_DRIVER), [result(), result(n=64)], shipped)
    wisdom.save(device(), [result(family="simd")])
    assert wisdom.lookup(device(), SPEC)[0] == "simd"
    assert wisdom.lookup(device(), TransformSpec(64))[0] == "local"


def test_forget_deletes_the_users_file():
    """Forget deletes the user's file, and a second call finds nothing to delete."""
    path = wisdom.save(device(), [result()])
    assert wisdom.forget(device())
    assert not path.exists()
    assert wisdom.lookup(device(), SPEC) is None
    assert not wisdom.forget(device())


def test_saving_where_nothing_can_be_written(tmp_path):
    """An unwritable place is a storage error with path and reason, and no file is left."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"file/x.json: File exists"):
        wisdom.save(device(), [result()], tmp_path / "file" / "x.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match=r"folder: Is a directory"):
        wisdom.save(device(), [result()], tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_without_a_home(monkeypatch):
    """A service without a home folder has no results of its own and cannot save any."""

    def no_home():
        raise RuntimeError

    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.setattr(wisdom.Path, "home", no_home)
    assert wisdom.lookup(device(), SPEC) is None
    with pytest.raises(StorageError, match="neither HOME nor XDG_DATA_HOME"):
        wisdom.save(device(), [result()])


@pytest.fixture
def kernels(monkeypatch, tmp_path):
    """Write a kernel file into a folder that replaces the kernels."""
    folder = tmp_path / "kernels"
    folder.mkdir()

    def write(file, text):
        (folder / file).write_text(text)
        wisdom.kernel_version.cache_clear()
        wisdom._known.cache_clear()

    monkeypatch.setattr(wisdom, "kernel_dir", lambda: folder)
    wisdom.kernel_version.cache_clear()
    yield write
    wisdom.kernel_version.cache_clear()


def test_comments_do_not_make_results_stale(kernels):
    """The kernels' version depends on their code, not on comments or line breaks."""

    def version(text):
        kernels("fft_x.cl", text)
        return wisdom.kernel_version("bluestein")

    code = version("int x; // one\n/* more\n */ int y;")
    assert version("int x;\nint   y; // other") == code
    assert version("int x; int z;") != code


@pytest.mark.parametrize(
    ("file", "stale"),
    [
        ("common.clh", {"local", "multipass", "simd", "bluestein", "stft-local"}),
        ("dft.clh", {"local", "multipass", "simd", "bluestein", "stft-local"}),
        ("fft_local.cl", {"local", "multipass", "bluestein"}),
        ("fft_simd.cl", {"simd", "bluestein"}),
        ("fft_simd_lines.clh", {"simd", "bluestein"}),
        ("fft_chirp.cl", {"bluestein"}),
        ("fft_local_passes.clh", {"local", "multipass", "bluestein", "stft-local"}),
        ("stft_frames.cl", set()),
        ("stft_samples.clh", {"stft-local"}),
    ],
)
def test_results_of_changed_kernels_are_dropped(kernels, file, stale, caplog):
    """A changed kernel file drops the results of families that use it, with one warning."""
    sizes = {"local": 64, "multipass": 128, "simd": 256, "bluestein": 512, "stft-local": 1024}
    path = wisdom.save(device(), [result(n=n, family=name) for name, n in sizes.items()])
    kernels(file, "int changed;")
    kept = {name for name, n in sizes.items() if wisdom.lookup(device(), TransformSpec(n))}
    assert kept == sizes.keys() - stale
    warned = [record.message for record in caplog.records]
    ignored = f"{path}: {len(stale)} of 5 results are ignored: they are of other kernels"
    assert len(warned) == bool(stale)
    assert all(message.startswith(ignored) for message in warned)
    wisdom.save(device(), [])
    assert {r.family for r in wisdom.results(device())} == kept
    assert len(json.loads(path.read_text())["results"]) == len(kept)


def test_families_use_the_kernels_that_count_for_them():
    """A family's results become stale with the files of which its programs consist."""
    general = [p.name for p in kernel_dir().glob("fft_*.cl")]
    general += ["stft_frames.cl", "stft_bands.cl", "stft_products.cl"]
    programs = {
        "local": ["fft_local.cl"],
        "multipass": ["fft_local.cl"],
        "simd": ["fft_simd.cl"],
        "stft-local": ["stft_local.cl"],
        "stft-multipass": ["stft_multipass_first.cl", "stft_multipass_last.cl", "fft_local.cl"],
        "stft-simd": ["stft_simd.cl"],
        "stft-general": general,
    }
    assert programs.keys() == wisdom._KERNELS.keys()
    for family, files in programs.items():
        sources = "".join(program_source(file, ()) for file in files)
        used = set(re.findall(r'#line 1 "kernels/(.*)"', sources))
        counted = {p.name for q in wisdom._KERNELS[family] for p in kernel_dir().glob(q)}
        assert counted == used, family


def test_results_of_frames_have_places_of_their_own():
    """Frames of real or I/Q samples and transforms of one length have separate results."""
    real, iq = StftSpec(1024, 1000, "int16", interleaved=True), StftSpec(1024, 1024, iq=True)
    wisdom.save(device(), [result(), result(kind="stft", family="stft-simd")])
    assert wisdom.lookup(device(), SPEC)[0] == "local"
    assert wisdom.lookup(device(), real)[0] == "stft-simd"
    assert wisdom.lookup(device(), iq) is None


def test_saving_at_the_same_time_loses_nothing():
    """Two processes that tune different transforms at once both find their results saved."""

    def save(first):
        for n in range(first, first + 10):
            wisdom.save(device(), [result(n=n)])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(save, (100, 200)))
    assert [r.n for r in wisdom.results(device())] == [*range(100, 110), *range(200, 210)]
