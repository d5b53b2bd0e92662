"""Inputs and results of ``spectrod batch`` in stores of S3's and of Google's protocol."""

import json
import multiprocessing
import multiprocessing.util
import os
import random
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("s3fs")
pytest.importorskip("gcsfs")

from spectrod.apps.batch.output import output_of
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.results import parse_record, record_name
from spectrod.apps.batch.run import statuses_of
from spectrod.apps.batch.unit import compute_unit
from spectrod.cli import main
from spectrod.lib.errors import InputError, StorageError, UnavailableError
from spectrod.source.store import objects, store_listing, stores, uploads
from spectrod.source.store.remote_file import RemoteFile
from spectrod.source.store.store_listing import list_urls

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

import killed_units
from range_server import serving
from s3_server import SECRET, stored
from small_archives import FS, job_of, sound, write

pytest.importorskip("moto.server")
google_emulator = pytest.importorskip("gcp_storage_emulator.server")

pytestmark = [pytest.mark.extended, pytest.mark.filterwarnings("default")]


@pytest.fixture(autouse=True)
def _new_stores():
    """Let each test's variables count."""
    yield
    stores._store.cache_clear()


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
    with pytest.raises(InputError, match=r"no-such-bucket/: there is no such bucket"):
        list_urls("s3://no-such-bucket/")


def test_objects_that_cannot_be_read(bucket, monkeypatch):
    """Missing and empty objects, and an endpoint that is gone, have their reasons."""
    client, name = bucket
    client.put_object(Bucket=name, Key="empty.wav", Body=b"")
    with pytest.raises(OSError, match=r"its store refuses it \(InvalidRange: an empty file"):
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
    same_files_in_google(tmp_path, card, fs)


def same_files_in_google(tmp_path, card, fs):
    """Check that results in a bucket of Google's protocol are those of a folder."""
    fs.mkdir("results")
    local = job_of(tmp_path / "local", card)
    remote = with_output(local, "gs://results/a")
    for unit in plan_job(local).units:
        assert compute_unit(remote, unit).state == compute_unit(local, unit).state == "done"
    assert {one.state for one in statuses_of(remote, plan_job(local).units)} == {"done"}
    for key, content in files(local).items():
        assert fs.cat_file(f"results/a/{key}") == content
    large = tmp_path / "large"
    large.write_bytes(random.Random(7).randbytes((1 << 24) + 5))  # noqa: S311
    uploads.upload("gs://results/large", large)
    assert fs.cat_file("results/large") == large.read_bytes()
    uploads.remove("gs://results/large")
    uploads.remove("gs://results/large")
    with pytest.raises(StorageError, match=r"^gs://none: there is no such bucket$"):
        statuses_of(with_output(local, "gs://none"), ())


# ---- results


def files(job):
    """Return the content of the files of a job in a folder, but for its state."""
    folder = Path(job.output)
    found = [one for name in ("north", "levels") for one in (folder / name).rglob("*.*")]
    return {str(one.relative_to(folder)): one.read_bytes() for one in found if one.is_file()}


def with_output(job, output):
    return msgspec.structs.replace(job, output=output)


@pytest.fixture
def units(tmp_path, monkeypatch):
    """Return a job with results in a folder, its units, and its files; computed."""
    multiprocessing.util.get_temp_dir()  # of forkserver, which stays after this test
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for k in range(3):
        write(tmp_path / "card", sound(70 * FS, k), 3600 * k)
    job = job_of(
        tmp_path,
        tmp_path / "card",
        unit="hour",
        products=("millidecade", "levels", "flags"),
        levels_format="parquet",
        layout="partitioned",
    )
    found = plan_job(job).units
    for unit in found:
        assert compute_unit(job, unit).state == "done"
    return job, found, files(job)


