"""Recordings that ``spectrod upload`` sends to buckets."""

import errno
import json
import multiprocessing
import multiprocessing.util
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

pytest.importorskip("s3fs")
pytest.importorskip("gcsfs")
pytest.importorskip("moto.server")

from spectrod.apps.upload import finished_files, uploader
from spectrod.apps.upload.following import LogReport
from spectrod.apps.upload.uploader import Uploader
from spectrod.cli import main
from spectrod.lib.errors import StorageError
from spectrod.source.store import objects, stores, uploads
from spectrod.source.store.file_part import refused

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

import killed_uploads
from range_server import serving
from s3_server import SECRET, stored

pytestmark = [pytest.mark.extended, pytest.mark.filterwarnings("default")]

OLD_S = 3600.0
PARTS = (1 << 24) + 5
"""A file of three parts [bytes]."""


@pytest.fixture
def folder(tmp_path):
    """Return an empty folder of recordings."""
    path = tmp_path / "recordings"
    path.mkdir()
    return path


def make(folder, name, n_bytes=1000, seed=0, age_s=OLD_S):
    """Write a finished file of some age; return its content."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    content = random.Random(seed).randbytes(n_bytes)  # noqa: S311
    part = path.with_name(f".{path.name[:100]}.part")
    part.write_bytes(content)
    modified_s = time.time() - age_s
    os.utime(part, (modified_s, modified_s))
    part.rename(path)
    return content


def upload(folder, name, capfd, *flags):
    """Run the command once; return its exit code, the summary and the lines of faults."""
    code = main(["upload", str(folder), f"s3://{name}/a/b", "--json", *flags])
    written = capfd.readouterr()
    return code, json.loads(written.out) if written.out else None, written.err.splitlines()


def local(folder):
    """Return the content of all files of a folder."""
    return {
        str(one.relative_to(folder)): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file() and not one.is_symlink()
    }


def test_finished_files_are_sent_once(folder, bucket, capfd):
    """Names and bytes are those of the folder; a file of another size is replaced."""
    client, name = bucket
    make(folder, "all/mic/20260501T210000Z.spd")
    make(folder, "all/mic/20260501T210000Z.wav", PARTS)
    make(folder, "días/mic #1+%41?/x y.flac", 10)
    expected = local(folder)
    make(folder, "all/mic/20260501T220000Z.spd.part")
    make(folder, "all/mic/.spectrod-0011.part")
    make(folder, "all/mic/pyramid/1s/20260501.cells")
    make(folder, "note.txt")
    code, counts, lines = upload(folder, name, capfd)
    assert (code, lines) == (0, [])
    sizes = sum(map(len, expected.values()))
    nothing = dict.fromkeys(("there", "removed", "left_out", "failed", "waiting"), 0)
    assert counts == {"sent": 3, "sent_bytes": sizes, "unfinished": 1, **nothing}
    assert stored(client, name, "a/b/") == expected
    code, counts, _ = upload(folder, name, capfd)
    assert (code, counts["sent"], counts["there"]) == (0, 0, 3)
    expected["all/mic/20260501T210000Z.spd"] = make(folder, "all/mic/20260501T210000Z.spd", 5)
    assert main(["upload", str(folder), f"s3://{name}/a/b"]) == 0
    assert capfd.readouterr().out == "sent: 1 files, 0.0 MB; there before: 2; unfinished: 1\n"
    assert stored(client, name, "a/b/") == expected


def test_what_is_left_out_is_named(folder, bucket, capfd, tmp_path):
    """Links, pipes, names that are none in a bucket and stores of many files; the rest is sent."""
    client, name = bucket
    make(tmp_path, "secret.wav")
    (folder / "file.wav").symlink_to(tmp_path / "secret.wav")
    (folder / "inside").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.wav")
    make(folder, "line\nbreak.wav")
    (folder / os.fsdecode(b"\xe9.wav")).write_bytes(b"x")
    make(folder, "day.zarr/zarr.json")
    make(folder, f"{'ü' * 120}/{'ü' * 120}/{'ü' * 120}/{'ü' * 120}/{'ü' * 50}.wav")
    sent = make(folder, "good.wav")
    code, counts, lines = upload(folder, name, capfd)
    assert (code, counts["sent"], counts["left_out"]) == (65, 1, 7)
    assert stored(client, name, "a/b/") == {"good.wav": sent}
    reasons = {line.partition(f"{folder}/")[2] for line in lines}
    printable = "must have a name of printable characters in UTF-8, to be one of the bucket"
    assert reasons - {one for one in reasons if one.startswith("ü")} == {
        "file.wav: is a link: links are not followed",
        "inside: is a link: links are not followed",
        "pipe.wav: must be a regular file",
        rf"line\nbreak.wav: {printable}",
        rf"\xe9.wav: {printable}",
        "day.zarr: is a recording of many files, which cannot appear whole",
    }
    assert any(one.endswith("must have at most 1024 bytes in its name with that of the folder")
               for one in reasons)  # fmt: skip


def test_a_folder_that_is_missing_or_too_large(folder, bucket, capfd, monkeypatch):
    """Each is one line with the exit code of unusable input."""
    _, name = bucket
    assert main(["upload", str(folder / "none"), f"s3://{name}"]) == 2
    assert capfd.readouterr().err == f"spectrod: {folder}/none: No such file or directory\n"
    for k in range(4):
        make(folder, f"{k}/{k}.wav")
    monkeypatch.setattr("spectrod.apps.upload.finished_files.FILES_MAX", 3)
    assert main(["upload", str(folder), f"s3://{name}"]) == 2
    assert capfd.readouterr().err == f"spectrod: {folder}: has more than 3 finished files\n"
    monkeypatch.setattr("spectrod.apps.upload.finished_files.FOLDERS_MAX", 3)
    assert main(["upload", str(folder), f"s3://{name}"]) == 2
    assert capfd.readouterr().err == f"spectrod: {folder}: has more than 3 folders in it\n"


@pytest.mark.parametrize("n_bytes", [1000, PARTS])
def test_a_file_that_changes_is_not_sent(folder, bucket, capfd, monkeypatch, n_bytes):
    """One that grows while it is sent appears with the next upload, whole; nothing is left."""
    client, name = bucket
    make(folder, "x.wav", n_bytes)
    read, n_read = uploads._read, 0

    def grown(file, n):
        nonlocal n_read
        n_read += 1
        content = read(file, n)
        with (folder / "x.wav").open("ab") as other:
            other.write(b"more")
        return content

    with monkeypatch.context() as patched:
        patched.setattr(uploads, "_read", grown)
        code, counts, lines = upload(folder, name, capfd)
    assert (code, counts["sent"], counts["waiting"]) == (65, 0, 1)
    assert lines == [f"spectrod: {folder}/x.wav: has changed while it was sent"]
    assert n_read == -(-n_bytes // uploads.PART_BYTES)
    assert stored(client, name) == {}
    assert "Uploads" not in client.list_multipart_uploads(Bucket=name)
    assert upload(folder, name, capfd)[0] == 0
    assert stored(client, name, "a/b/") == local(folder)


def test_a_file_that_vanishes_is_reported(folder, bucket, capfd, monkeypatch):
    """The recorder's own rules may delete a file that was listed."""
    client, name = bucket
    make(folder, "x.wav", age_s=3 * OLD_S)
    sent = make(folder, "y.wav")
    list_sizes = "spectrod.apps.upload.uploader.list_sizes"
    monkeypatch.setattr(list_sizes, lambda *_, **__: os.remove(folder / "x.wav") or {})  # noqa: PTH107
    code, counts, lines = upload(folder, name, capfd)
    assert (code, counts["sent"], counts["left_out"], counts["waiting"]) == (65, 1, 1, 0)
    rule = "deleted before it was sent, as by a rule of its recording"
    assert lines == [f"spectrod: x.wav: {rule}"]
    assert stored(client, name, "a/b/") == {"y.wav": sent}


