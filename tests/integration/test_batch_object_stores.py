"""Inputs of ``spectrod batch`` from stores of S3's and of Google's protocol on this machine."""

import json
import os
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

pytest.importorskip("s3fs")
pytest.importorskip("gcsfs")

from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.unit import compute_unit
from spectrod.cli import main
from spectrod.lib.errors import InputError, UnavailableError
from spectrod.source.store import objects, store_listing, stores
from spectrod.source.store.remote_file import RemoteFile
from spectrod.source.store.store_listing import list_urls

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

from range_server import serving
from small_archives import job_of, sound, write

boto3 = pytest.importorskip("boto3")
moto_server = pytest.importorskip("moto.server")
google_emulator = pytest.importorskip("gcp_storage_emulator.server")

pytestmark = [pytest.mark.extended, pytest.mark.filterwarnings("default")]

SECRET = "that-no-file-may-hold"  # noqa: S105 - of a store of this test
NAMES = count()


@pytest.fixture(scope="module")
def s3_url():
    server = moto_server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def _new_stores():
    """Let each test's variables count."""
    yield
    stores._store.cache_clear()


@pytest.fixture
def bucket(s3_url, monkeypatch, tmp_path):
    """Return the client of S3 and a new bucket; the libraries find both by their variables."""
    monkeypatch.setattr(stores, "BACKOFF_FIRST_S", 0.01)
    for name, value in {
        "AWS_ENDPOINT_URL": s3_url,
        "AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"), "AWS_EC2_METADATA_DISABLED": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    client, name = boto3.client("s3", endpoint_url=s3_url), f"bucket-{next(NAMES)}"
    client.create_bucket(Bucket=name)
    yield client, name
    client.close()


def upload(client, name, folder, prefix):
    """Upload a folder, and give its files the times of the store."""
    for path in sorted(folder.iterdir()):
        key = f"{prefix}{path.name}"
        client.put_object(Bucket=name, Key=key, Body=path.read_bytes())
        modified_s = client.head_object(Bucket=name, Key=key)["LastModified"].timestamp()
        os.utime(path, (modified_s, modified_s))


def shas(record):
    assert record.state == "done", record.reason
    return {one.path: one.sha256 for one in record.outputs}


def same_results(tmp_path, local, remote):
    """Check that all units of two jobs have the same bytes."""
    jobs = [job_of(tmp_path / str(k), inputs) for k, inputs in enumerate((local, remote))]
    plans = [plan_job(job) for job in jobs]
    assert len(plans[0].units) == len(plans[1].units) == 2
    for units in zip(*(plan.units for plan in plans), strict=True):
        records = [compute_unit(job, unit) for job, unit in zip(jobs, units, strict=True)]
        assert shas(records[0]) == shas(records[1])


def make_card(folder):
    """Write an hour over midnight in three files of two formats."""
    for k, suffix in enumerate((".wav", ".flac", ".wav")):
        write(folder, sound(400_001, k), 401 * k, suffix=suffix)
    return folder


def test_results_of_s3_are_those_of_local_files(tmp_path, bucket):
    """A bucket and a folder with the same files and times have the same daily files."""
    client, name = bucket
    upload(client, name, make_card(tmp_path / "card"), "2026/pier+north, card #1/")
    same_results(tmp_path, tmp_path / "card", f"s3://{name}/2026")


def test_buckets_are_listed_by_folders_and_patterns(bucket, monkeypatch):
    """Folders, subfolders, files and patterns mean what they do on a disk; pages are followed."""
    client, name = bucket
    keys = ["a/x.wav", "a/b/y.FLAC", "a/.hidden.wav", "a/b/.c/z.wav", "a/b/note.txt", "ab/z.wav"]
    keys += [f"many/{k:04}.wav" for k in range(9)]
    monkeypatch.setattr(objects, "PAGE_KEYS", 4)
    for key in keys:
        client.put_object(Bucket=name, Key=key, Body=b"")

    def listed(path, **options):
        found = list_urls(f"s3://{name}/{path}", **options)
        return [url.removeprefix(f"s3://{name}/") for url in found]

    assert listed("a") == listed("a/") == ["a/b/y.FLAC", "a/x.wav"]
    assert listed("a", recursive=False) == ["a/x.wav"]
    assert listed("a*/*.wav") == ["a/x.wav", "ab/z.wav"]
    assert listed("a/**/*.FLAC") == ["a/b/y.FLAC"]
    assert listed("a*") == ["a/b/y.FLAC", "a/x.wav", "ab/z.wav"]
    assert listed("a/x.wav") == ["a/x.wav"]
    assert listed("nothing") == []
    assert len(listed("many")) == 9
    assert len(listed("")) == 12
    monkeypatch.setattr(store_listing, "KEYS_MAX", 8)
    with pytest.raises(InputError, match=r"many: has more than 8 files of any kind"):
        listed("many")
    with pytest.raises(InputError, match=r"no-such-bucket/: No such file or directory"):
        list_urls("s3://no-such-bucket/")


