"""Where results go: rules of addresses, and files of buckets that are whole or not there."""

import errno
import os
from pathlib import Path

import pytest

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

from spectrod.apps.batch import bucket_output
from spectrod.apps.batch.bucket_output import BucketOutput
from spectrod.apps.batch.output import write
from spectrod.lib.errors import ConfigError, StorageError
from spectrod.source.store import remote_file, store_listing, stores, uploads
from spectrod.source.store.bucket_address import FOLDER_CHARS_MAX, bucket_address
from spectrod.source.store.file_part import FilePart, UnreachableError, denied, missing, refused
from spectrod.source.store.objects import KeyPage


class FakeStore:
    """A bucket in memory; ``error`` is raised by requests from ``n_left`` on."""

    def __init__(self):
        self.files, self.uploads, self.calls = {}, {}, []
        self.error, self.n_left = None, 0

    def _called(self, name):
        self.calls.append(name)
        self.n_left -= 1
        if self.error is not None and self.n_left < 0:
            raise self.error

    async def read(self, url, first, end):
        self._called("read")
        if url not in self.files:
            raise missing()
        content = self.files[url]
        return FilePart(content[first:end], len(content), 1, "one")

    async def page(self, bucket, prefix, token, *, recursive):  # noqa: ARG002
        self._called("page")
        begin = f"s3://{bucket}/"
        keys = {url.removeprefix(begin): len(one) for url, one in self.files.items()}
        return KeyPage({key: n for key, n in keys.items() if key.startswith(prefix)}, "")

    async def put(self, url, content):
        self._called("put")
        self.files[url] = content

    async def delete(self, url):
        self._called("delete")
        self.files.pop(url, None)

    async def begin(self, url):
        self._called("begin")
        self.uploads[url] = []
        return url

    async def put_part(self, url, upload, part):  # noqa: ARG002
        self._called("put_part")
        parts = self.uploads[upload]
        assert (part.number, part.first) == (len(parts) + 1, sum(map(len, parts)))
        parts.append(part.content)
        return str(part.number)

    async def complete(self, url, upload, tags):
        self._called("complete")
        parts = self.uploads.pop(upload)
        assert list(tags) == [str(k) for k in range(1, len(parts) + 1)]
        self.files[url] = b"".join(parts)

    async def abort(self, url, upload):  # noqa: ARG002
        self.calls.append("abort")
        self.uploads.pop(upload)

    async def unfinished(self, url):
        self._called("unfinished")
        return [(one, one) for one in self.uploads if one.startswith(url)]


@pytest.fixture
def store(monkeypatch, tmp_path):
    found = FakeStore()
    for module in (uploads, remote_file, store_listing, bucket_output):
        monkeypatch.setattr(module, "store_of", lambda _: found)
    monkeypatch.setattr(stores, "BACKOFF_FIRST_S", 0.001)
    monkeypatch.setattr(uploads, "PART_BYTES", 10)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return found


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("s3://a-bucket", "s3://a-bucket"),
        ("gs://a_bucket.of.us/", "gs://a_bucket.of.us"),
        ("s3://abc/pier 2026".replace(" ", "_") + "/day=1/", "s3://abc/pier_2026/day=1"),
        ("s3://abc/" + "x" * FOLDER_CHARS_MAX, "s3://abc/" + "x" * FOLDER_CHARS_MAX),
    ],
)
def test_addresses_of_results(address, found):
    """A bucket, and a folder in it, which may be deep and long."""
    assert bucket_address(address) == found


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("https://host/a", r"^https://host/a: must be a folder, or s3:// or gs:// with a bucket$"),
        ("s3:///a", "must name a server or a bucket"),
        ("s3://key:secret@abc/a", r"^s3://\.\.\.@abc: must hold no user and password"),
        ("s3://Abc", "its bucket must have 3 to 222 small letters"),
        ("s3://ab", "its bucket must have"),
        ("s3://abc/../b", r"^s3://abc/\.\./b: names of folders in it must have letters"),
        ("s3://abc/a//b", "names of folders"),
        ("s3://abc/a/.b", "not begin with a dot"),
        ("s3://abc/a\nb", r"^s3://abc/a\\nb: names of folders"),
        ("s3://abc/*", "names of folders"),
        ("s3://abc/a#b", "names of folders"),
        ("s3://abc/\N{LATIN SMALL LETTER E WITH ACUTE}", "names of folders"),
        ("s3://abc/" + "x" * (FOLDER_CHARS_MAX + 1), "its folder must have at most 700 characters"),
    ],
)
def test_addresses_that_no_results_have(address, rule):
    """One line, without a password and control characters, of bounded length."""
    with pytest.raises(ConfigError, match=rule) as caught:
        bucket_address(address)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("n", [0, 1, 10, 11, 20, 21, 35])