def test_a_disk_that_is_mounted_later(folder, bucket, tmp_path, capfd):
    """Old files that come after the first look are looked up in the bucket before they are sent."""
    client, name = bucket
    make(folder, "there.wav")
    assert upload(folder, name, capfd)[0] == 0
    (tmp_path / "empty").mkdir()
    folder.rename(tmp_path / "disk")
    (tmp_path / "empty").rename(folder)
    one = Uploader(folder, f"s3://{name}/a/b", LogReport())
    one.look()
    (tmp_path / "disk/there.wav").rename(folder / "there.wav")
    make(folder, "old.wav")
    make(folder, "new.wav", age_s=0.0)
    one.look()
    assert (one.n_sent, one.n_there) == (2, 1)
    assert stored(client, name, "a/b/") == local(folder)


# ---- removing


def test_removed_files_are_in_the_bucket(folder, bucket, capfd):
    """Files that were sent now or before, by parts or not, are removed when they are old enough."""
    client, name = bucket
    make(folder, "before/x.spd")
    make(folder, "before/large.wav", PARTS)
    make(folder, "fresh.wav", age_s=0.0)
    expected = local(folder)
    assert upload(folder, name, capfd)[0] == 0
    make(folder, "y.spd")
    expected = expected | local(folder)
    code, counts, _ = upload(folder, name, capfd, "--remove", "--keep-days", "1")
    assert (code, counts["sent"], counts["removed"]) == (0, 1, 0)
    code, counts, _ = upload(folder, name, capfd, "--remove")
    assert (code, counts["removed"]) == (0, 3)
    assert local(folder).keys() == {"fresh.wav"}
    assert stored(client, name, "a/b/") == expected


