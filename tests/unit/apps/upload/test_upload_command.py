"""Arguments of ``spectrod upload``, and what it needs."""

import subprocess
import sys

import pytest

from spectrod.apps.upload import finished_files
from spectrod.apps.upload.finished_files import FileVersion, list_finished, open_finished
from spectrod.cli import main
from spectrod.lib.output_formats import is_recording_name
from spectrod.source.store import stores

BUCKET = "s3://abc/station"


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ([], "in the file /etc/spectrod/upload.env, a line SPECTROD_UPLOAD=FOLDER ADDRESS"),
        (["a"], "FOLDER and ADDRESS must be given"),
        (["", BUCKET], "'': must be a folder"),
        (["a", "b"], "b: must be a folder, or s3:// or gs:// with a bucket"),
        (["a", "https://host/b"], "https://host/b: must be a folder, or s3:// or gs://"),
        (["a", "s3://key:secret@abc/b"], "s3://...@abc: must hold no user and password"),
        (["a", "s3://abc/../b"], "s3://abc/../b: names of folders in it must have letters"),
        (["a", BUCKET, "--interval", "5"], "--interval: needs --follow"),
        (["a", BUCKET, "--follow", "--interval", "2d"], "--interval 172800: must be 0.01 s to 1 d"),
        (["a", BUCKET, "--interval", "soon"], "'soon': must be a time"),
        (["a", BUCKET, "--keep-days", "5"], "--keep-days: needs --remove"),
        (["a", BUCKET, "--remove", "--keep-days", "-1"], "--keep-days -1: must be 0 to 36500"),
        (["a", BUCKET, "--remove", "--keep-days", "nan"], "--keep-days nan: must be 0 to 36500"),
        (["a", BUCKET, "--follow", "--json"], "--json: is for the summary, which --follow has not"),
        (["a", BUCKET, "--log-level", "loud"], "log.level='loud': must be one of"),
    ],
)  # fmt: skip
def test_mistakes_are_named(arguments, rule, capfd):
    """Each mistake of the arguments is one line with the value and the rule."""
    assert main(["upload", *arguments]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert rule in line
    assert "secret" not in line


@pytest.mark.parametrize("flags", [[], ["--follow"]])
def test_the_extra_that_is_missing_is_named(flags, capfd, monkeypatch, tmp_path):
    """Without the libraries of stores, the error has the command that installs them."""

    def missing(_):
        raise ImportError(name="s3fs")

    monkeypatch.setattr(stores, "_store", missing)
    assert main(["upload", str(tmp_path), BUCKET, *flags]) == 69
    rule = "s3:// needs the extra cloud: pip install 'spectrod[cloud]' (s3fs is missing)"
    assert capfd.readouterr().err == f"spectrod: {rule}\n"


def test_the_command_needs_no_store_to_start():
    """Libraries of stores are imported when a bucket is asked, not with the options."""
    program = "import sys, spectrod.apps.upload.command; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    slow = {"aiohttp", "botocore", "fsspec", "gcsfs", "s3fs", "pyopencl", "zmq"}
    assert slow.isdisjoint(done.stdout.split())


@pytest.mark.parametrize(
    ("name", "is_recording"),
    [
        ("20260501T210000Z.spd", True), ("X.WAV", True), ("x.sigmf-data", True),
        ("x.sigmf-meta", True), ("x.csv", True), ("x.parquet", True), ("x.jpeg", True),
        ("x.npy", True), ("x.npy.json", True),
        ("x.spd.part", False), ("x.wav.part", False), ("x.spd.part.damaged", False),
        (".spectrod-001122.part", False), (".x.wav.AbCdEf", False), (".x.wav", False),
        ("20260501.cells", False), ("pyramid.json", False), ("x.zarr", False), ("spd", False),
    ],
)  # fmt: skip
def test_names_of_finished_files(name, is_recording):
    """Files that are written, hidden, or of no format are none."""
    assert is_recording_name(name) is is_recording


def test_links_are_not_followed_when_a_file_is_opened(tmp_path):
    """A link that takes the place of a file or of its folder after the list opens nothing."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/x.wav").write_bytes(b"sound")
    with open_finished(tmp_path, "a/b/x.wav") as file:
        assert file.read() == b"sound"
    (tmp_path / "a/b").rename(tmp_path / "c")
    (tmp_path / "a/b").symlink_to(tmp_path / "c")
    with pytest.raises(OSError, match="Not a directory"):
        open_finished(tmp_path, "a/b/x.wav")
    (tmp_path / "a/y.wav").symlink_to(tmp_path / "c/x.wav")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        open_finished(tmp_path, "a/y.wav")


def test_a_version_is_removed_and_no_other(tmp_path):
    """A file that was written again after it was listed stays."""
    path = tmp_path / "x.wav"
    path.write_bytes(b"sound")
    listed = list_finished(tmp_path).files["x.wav"]
    assert listed == FileVersion.of(path.stat())
    path.write_bytes(b"other")
    assert not finished_files.remove_finished(tmp_path, "x.wav", listed._replace(mtime_ns=1))
    assert path.exists()
    assert finished_files.remove_finished(tmp_path, "x.wav", FileVersion.of(path.stat()))
    assert not path.exists()
    assert not finished_files.remove_finished(tmp_path, "x.wav", listed)


def test_what_is_left_out_is_bounded(tmp_path, monkeypatch):
    """Of many links the first are named, and all are counted; the folder of a disk is not."""
    monkeypatch.setattr(finished_files, "LEFT_OUT_MAX", 3)
    monkeypatch.setattr(finished_files, "DEPTH_MAX", 2)
    (tmp_path / "lost+found").mkdir(mode=0)
    (tmp_path / "1/2/3").mkdir(parents=True)
    for k in range(5):
        (tmp_path / f"{k}.wav").symlink_to("nowhere")
    found = list_finished(tmp_path)
    assert (len(found.left_out), found.n_left_out) == (3, 6)