def test_objects_that_cannot_be_read(bucket, s3_url, monkeypatch):
    """Missing and empty objects, and an endpoint that is gone, have their reasons."""
    client, name = bucket
    client.put_object(Bucket=name, Key="empty.wav", Body=b"")
    with pytest.raises(OSError, match="its store refuses to read it, as it does an empty file"):
        RemoteFile(f"s3://{name}/empty.wav")
    with pytest.raises(OSError, match="No such file"):
        RemoteFile(f"s3://{name}/missing.wav")
    stores._store.cache_clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match=r"does not answer \(\w+\); tried 4 times"):
        RemoteFile(f"s3://{name}/missing.wav")
    stores._store.cache_clear()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(OSError, match=r"no credentials for it \(NoCredentialsError\)"):
        RemoteFile(f"s3://{name}/missing.wav")


def test_credentials_are_in_no_file_and_no_log(tmp_path, bucket, capfd):
    """The whole of plan, run and merge at the level debug, with processes, repeats no secret."""
    client, name = bucket
    upload(client, name, make_card(tmp_path / "card"), "card/")
    job = tmp_path / "job.toml"
    job.write_text(
        '[job]\nname = "a"\noutput = "results"\nproducts = ["flags", "millidecade"]\n'
        f'engine = "numpy"\n[deployments.north]\ninputs = ["s3://{name}/card"]\n'
    )
    for command in (["plan"], ["run", "--jobs", "2"], ["merge"], ["verify", "--recompute", "1"]):
        assert main(["batch", *command, str(job), "--log-level", "debug"]) == 0
    written = capfd.readouterr()
    texts = [written.out, written.err]
    texts += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    for word in (SECRET, "Signature", "somebody"):
        assert not [text[:200] for text in texts if word in text]
    report = json.loads((tmp_path / "results/report.json").read_text())
    assert f"s3://{name}" not in report.get("job", "")


@pytest.fixture(scope="module")
def gcs_url():
    server = google_emulator.create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    host, port = server._api._httpd.socket.getsockname()[:2]
    yield f"http://{host}:{port}"
    server.stop()


def test_results_of_google_are_those_of_local_files(tmp_path, gcs_url, monkeypatch):
    """A bucket and a folder with the same files and times have the same daily files."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_url)
    monkeypatch.setenv("FSSPEC_GS_TOKEN", "anon")
    card = make_card(tmp_path / "card")
    store = objects.GcsStore()
    fs = store._fs
    fs.mkdir("north")
    for path in card.iterdir():
        fs.pipe_file(f"north/2026/{path.name}", path.read_bytes())
        modified_s = fs.info(f"north/2026/{path.name}")["mtime"].timestamp()
        os.utime(path, (modified_s, modified_s))
    assert len(list_urls("gs://north/2026/*.wav")) == 2
    same_results(tmp_path, card, "gs://north/2026")
    with pytest.raises(OSError, match="No such file"):
        RemoteFile("gs://north/2026/missing.wav")


XML_ANSWERS = [
    b"",
    b"<",
    b"<a/>",
    b"\xff\xfe<a/>",
    b"<ListBucketResult><Contents/></ListBucketResult>",
    b"<ListBucketResult><Contents><Key/><LastModified>x</LastModified></Contents></ListBucketResult>",
    b"<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
    b"<a>" * 100_000,
    b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
]
JSON_ANSWERS = [
    b"",
    b"[]",
    b"null",
    b'{"items": 1}',
    b'{"items": [1]}',
    b'{"items": [{}]}',
    b'{"items": [{"name": 1}]}',
    b'{"nextPageToken": {}}',
    b'{"size": "x", "name": "a.wav"}',
    b'{"size": -1, "name": "a.wav", "updated": "2026-01-01T00:00:00Z"}',
    b'{"size": 1, "name": "a.wav", "updated": "x"}',
    b"[" * 100_000,
    b"\xff",
]


@pytest.mark.parametrize(
    ("scheme", "answer"),
    [("s3", one) for one in XML_ANSWERS] + [("gs", one) for one in JSON_ANSWERS],
)
def test_what_a_store_invents_is_one_error(scheme, answer, monkeypatch, tmp_path):
    """Answers that no store of the protocol gives are an empty list or an error of one line."""
    monkeypatch.setattr(stores, "BACKOFF_FIRST_S", 0.01)
    with serving({}) as server:
        server.mode = lambda handler: handler.answer(answer, status=200)
        for name, value in {
            "AWS_ENDPOINT_URL": server.url, "STORAGE_EMULATOR_HOST": server.url,
            "AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_CONFIG_FILE": str(tmp_path / "none"), "FSSPEC_GS_TOKEN": "anon",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        with suppress(InputError, UnavailableError):
            assert list_urls(f"{scheme}://bucket/") == []
        with pytest.raises((OSError, UnavailableError), match=r"^[^\n]+$"):
            RemoteFile(f"{scheme}://bucket/a.wav")