def test_room_is_made_while_others_wait(folder, bucket, capfd, monkeypatch):
    """A file is removed before the next one is sent."""
    _, name = bucket
    for k in range(3):
        make(folder, f"{k}.wav", age_s=OLD_S - k)
    sent, seen = uploads.send, []

    def send(url, file, **options):
        seen.append(sorted(local(folder)))
        return sent(url, file, **options)

    monkeypatch.setattr("spectrod.apps.upload.uploader.send", send)
    assert upload(folder, name, capfd, "--remove")[0] == 0
    assert seen == [["0.wav", "1.wav", "2.wav"], ["1.wav", "2.wav"], ["2.wav"]]


def test_a_file_with_other_content_is_not_removed(folder, bucket, capfd):
    """Another one of this name and size in the bucket keeps the local one."""
    client, name = bucket
    content = make(folder, "x.wav")
    client.put_object(Bucket=name, Key="a/b/x.wav", Body=bytes(len(content)))
    code, counts, lines = upload(folder, name, capfd, "--remove")
    assert (code, counts["sent"], counts["there"], counts["removed"]) == (0, 0, 1, 0)
    rule = "stays: the bucket has a file of its name and size, not known to be the same"
    assert lines == [f"spectrod: {folder}/x.wav: {rule}"]
    assert local(folder) == {"x.wav": content}


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_is_removed_as_it_was_sent(folder, bucket, capfd, monkeypatch, is_gone):
    """One that changed after it was sent stays, and so does one that the bucket has lost."""
    client, name = bucket
    make(folder, "x.wav")
    sent = uploads.send

    def send(url, file, **options):
        digest = sent(url, file, **options)
        if is_gone:
            client.delete_object(Bucket=name, Key="a/b/x.wav")
        else:
            make(folder, "x.wav", seed=2, age_s=2 * OLD_S)
        return digest

    monkeypatch.setattr("spectrod.apps.upload.uploader.send", send)
    code, counts, lines = upload(folder, name, capfd, "--remove")
    assert (code, counts["sent"], counts["removed"]) == (74 if is_gone else 0, 1, 0)
    lost = f"spectrod: s3://{name}/a/b/x.wav: the bucket no longer has it"
    assert lines == ([lost] if is_gone else [])
    assert local(folder).keys() == {"x.wav"}