def test_results_are_whole_after_any_kill(tmp_path, units, bucket):
    """Ten kills at seeded requests: an object is whole, a record has its objects, none is lost."""
    job, found, expected = units
    client, name = bucket
    job = with_output(job, f"s3://{name}/a/b")
    environment = {one: os.environ[one] for one in os.environ if one.startswith(("AWS", "TMPDIR"))}
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["spectrod.apps.batch.unit", "spectrod.source.store.objects", "s3fs"]
    )
    rng = random.Random(34)  # noqa: S311
    records = {}
    for _ in range(10):
        arguments = environment, job, found, rng.randint(1, 9), rng.random() < 0.5
        process = context.Process(target=killed_units.compute, args=arguments)
        process.start()
        process.join()
        assert process.exitcode in {-signal.SIGKILL, 0}
        objects_now = stored(client, name, "a/b/")
        for unit in found:
            if content := objects_now.pop(record_name(unit), b""):
                assert records.setdefault(unit.key, content) == content  # is not computed again
                record = parse_record(unit.key, content)
                assert {one.path for one in record.outputs} <= objects_now.keys()
        assert objects_now.items() <= expected.items()
    for unit in found:
        assert compute_unit(job, unit).state == "done"
    objects_now = stored(client, name, "a/b/")
    kept = {record_name(unit): records[unit.key] for unit in found if unit.key in records}
    assert kept
    assert kept.items() <= objects_now.items()
    assert {key: one for key, one in objects_now.items() if key in expected} == expected
    assert len(objects_now) == len(expected) + 3


def test_all_commands_with_results_in_a_bucket(tmp_path, units, bucket, capfd):
    """Plan, run, status, verify, report and merge; then a folder collects the results."""
    job, _, expected = units
    client, name = bucket
    texts = {}
    for kind, output in (("bucket", f"s3://{name}/season/"), ("folder", "collected")):
        texts[kind] = str(tmp_path / f"{kind}.toml")
        Path(texts[kind]).write_text(
            f'[job]\nname = "test"\noutput = "{output}"\nunit = "hour"\n'
            'products = ["millidecade", "levels", "flags"]\nengine = "numpy"\n'
            'layout = "partitioned"\n[levels]\nformat = "parquet"\n'
            f'[deployments.north]\ninputs = ["{tmp_path}/card"]\n'
        )
    debug = ["--log-level", "debug"]
    assert main(["batch", "status", texts["bucket"]]) == 2
    assert f"s3://{name}/season/plan.jsonl: there is no plan" in capfd.readouterr().err
    for command in (["run", "--jobs", "1"], ["status"], ["verify", "--recompute", "1"], ["report"]):
        assert main(["batch", *command, texts["bucket"], *debug]) == 0, capfd.readouterr()
    written = capfd.readouterr()
    assert f"s3://{name}/season/report.html" in written.out
    assert "units: 3 done" in written.out
    page = client.head_object(Bucket=name, Key="season/report.html")
    assert page["ContentType"] == "text/html"
    found = stored(client, name, "season/")
    assert {key: one for key, one in found.items() if key in expected} == expected
    others = {"plan.jsonl", "report.html", "report.json", "summary.json"}
    assert {key for key in found if "/" not in key} == others
    assert main(["batch", "run", texts["bucket"], "--jobs", "1"]) == 0
    assert "computed now: 0" in capfd.readouterr().out
    for word in (SECRET, "Signature", "somebody"):
        assert word not in written.out + written.err
        assert not [key for key, one in found.items() if word.encode() in one]

    assert main(["batch", "plan", texts["folder"]]) == 0
    assert main(["batch", "merge", texts["folder"], f"s3://{name}/season"]) == 0
    assert files(with_output(job, str(tmp_path / "collected"))) == expected
    capfd.readouterr()

    client.put_object(Bucket=name, Key="season/north/north_20260501T23.nc", Body=b"other")
    assert main(["batch", "status", texts["bucket"]]) == 75
    assert main(["batch", "verify", texts["bucket"]]) == 75
    reason = f"s3://{name}/season/north/north_20260501T23.nc: is not what was computed"
    assert reason in capfd.readouterr().out
    client.put_object(Bucket=name, Key="season/plan.jsonl", Body=b"other")
    assert main(["batch", "status", texts["bucket"]]) == 74
    assert f"spectrod: s3://{name}/season/plan.jsonl:1: is no line" in capfd.readouterr().err
    assert not list(tmp_path.glob("spectrod-batch-*/north*"))
    assert not [
        one for one in tmp_path.glob("spectrod-batch-*") if "plan" in str(list(one.iterdir()))
    ]


