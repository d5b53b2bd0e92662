"""Small files are read as wholes: regular ones of a bounded size, and nothing waits for others."""

import os
import re
from pathlib import Path

import pytest

from spectrod.apps.batch.job_file import read_job
from spectrod.apps.mqtt.address import read_password
from spectrod.apps.mqtt.broker import _tls_context
from spectrod.apps.web.listen import load_certificate
from spectrod.apps.web.token import read_token
from spectrod.cli import main
from spectrod.config import config, config_files
from spectrod.dsp.calibration.file import load_calibration
from spectrod.fft import wisdom
from spectrod.formats.picture.embedded import embedded_text
from spectrod.lib.errors import ConfigError, InputError, SpectrodError, StorageError
from spectrod.lib.regular_files import open_regular, read_regular
from spectrod.measure.triggers.mask import read_mask
from spectrod.recording.inputs import open_recording
from spectrod.source.files.sigmf_meta import read_sigmf
from spectrod.wire.keys import read_secret

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def fifo(tmp_path):
    """A FIFO that nobody writes to, mode 600; opening it for reading would wait."""
    path = tmp_path / "x.toml"
    os.mkfifo(path, 0o600)
    return path


def n_descriptors():
    """Return how many descriptors this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("n_bytes", [0, 1, 99, 100])
def test_files_up_to_the_bound_are_read(tmp_path, n_bytes):
    """A file is returned byte by byte up to the bound, also behind a link."""
    path = tmp_path / "x"
    path.write_bytes(bytes(range(n_bytes)))
    (tmp_path / "link").symlink_to(path)
    assert read_regular(path, 100) == read_regular(str(tmp_path / "link"), 100) == path.read_bytes()


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda path: path.write_bytes(bytes(101)), "must have at most 100 bytes"),
        (lambda path: path.touch() or os.truncate(path, 1 << 40), "must have at most 100 bytes"),
        (os.mkfifo, "must be a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "must be a regular file"),
        (lambda path: path.symlink_to(os.devnull), "must be a regular file"),
        (lambda path: path.mkdir(), "is a folder; must be a file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (lambda _: None, "No such file or directory"),
    ],
)
def test_all_else_is_one_error_at_once(tmp_path, make, rule):
    """Larger files, FIFOs, devices, folders and loops of links are an OSError with the rule."""
    path = tmp_path / "x"
    make(path)
    before = n_descriptors()
    with pytest.raises(OSError, match=re.escape(rule)) as caught:
        read_regular(path, 100)
    assert caught.value.filename == str(path)
    assert n_descriptors() == before


def test_a_link_is_followed_only_where_that_is_wanted(tmp_path):
    """With ``follow=False`` a link is refused, and a file is not."""
    (tmp_path / "x").write_bytes(b"1")
    (tmp_path / "link").symlink_to("x")
    assert read_regular(tmp_path / "x", 1, follow=False) == b"1"
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        open_regular(tmp_path / "link", follow=False)


READERS = {
    "configuration": lambda path: config.load(str(path)),
    "job": read_job,
    "calibration": load_calibration,
    "mask": lambda path: read_mask(path.parent, path.stem),
    "key": read_secret,
    "password": read_password,
    "token": read_token,
    "certificate": lambda path: load_certificate(path, path),
    "authority": lambda path: _tls_context(str(path)),
    "picture": embedded_text,
}


@pytest.mark.parametrize("name", READERS)
def test_no_reader_waits_for_a_writer(fifo, name):
    """A FIFO as any file that is read as a whole is one error with its name."""
    with pytest.raises(SpectrodError, match=r"x\.toml: must be a regular file$") as caught:
        READERS[name](fifo)
    assert isinstance(caught.value, (ConfigError, InputError))


def test_files_beside_other_files_are_not_waited_for(tmp_path):
    """The table of a calibration's response, and the metadata of SigMF samples."""
    (tmp_path / "mic.toml").write_text(
        'reference = "20 uPa"\nsensitivity = "50 mV/Pa"\nfull_scale_v = 1\n'
        '[response]\nfile = "x.txt"\n'
    )
    os.mkfifo(tmp_path / "x.txt")
    with pytest.raises(ConfigError, match=r"x\.txt: must be a regular file$"):
        load_calibration(tmp_path / "mic.toml")
    os.mkfifo(tmp_path / "x.sigmf-meta")
    (tmp_path / "x.sigmf-data").touch()
    with pytest.raises(InputError, match=r"x\.sigmf-meta: must be a regular file$"):
        read_sigmf(str(tmp_path / "x.sigmf-meta"))


@pytest.mark.parametrize("suffix", [".spd", ".spd.part", ".nc", ".npz", ".csv", ".zarr"])
def test_recordings_are_not_waited_for(tmp_path, suffix):
    """A FIFO as a recording is one error."""
    os.mkfifo(tmp_path / f"x{suffix}")
    with pytest.raises(StorageError, match=r"x\.[a-z.]+: must be a regular file$"):
        open_recording(tmp_path / f"x{suffix}")


def test_segments_of_a_folder_are_not_waited_for(tmp_path, caplog):
    """A FIFO among the segments of a recording is left out with a warning."""
    os.mkfifo(tmp_path / "x.spd")
    with pytest.raises(InputError, match="none of its 1 segments can be read"):
        open_recording(tmp_path)
    assert caplog.messages == [f"{tmp_path}/x.spd: must be a regular file; it is left out"]


def test_results_of_the_tuner_that_are_no_file_are_ignored(tmp_path, caplog):
    """A FIFO or a large file in place of saved results is one warning, as a damaged file is."""
    os.mkfifo(tmp_path / "a.json")
    with (tmp_path / "b.json").open("wb") as file:
        file.truncate(1 << 40)
    for name in ("a.json", "b.json"):
        assert wisdom._valid_results(tmp_path / name, "p", "d", "1") == {}
    assert "a.json is ignored: must be a regular file" in caplog.messages[0]
    assert f"must have at most {wisdom.FILE_BYTES_MAX} bytes" in caplog.messages[1]


@pytest.mark.parametrize(
    "command",
    [
        ["config", "check", "x.toml"],
        ["config", "show", "--config", "x.toml"],
        ["run", "--config", "x.toml"],
        ["batch", "plan", "x.toml"],
        ["levels", "signal:sine,1000,-20", "--duration", "1", "--calibration", "x.toml"],
    ],
)
def test_commands_end_with_one_line(fifo, monkeypatch, capsys, command):
    """A FIFO on the command line is one line and exit code 2."""
    monkeypatch.chdir(fifo.parent)
    assert main(command) == 2
    assert re.fullmatch(r"spectrod: .*x\.toml: must be a regular file\n", capsys.readouterr().err)


def test_the_null_device_is_an_empty_configuration(tmp_path):
    """``/dev/null`` disables a configuration or a drop-in, by its name or behind a link."""
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "c.toml").write_text("[analysis]\nhop = 100\n")
    (tmp_path / "conf.d" / "1.toml").symlink_to(os.devnull)
    assert config.load(str(tmp_path / "c.toml")).analysis.hop == 100
    assert config_files.read(tmp_path / "conf.d" / "1.toml") == b""
    assert config.load(os.devnull) == config.load(None)