@pytest.mark.parametrize("n_bytes", [1000, PARTS])
def test_a_file_that_another_station_replaced_stays(folder, bucket, caplog, monkeypatch, n_bytes):
    """An object of the same name and size that came after the upload is not the file."""
    client, name = bucket
    content = make(folder, "x.wav", n_bytes, age_s=0.0)
    one = Uploader(folder, f"s3://{name}/a/b", LogReport(), removed_after_s=0.0)
    one.look()
    client.put_object(Bucket=name, Key="a/b/x.wav", Body=bytes(n_bytes))
    monkeypatch.setattr(uploader, "REMOVED_AGE_S", 0.0)
    one.look()
    assert (one.n_sent, one.n_removed) == (1, 0)
    assert "stays: the bucket has a file of its name and size, not known" in caplog.text
    assert local(folder) == {"x.wav": content}


def test_a_file_that_was_edited_and_has_its_old_time_stays(folder, bucket, monkeypatch):
    """Programs that edit tags in place set the time of modification back."""
    _, name = bucket
    make(folder, "x.wav", age_s=0.0)
    one = Uploader(folder, f"s3://{name}/a/b", LogReport(), removed_after_s=0.0)
    one.look()
    path = folder / "x.wav"
    before = path.stat()
    path.write_bytes(bytes(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    monkeypatch.setattr(uploader, "REMOVED_AGE_S", 0.0)
    one.look()
    assert (one.n_sent, one.n_removed) == (1, 0)
    assert local(folder) == {"x.wav": bytes(before.st_size)}


def refusing_store(monkeypatch, method):
    """Let the store refuse one kind of request."""

    async def refuse(*_, **__):
        raise refused("its store refuses it (NotImplemented)")

    monkeypatch.setattr(objects.S3Store, method, refuse)


def test_files_are_sent_where_none_can_be_compared(folder, bucket, capfd, monkeypatch):
    """A bucket that says no checksum keeps no file from being sent, nor local ones."""
    client, name = bucket
    for k in range(5):
        make(folder, f"{k}.wav")
    assert upload(folder, name, capfd)[0] == 0
    make(folder, "new.wav")
    refusing_store(monkeypatch, "digest")
    _, counts, lines = upload(folder, name, capfd, "--remove")
    assert (counts["sent"], counts["removed"]) == (1, 0)
    rule = "cannot be compared, so it stays here: its store refuses it (NotImplemented)"
    assert lines == [f"spectrod: s3://{name}/a/b/{k}.wav: {rule}" for k in range(3)]
    assert stored(client, name, "a/b/") == local(folder)


def test_a_store_that_lists_no_unfinished_uploads(folder, bucket, capfd, monkeypatch):
    """Large files are sent all the same."""
    client, name = bucket
    make(folder, "x.wav", PARTS)
    refusing_store(monkeypatch, "unfinished")
    assert upload(folder, name, capfd)[0] == 0
    assert stored(client, name, "a/b/") == local(folder)


def test_a_completion_without_a_checksum_is_none(folder, bucket, capfd, monkeypatch):
    """A store that answers with nothing after the status has not said that the file is whole."""
    _, name = bucket
    make(folder, "x.wav", PARTS)
    call = objects.S3Store._call

    async def nothing(self, method, **arguments):
        is_last = method == "complete_multipart_upload"
        return {} if is_last else await call(self, method, **arguments)

    monkeypatch.setattr(objects.S3Store, "_call", nothing)
    monkeypatch.setattr(stores, "ATTEMPTS_MAX", 1)
    code, counts, lines = upload(folder, name, capfd, "--remove")
    assert (code, counts["sent"], counts["removed"]) == (74, 0, 0)
    rule = "its store does not say that the file is whole; tried 1 times"
    assert lines == [f"spectrod: s3://{name}/a/b/x.wav: {rule}"]
    assert local(folder).keys() == {"x.wav"}


def test_a_folder_that_may_not_be_written(folder, bucket, capfd, monkeypatch):
    """Each folder in which nothing can be removed is named once; others are not kept by it."""
    _, name = bucket
    for k in range(6):
        make(folder, f"{k % 2}/{k}.wav", age_s=OLD_S - k)
    remove = finished_files.remove_finished

    def refuse(folder, name, file):
        if name.startswith("0/"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return remove(folder, name, file)

    monkeypatch.setattr("spectrod.apps.upload.uploader.remove_finished", refuse)
    code, counts, lines = upload(folder, name, capfd, "--remove")
    assert (code, counts["sent"], counts["removed"]) == (0, 6, 3)
    assert lines == [f"spectrod: {folder}/0: files in it cannot be removed: Read-only file system"]


# ---- kills


def test_all_is_whole_after_any_kill(folder, bucket, capfd, monkeypatch, tmp_path):
    """Ten kills at seeded requests of an upload that removes: no byte is lost, no object torn."""
    client, name = bucket
    multiprocessing.util.get_temp_dir()  # of forkserver, which stays after this test
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for k in range(60):  # more than ten times twelve requests
        make(folder, f"mic/{k}.spd", 1000 + k, k, age_s=OLD_S - k)
    for k in range(2):
        make(folder, f"mic/{k}.wav", PARTS + k, k, age_s=OLD_S - 3 * k)
    expected = local(folder)
    environment = {one: os.environ[one] for one in os.environ if one.startswith("AWS")}
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["spectrod.apps.upload.command", "spectrod.source.store.objects", "s3fs"]
    )
    rng = random.Random(34)  # noqa: S311
    arguments = [str(folder), f"s3://{name}/a/b", "--remove"]
    for _ in range(10):
        killed = environment, arguments, rng.randint(2, 12), rng.random() < 0.5
        process = context.Process(target=killed_uploads.upload, args=killed)
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        found = stored(client, name, "a/b/")
        assert found.items() <= expected.items()
        assert local(folder) | found == expected
    assert upload(folder, name, capfd, "--remove")[0] == 0
    assert stored(client, name, "a/b/") == expected
    assert local(folder) == {}
    assert "Uploads" not in client.list_multipart_uploads(Bucket=name)


def test_what_others_upload_is_not_aborted(folder, bucket, capfd):
    """Unfinished uploads of the folder's own large files are removed, and no others."""
    client, name = bucket
    make(folder, "x.wav", PARTS)
    for key in ("a/b/x.wav", "a/b/x.wav.other", "a/b/y.wav"):
        client.create_multipart_upload(Bucket=name, Key=key)
    assert upload(folder, name, capfd)[0] == 0
    left = client.list_multipart_uploads(Bucket=name)["Uploads"]
    assert sorted(one["Key"] for one in left) == ["a/b/x.wav.other", "a/b/y.wav"]


# ---- refusals


def test_a_bucket_that_is_missing_or_away(folder, bucket, capfd, monkeypatch):
    """Each is one line; nothing is printed of what was not found out."""
    _, name = bucket
    make(folder, "x.wav")
    assert main(["upload", str(folder), "s3://no-such-bucket/a"]) == 74
    written = capfd.readouterr()
    assert written.err == "spectrod: s3://no-such-bucket/a: there is no such bucket\n"
    stores._store.cache_clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert main(["upload", str(folder), f"s3://{name}/a"]) == 74
    written += capfd.readouterr()
    assert f"spectrod: s3://{name}/a: its store does not answer (" in written[-1]
    assert written[-1].endswith("); tried 4 times\n")
    assert "".join(written[::2]) == ""


@contextmanager
def refusing(monkeypatch, tmp_path, answer_put):
    """Run a store with an empty list, whose answers to uploads a function gives."""
    listing = b"<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>"
    puts = []

    def answer(handler):
        content = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        status, body = 200, listing
        if handler.command == "PUT":
            puts.append(handler.path)
            status, body = answer_put(handler.path, content)
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with serving({}) as server:
        server.mode = answer
        for one, value in {
            "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_CONFIG_FILE": str(tmp_path / "none"),
        }.items():  # fmt: skip
            monkeypatch.setenv(one, value)
        stores._store.cache_clear()
        yield puts
    stores._store.cache_clear()


def error_of(status, code):
    return status, f"<Error><Code>{code}</Code></Error>".encode()


def test_a_bucket_that_is_full_ends_the_upload(folder, monkeypatch, tmp_path, capfd):
    """After three refusals in a row it is not asked for the others."""
    for k in range(9):
        make(folder, f"{k}.wav", age_s=OLD_S - k)
    with refusing(monkeypatch, tmp_path, lambda *_: error_of(403, "QuotaExceeded")) as puts:
        code, counts, lines = upload(folder, "abc", capfd)
    assert (code, counts["sent"], counts["failed"], counts["waiting"]) == (74, 0, 3, 9)
    assert puts == [f"/abc/a/b/{k}.wav" for k in range(3)]
    reason = "its store takes no more bytes (QuotaExceeded)"
    urls = [f"s3://abc/a/b/{k}.wav" for k in range(3)]
    assert lines == [f"spectrod: {url}: {reason}" for url in [*urls, "s3://abc/a/b"]]


def test_a_file_that_is_refused_does_not_keep_others(folder, monkeypatch, tmp_path, capfd):
    """One refusal between others is a line, and the exit code of storage."""
    for k in range(5):
        make(folder, f"{k}.wav", age_s=OLD_S - k)

    def answer(path, _):
        return error_of(400, "EntityTooLarge") if path.endswith("2.wav") else (200, b"")

    with refusing(monkeypatch, tmp_path, answer):
        code, counts, lines = upload(folder, "abc", capfd)
    assert (code, counts["sent"], counts["failed"], counts["waiting"]) == (74, 4, 1, 1)
    assert lines == ["spectrod: s3://abc/a/b/2.wav: its store refuses it (EntityTooLarge)"]


def test_credentials_are_in_no_log(folder, bucket, capfd):
    """An upload at the level debug, that sends, finds, compares and removes, repeats no secret."""
    _, name = bucket
    make(folder, "x.wav", PARTS)
    make(folder, "y.wav")
    for flags in ([], ["--remove"]):
        arguments = ["upload", str(folder), f"s3://{name}/a", "--log-level", "debug", *flags]
        assert main(arguments) == 0
    assert main(["upload", str(folder.parent), "s3://no-such-bucket", "--log-level", "debug"]) == 74
    written = "".join(capfd.readouterr())
    assert "no such bucket" in written
    for word in (SECRET, "Signature", "somebody"):
        assert word not in written


def test_a_bucket_of_google(folder, monkeypatch, capfd):
    """The same with Google's protocol: names, parts, and removal by the checksum."""
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    server = emulator.create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    try:
        host, port = server._api._httpd.socket.getsockname()[:2]
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{host}:{port}")
        monkeypatch.setenv("FSSPEC_GS_TOKEN", "anon")
        fs = objects.GcsStore()._fs
        fs.mkdir("north")
        make(folder, "días/mic #1+%41/x y.flac")
        make(folder, "large.wav", PARTS)
        expected = local(folder)
        for n_removed, flags in ((0, []), (2, ["--remove"])):
            assert main(["upload", str(folder), "gs://north/a", "--json", *flags]) == 0
            assert json.loads(capfd.readouterr().out)["removed"] == n_removed
        assert local(folder) == {}
        for key, content in expected.items():
            assert fs.cat_file(f"north/a/{key}") == content
    finally:
        server.stop()
        stores._store.cache_clear()


# ---- the service


class Follower:
    """``spectrod upload --follow`` in a process of its own; its log is read line by line."""

    def __init__(self, folder, address, *flags):
        command = [sys.executable, "-m", "spectrod", "upload", str(folder), address]
        self.process = subprocess.Popen(
            [*command, "--follow", "--interval", "50ms", *flags], stderr=subprocess.PIPE, text=True
        )
        self.lines = []

    def await_lines(self, *texts):
        """Read the log until each text has been in a line."""
        waiting = set(texts)
        while waiting:
            line = self.process.stderr.readline()
            assert line, self.lines
            self.lines.append(line)
            waiting -= {text for text in waiting if text in line}

    def stop(self, number=signal.SIGTERM):
        """Send a signal; return the exit code."""
        self.process.send_signal(number)
        self.lines += self.process.stderr.readlines()
        return self.process.wait()

    def close(self):
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()


@pytest.fixture
def follow():
    """Start services, and end them after the test."""
    started = []

    def start(*arguments):
        started.append(Follower(*arguments))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_recordings_are_sent_as_they_are_finished(folder, bucket, follow, tmp_path):
    """Those of ``spectrod record`` arrive with their bytes; the folder may come later."""
    client, name = bucket
    folder.rmdir()
    service = follow(folder, f"s3://{name}/a")
    service.await_lines(f"{folder}: No such file or directory; trying again")
    folder.mkdir()
    outputs = [f"-o{folder}/mic/{one}" for one in ("x.spd", "x.flac", "x.png")]
    assert main(["record", "signal:sine,1000,-20", "--duration", "1", *outputs]) == 0
    service.await_lines(*(f"mic/{one}: sent, " for one in ("x.spd", "x.flac", "x.png")))
    assert service.stop() == 0
    assert stored(client, name, "a/") == local(folder)
    assert [line for line in service.lines if "can be read again, after 0:00:" in line]


def test_the_daemons_recordings_are_sent(folder, bucket, follow, tmp_path):
    """Segments and sound of a daemon that goes on arrive whole, and are read back."""
    client, name = bucket
    service = follow(folder, f"s3://{name}/a", "--remove", "--keep-days", "1")
    config = tmp_path / "spectrod.toml"
    config.write_text(
        '[source]\nuri = "signal:sine,1000,-20"\nname = "tone"\n[engine]\nengine = "numpy"\n'
        '[publish]\nendpoints = ["tcp://127.0.0.1:*"]\n'
        f'[control]\nstate_folder = "{tmp_path}"\n'
        f'[recordings.all]\nfolder = "{folder}"\nrotate_s = 1\nsamples = "flac"\nmin_free_mb = 1\n'
    )
    with subprocess.Popen(
        [sys.executable, "-m", "spectrod", "run", "--config", str(config)],
        stderr=subprocess.DEVNULL,
        env=os.environ | {"RUNTIME_DIRECTORY": str(tmp_path)},
    ) as daemon:
        service.await_lines(".spd: sent, ", ".flac: sent, ")
        n_before = len(stored(client, name))
        service.await_lines(".spd: sent, ")
        assert len(stored(client, name)) > n_before
        daemon.terminate()
        assert daemon.wait() == 0
    last = max(folder.rglob("*.spd"))
    while not any(last.name in line for line in service.lines):
        service.await_lines(": sent, ")
    assert service.stop() == 0
    found = stored(client, name, "a/")
    assert found.items() <= local(folder).items()
    copy = tmp_path / "copy"
    for key, content in found.items():
        path = copy / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    segments = sorted(copy.rglob("*.spd"))
    assert len(segments) >= 2
    for path in segments:
        assert main(["info", str(path)]) == 0


def test_a_network_that_is_away_is_waited_for(folder, bucket, follow, s3_server):
    """The loss and the recovery are a line each; the file in progress and new ones follow."""
    client, name = bucket
    make(folder, "a.wav")
    service = follow(folder, f"s3://{name}/a")
    service.await_lines("a.wav: sent, 1000 bytes")
    s3_server.stop()
    try:
        make(folder, "b.wav", PARTS)
        make(folder, "c.wav", age_s=0.0)
        service.await_lines("its store does not answer (")
    finally:
        s3_server.start()
    service.await_lines(f"s3://{name}/a: answers again, after 0:00:", "c.wav: sent")
    assert service.stop(signal.SIGINT) == 130
    warnings = [line for line in service.lines if "WARNING" in line]
    assert len(warnings) == 2
    assert stored(client, name, "a/") == local(folder)
    assert "Uploads" not in client.list_multipart_uploads(Bucket=name)


def test_a_service_without_its_network_ends_at_a_signal(folder, bucket, follow, monkeypatch):
    """It starts without it, too, and waits."""
    _, name = bucket
    make(folder, "a.wav")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    service = follow(folder, f"s3://{name}/a")
    service.await_lines("its store does not answer (")
    assert service.stop() == 0
    assert len(service.lines) == 1


def test_a_service_says_at_its_start_what_its_bucket_refuses(folder, bucket, follow):
    """A mistake in the address is the exit code of storage, and not waited for."""
    make(folder, "a.wav")
    service = follow(folder, "s3://no-such-bucket/a")
    service.await_lines("spectrod: s3://no-such-bucket/a: there is no such bucket")
    assert service.process.wait() == 74


def test_a_service_waits_for_a_full_bucket(folder, follow, monkeypatch, tmp_path):
    """It logs three files and the bucket once, however often it tries, and the end of it."""
    for k in range(5):
        make(folder, f"{k}.wav", age_s=OLD_S - k)
    has_room, n_puts, asked_again = threading.Event(), 0, threading.Event()

    def answer(*_):
        nonlocal n_puts
        n_puts += 1
        if n_puts > 8:
            asked_again.set()
        return (200, b"") if has_room.is_set() else error_of(403, "QuotaExceeded")

    with refusing(monkeypatch, tmp_path, answer):
        service = follow(folder, "s3://abc/a")
        service.await_lines("s3://abc/a: its store takes no more bytes (QuotaExceeded); trying")
        assert asked_again.wait(60)
        has_room.set()
        service.await_lines(*(f"{k}.wav: sent" for k in range(5)), "s3://abc/a: takes files again")
        assert service.stop() == 0
    assert len([line for line in service.lines if "WARNING" in line]) == 5


def test_files_that_a_recorder_deletes_are_reported(folder, follow, monkeypatch, tmp_path):
    """Those that were never sent are one line, with their number."""
    for k in range(5):
        make(folder, f"{k}.wav", age_s=OLD_S - k)
    with refusing(monkeypatch, tmp_path, lambda *_: error_of(403, "QuotaExceeded")):
        service = follow(folder, "s3://abc/a")
        service.await_lines("; trying again")
        for k in (1, 2, 4):
            (folder / f"{k}.wav").unlink()
        service.await_lines("1.wav and 2 more: deleted before it was sent, as by a rule of its")
        assert service.stop() == 0


def test_an_answer_that_is_lost(folder, bucket, capfd, monkeypatch):
    """A file whose last answer was lost is whole, and the next run finds that it is there."""
    client, name = bucket
    make(folder, "x.wav", PARTS)
    complete = objects.S3Store.complete

    async def lost(self, url, upload, tags):
        await complete(self, url, upload, tags)
        raise refused("its store refuses it (NoSuchUpload)")  # to the second attempt

    monkeypatch.setattr(objects.S3Store, "complete", lost)
    one = Uploader(folder, f"s3://{name}/a/b", LogReport())
    with pytest.raises(StorageError, match=rf"^s3://{name}/a/b: .*NoSuchUpload"):
        one.look()
    assert stored(client, name, "a/b/") == local(folder)
    one.look()
    assert (one.n_sent, one.n_waiting) == (1, 0)
    assert upload(folder, name, capfd)[1]["there"] == 1


def test_a_slow_line_has_time(folder, bucket):
    """Requests that send bytes may take longer than those of ``spectrod batch``."""
    _, name = bucket
    limits = []

    def ask(url, call, limit_s=None):
        limits.append(limit_s)
        return stores.answer(url, call, limit_s)

    make(folder, "x.wav", PARTS)
    make(folder, "y.wav")
    Uploader(folder, f"s3://{name}/a", LogReport(), ask=ask).look()
    assert [one for one in limits if one] == [uploader.PART_S] * 4
    assert uploader.PART_S > 2 * uploads.PART_S