def test_a_bucket_that_vanishes(units, bucket, monkeypatch, capsys, tmp_path):
    """A unit fails with the bucket's name and the code of a full disk; nothing else is written."""
    job, found, _ = units
    client, name = bucket
    job = with_output(job, f"s3://{name}")
    upload = uploads.upload

    def vanishing(url, path):
        upload(url, path)
        client.delete_object(Bucket=name, Key=url.removeprefix(f"s3://{name}/"))
        client.delete_bucket(Bucket=name)

    monkeypatch.setattr("spectrod.apps.batch.bucket_output.upload", vanishing)
    record = compute_unit(job, found[0])
    assert (record.state, record.exit_code) == ("failed", 74)
    folder = "levels/deployment=north/date=2026-05-01"
    assert record.reason.startswith(f"s3://{name}/{folder}/north_20260501T23")
    assert record.reason.endswith(": there is no such bucket")
    with pytest.raises(StorageError, match=rf"^s3://{name}: there is no such bucket$"):
        statuses_of(job, found)
    path = tmp_path / "job.toml"
    path.write_text(
        f'[job]\nname = "a"\noutput = "s3://{name}"\n[deployments.north]\ninputs = ["card"]\n'
    )
    capsys.readouterr()
    for command in ("plan", "run", "status"):
        assert main(["batch", command, str(path)]) == 74
        assert f"spectrod: s3://{name}/plan.jsonl: there is no such bucket\n" in (
            capsys.readouterr().err
        )


def test_large_files_are_sent_in_parts(bucket, tmp_path, monkeypatch):
    """A file of three parts has its bytes; of one that cannot be completed nothing is left."""
    client, name = bucket
    content = random.Random(7).randbytes((1 << 24) + 5)  # noqa: S311
    path = tmp_path / "large"
    path.write_bytes(content)
    url = f"s3://{name}/large"
    uploads.upload(url, path)
    assert stored(client, name) == {"large": content}
    small = tmp_path / "small"
    small.write_bytes(b"small")
    monkeypatch.setattr(objects.S3Store, "complete", None)
    with pytest.raises(TypeError):
        uploads.upload(f"s3://{name}/other", path)
    assert "Uploads" not in client.list_multipart_uploads(Bucket=name)
    for key in ("north/north_1.nc", "north/north_12.nc"):
        client.create_multipart_upload(Bucket=name, Key=key)
    output_of(f"s3://{name}").prepare(["north/north_1.nc", "north/north_1_flags.csv"])
    (left,) = client.list_multipart_uploads(Bucket=name)["Uploads"]
    assert left["Key"] == "north/north_12.nc"
    assert stored(client, name) == {"large": content}


ANSWERS = [
    (403, "AccessDenied", "Permission denied by its store"),
    (403, "QuotaExceeded", r"its store takes no more bytes \(QuotaExceeded\)"),
    (507, "XMinioStorageFull", r"its store takes no more bytes \(XMinioStorageFull\)"),
    (404, "NoSuchBucket", "there is no such bucket"),
    (400, "EntityTooLarge", r"its store refuses it \(EntityTooLarge\)"),
    (503, "SlowDown", r"its store does not answer \(SlowDown\); tried 4 times"),
    (500, SECRET, r"its store does not answer \(OSError\); tried 4 times"),
    (0, "", r"its store does not answer within 0.2 s; tried 4 times"),
]


@pytest.mark.parametrize(("status", "code", "reason"), ANSWERS, ids=[one[1] for one in ANSWERS])
def test_what_a_bucket_refuses_is_one_error(status, code, reason, monkeypatch, tmp_path):
    """Refusals and silence end with the address and the rule; requests are repeated four times."""
    monkeypatch.setattr(stores, "BACKOFF_FIRST_S", 0.001)
    monkeypatch.setattr(uploads, "PART_S", 0.2 if not status else 60.0)
    path, is_over, methods = tmp_path / "a", threading.Event(), []
    path.write_bytes(b"content")

    def answer(handler):
        methods.append(handler.command)
        handler.close_connection = True
        if not status:
            is_over.wait()
            return
        handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        handler.send_response(status)
        handler.end_headers()
        handler.wfile.write(f"<Error><Code>{code}</Code></Error>".encode())

    with serving({}) as server:
        server.mode = answer
        for one, value in {
            "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_CONFIG_FILE": str(tmp_path / "none"),
        }.items():  # fmt: skip
            monkeypatch.setenv(one, value)
        with pytest.raises(StorageError, match=rf"^s3://bucket/b/a: {reason}$"):
            output_of("s3://bucket/b").publish({"a": path})
        is_over.set()
    if status:  # a server that is slow may not have seen all
        assert methods == ["PUT"] * (4 if "tried" in reason else 1)


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