def test_files_are_whole(store, tmp_path, n):
    """Of any size, in one request or in parts, a file is that of the disk, and then removed."""
    path, output = tmp_path / "a", BucketOutput("s3://abc/b")
    path.write_bytes(content := os.urandom(n))
    output.publish({"north/a": path})
    assert store.files == {"s3://abc/b/north/a": content}
    assert store.calls.count("put_part") == (-(-n // 10) if n > 10 else 0)
    assert not store.uploads
    with output.fetched("north/a") as copy:
        assert copy.read_bytes() == content
    assert output.snapshot(()).size("north/a") == n
    output.remove("north/a")
    output.remove("north/a")
    assert output.size("north/a") is None
    with output.fetched("north/a") as copy:
        assert not copy.exists()
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("n_left", range(5))
@pytest.mark.parametrize(
    ("error", "reason", "n_asked"),
    [
        (denied(), "Permission denied by its store", 1),
        (refused("is not wanted"), "is not wanted", 1),
        (UnreachableError("is asleep"), "is asleep; tried 4 times", 4),
    ],
)
def test_uploads_that_fail_leave_nothing(store, tmp_path, n_left, error, reason, n_asked):
    """At any request a file in parts fails with its address and the reason, and is not there."""
    path = tmp_path / "a"
    path.write_bytes(bytes(21))
    store.error, store.n_left = error, n_left
    with pytest.raises(StorageError, match=rf"^s3://abc/a: {reason}$"):
        BucketOutput("s3://abc").publish({"a": path})
    requests = ["begin", "put_part", "put_part", "put_part", "complete"]
    expected = requests[:n_left] + requests[n_left : n_left + 1] * n_asked
    assert store.calls == expected + ["abort"] * (n_left > 0)
    assert not store.files
    assert not store.uploads


def test_parts_of_large_files_are_at_most_10000(tmp_path, monkeypatch):
    """Parts grow in steps with the file, and all but the last one are equal."""
    monkeypatch.setattr(uploads, "PART_BYTES", 4)
    monkeypatch.setattr(uploads, "PARTS_MAX", 3)
    path = tmp_path / "a"
    path.write_bytes(bytes(25))
    found = path.stat()
    with path.open("rb") as file:
        assert [len(part.content) for part in uploads._parts(file, found)] == [12, 12, 1]
    for size in (24, 26):
        os.truncate(path, size)
        with path.open("rb") as file, pytest.raises(OSError, match="has changed while it was sent"):
            list(uploads._parts(file, found))


def test_what_killed_uploads_left_is_removed(store):
    """That of a unit's own files alone; where uploads may not be listed, it stays."""
    output = BucketOutput("s3://abc")
    store.uploads = {f"s3://abc/north/north_{k}.nc": [b"x"] for k in (1, 2, 12)}
    names = ["north/north_1.nc", "north/north_1_flags.csv"]
    store.error, store.n_left = denied(), 0
    output.prepare(names)
    assert len(store.uploads) == 3
    store.error = None
    output.prepare(names)
    assert list(store.uploads) == ["s3://abc/north/north_2.nc", "s3://abc/north/north_12.nc"]


def test_a_snapshot_reads_ahead(store, monkeypatch):
    """Files among the names are read some at a time, once; others are asked for, or not there."""
    monkeypatch.setattr(bucket_output, "AHEAD_FILES", 3)
    store.files = {f"s3://abc/{k}": b"%d" % k for k in range(7)}
    found = BucketOutput("s3://abc").snapshot([str(k) for k in range(1, 9)])
    assert store.calls == ["page"]
    assert [found.read(str(k), 9) for k in (1, 2, 3)] == [b"1", b"2", b"3"]
    assert store.calls == ["page", *["read"] * 3]
    assert [found.read(str(k), 9) for k in (4, 5, 6, 0)] == [b"4", b"5", b"6", b"0"]
    with pytest.raises(FileNotFoundError):
        found.read("7", 9)
    assert store.calls == ["page", *["read"] * 7]
    assert [found.size("6"), found.size("7")] == [1, None]
    store.files["s3://abc/6"] = bytes(10)
    with pytest.raises(OSError, match="must have at most 9 bytes") as caught:
        found.read("6", 9)
    assert caught.value.errno == errno.EFBIG


def test_errors_of_a_copy_name_the_file_of_the_bucket(store, tmp_path):
    """Whoever reads or writes a copy knows its path alone, which no message has."""
    output = BucketOutput("s3://abc")

    def fail(path):
        raise StorageError(f"{path}:3: is wrong")

    for copied in (output.fetched, output.written):
        with (
            pytest.raises(StorageError, match=r"^s3://abc/plan\.jsonl:3: is wrong$"),
            copied("plan.jsonl") as path,
        ):
            fail(path)
    assert not store.files
    write(output, "a", b"content")
    assert store.files == {"s3://abc/a": b"content"}
    assert not list((tmp_path / "tmp").iterdir())


def test_scratch_is_a_folder_of_this_user_alone(store, tmp_path):
    """One that others can write into, or a link, is refused; two outputs have two."""
    folders = {BucketOutput(f"s3://abc/{k}").scratch for k in "ab"}
    assert len(folders) == 2
    (folder,) = {one.parent for one in folders}
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    with pytest.raises(StorageError, match=r": must be a folder of this user alone; set TMPDIR"):
        _ = BucketOutput("s3://abc").scratch
    folder.rmdir()
    folder.symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(StorageError, match=r": must be a folder of this user alone; set TMPDIR"):
        _ = BucketOutput("s3://abc").scratch
    folder.unlink()
    Path(folder).write_bytes(b"")
    with pytest.raises(StorageError, match=r"spectrod-batch-\d+: File exists"):
        _ = BucketOutput("s3://abc").scratch
