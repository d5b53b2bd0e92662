"""Inputs of ``spectrod batch`` from HTTP servers: the numbers of local files, and no surprises."""

import logging
import os
import re
import sys
import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

from spectrod.apps.batch.fingerprint import fingerprint
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.unit import compute_unit
from spectrod.apps.batch.unit_samples import UnitSamples
from spectrod.lib.errors import ConfigError, InputError, SettingsError, UnavailableError
from spectrod.source.store import http as http_store
from spectrod.source.store import remote_file, store_listing, stores
from spectrod.source.store.objects import KeyPage
from spectrod.source.store.remote_file import RemoteFile
from spectrod.source.store.store_listing import list_urls
from spectrod.source.store.urls import check_url, file_name

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from range_server import MTIME_S, index, serving
from small_archives import FS, job_of, sound, write


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Make stores that do not answer known soon, and forget those of other tests."""
    monkeypatch.setattr(stores, "REQUEST_S", 5.0)
    monkeypatch.setattr(stores, "BACKOFF_FIRST_S", 0.01)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server():
    with serving({}) as of:
        yield of


def serve_folder(server, folder):
    """Serve the files of a folder under /card/, with a page of them, and with the same times."""
    names = sorted(path.name for path in folder.iterdir())
    for name in names:
        os.utime(folder / name, (MTIME_S, MTIME_S))
        server.files[f"/card/{name}"] = (folder / name).read_bytes()
    server.files["/card/"] = index("../", "?C=N;O=D", *names)


def shas(record):
    assert record.state == "done", record.reason
    return {one.path: one.sha256 for one in record.outputs}


@pytest.mark.parametrize("suffixes", [(".wav", ".wav"), (".flac", ".flac"), (".ogg", ".flac")])
def test_results_are_those_of_local_files(tmp_path, server, suffixes, monkeypatch):
    """All products have the same bytes, whether files are on a disk or on a server."""
    monkeypatch.setattr(remote_file, "BLOCK_BYTES", 1 << 16)
    card, x = tmp_path / "card", sound(500_001, channels=2)
    for k, suffix in enumerate(suffixes):
        path = write(card, x[k * 250_000 : (k + 1) * 250_000], 250 * k + 300)
        if suffix != ".wav":
            subtype = "VORBIS" if suffix == ".ogg" else "PCM_16"
            soundfile.write(path.with_suffix(suffix), soundfile.read(path)[0], FS, subtype)
            path.unlink()
    serve_folder(server, card)
    local, remote = (
        job_of(tmp_path / name, folder, unit="hour")
        for name, folder in (("l", card), ("r", f"{server.url}/card/"))
    )
    plans = plan_job(local), plan_job(remote)
    assert [one.kind for one in plans[1].findings] == [one.kind for one in plans[0].findings]
    assert len(plans[1].units) == 2
    for units in zip(*(plan.units for plan in plans), strict=True):
        assert units[0].digest(local) == units[1].digest(remote)
        records = [
            compute_unit(job, unit) for job, unit in zip((local, remote), units, strict=True)
        ]
        assert shas(records[0]) == shas(records[1])


def test_planning_asks_for_the_first_and_the_last_part_alone(tmp_path, server):
    """A header is read with two requests of 16 KiB; computing checks, and reads each part once."""
    card = tmp_path / "card"
    write(card, sound(200 * FS))
    serve_folder(server, card)
    job = job_of(tmp_path, f"{server.url}/card/", products=("flags",))
    (unit,) = plan_job(job).units
    size = len(next(iter(server.files.values())))
    ranges = [asked for path, asked in server.requests if path != "/card/"]
    assert ranges == ["bytes=0-16383", f"bytes={size - 16384}-{size - 1}"]
    server.requests.clear()
    shas(compute_unit(job, unit))
    n_bytes = 0
    for _, asked in server.requests:
        first, last = (int(digits) for digits in asked.removeprefix("bytes=").split("-"))
        n_bytes += last + 1 - first
    assert len(server.requests) == 7
    assert n_bytes == size + 3 * 16384  # the check, and the header


def test_any_place_of_a_file_is_read(server, monkeypatch):
    """Reads in and out of order, over the ends of parts and of the file, give its bytes."""
    monkeypatch.setattr(remote_file, "BLOCK_BYTES", 40_000)
    content = np.random.default_rng(5).bytes(300_001)
    server.files["/a"] = content
    rng = np.random.default_rng(6)
    with RemoteFile(f"{server.url}/a") as file:
        assert (file.size, file.mtime_ns, file.etag) == (300_001, MTIME_S * 10**9, "one")
        assert file.read() == content
        for _ in range(50):
            place, n = int(rng.integers(0, 300_500)), int(rng.integers(0, 70_000))
            assert file.seek(place) == place
            assert file.read(n) == content[place : place + n]
        assert file.seek(-5, 2) == 299_996
        with pytest.raises(OSError, match="negative position"):
            file.seek(-1)


def test_memory_is_bounded(server, monkeypatch):
    """However long a file is, a few parts of it are asked for ahead."""
    monkeypatch.setattr(remote_file, "BLOCK_BYTES", 1 << 16)
    server.files["/a"] = bytes(1 << 22)
    with RemoteFile(f"{server.url}/a") as file:
        file.read(200_000)
        held = len(file._content) + sum(one.end - one.first for one in file._ahead)
    assert held <= (1 + remote_file.AHEAD_MAX) << 16


# ---- servers that misbehave


def no_ranges(handler):
    handler.answer(handler.server.of.files[handler.path], status=200)


def says_longer(handler):
    handler.answer(handler.server.of.files[handler.path], lie=1 << 40)


def says_shorter(handler):
    handler.answer(handler.server.of.files[handler.path], lie=-100)


def other_part(handler):
    handler.send_response(206)
    handler.send_header("Content-Range", "bytes 5-9/10")
    handler.send_header("Content-Length", "5")
    handler.end_headers()
    handler.wfile.write(b"hello")


def two_lengths(handler):
    handler.send_response(206)
    handler.send_header("Content-Range", "bytes 0-9/10")
    handler.send_header("Content-Length", str(1 << 40))
    handler.end_headers()
    handler.close_connection = True


def status(number):
    return lambda handler: handler.empty(number)


def redirect(location):
    return lambda handler: handler.empty(302, Location=location)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (no_ranges, r"its server sends no parts of files \(ranges\): copy it to a disk first"),
        (other_part, "its server answers with another part of it than was asked for"),
        (two_lengths, "its server states two lengths of one answer"),
        (status(401), "Permission denied by its store"),
        (status(403), "Permission denied by its store"),
        (status(404), "No such file or directory"),
        (status(416), "is empty, or shorter than its server said"),
        (status(418), "its server answers with status 418"),
        (redirect("file:///etc/passwd"), r"its server redirects to file://: must stay on its host"),
        (redirect("http://169.254.1.1/a"), r"redirects to http://169\.254\.1\.1: must stay on"),
        (redirect("http://127.0.0.1:1/a"), r"redirects to http://127\.0\.0\.1: must stay on"),
        (redirect("http://u:p@127.0.0.1/a"), "must stay on its host"),
        (redirect("http://[/a"), "its server redirects to no address"),
        (redirect("/bad_20260502_000000.wav"), "its server redirects more than 5 times"),
    ],
)
def test_servers_that_cannot_be_read_from(tmp_path, server, mode, reason):
    """A file is left out with its reason, at once, and the rest is planned."""
    path = write(tmp_path, sound(70 * FS))
    server.files |= {f"/{path.name}": path.read_bytes(), "/bad_20260502_000000.wav": b"x" * 99}
    server.files["/"] = index(path.name, "bad_20260502_000000.wav")
    server.modes["/bad_20260502_000000.wav"] = mode
    plan = plan_job(job_of(tmp_path, f"{server.url}/"))
    (finding,) = plan.findings
    assert finding.kind == "unreadable"
    assert re.fullmatch(rf"{server.url}/bad_20260502_000000\.wav: .*{reason}.*", finding.text)
    assert len(plan.units) == 1
    assert len(server.requests) <= 10


@pytest.mark.parametrize("mode", [says_longer, says_shorter])
def test_a_server_that_lies_about_length(tmp_path, server, mode):
    """A file is not taken as longer than what is sent, nor are other samples read than it has."""
    path = write(tmp_path, sound(70 * FS))
    server.files = {"/": index(path.name), f"/{path.name}": path.read_bytes()}
    server.modes[f"/{path.name}"] = mode
    job = job_of(tmp_path, f"{server.url}/")
    if mode is says_longer:
        (finding,) = plan_job(job).findings
        assert finding.kind == "unreadable"
        assert finding.text.endswith(f"{path.name}: is empty, or shorter than its server said")
        return
    plan = plan_job(job)
    assert [one.kind for one in plan.findings] == ["truncated"]
    assert plan.units[0].n_samples == 70 * FS - 50


def test_a_server_that_stalls(server, monkeypatch):
    """A request ends after its limit, is repeated a few times, and then named."""
    monkeypatch.setattr(stores, "REQUEST_S", 0.5)
    stop = threading.Event()
    server.files["/a.wav"] = b"x"
    server.mode = lambda _: stop.wait(30)
    try:
        with pytest.raises(UnavailableError) as error:
            RemoteFile(f"{server.url}/a.wav")
    finally:
        stop.set()
    assert str(error.value) == (
        f"{server.url}/a.wav: its store does not answer within 0.5 s; tried 4 times"
    )
    assert len(server.requests) == 4


def test_a_server_that_fails_for_a_while(server):
    """Requests that fail are repeated, so a short failure is not seen."""
    server.files["/a"] = b"hello"
    left = [503, 429, 500]
    server.mode = lambda handler: handler.empty(left.pop()) if left else False
    with RemoteFile(f"{server.url}/a") as file:
        assert file.read() == b"hello"
    assert len(server.requests) == 4


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
@pytest.mark.parametrize("failure", ["gone", "removed", "changed"])
def test_a_store_that_vanishes_half_way(tmp_path, server, suffix, failure, monkeypatch):
    """The unit is set aside with its reason, and others are whole; later it is computed."""
    monkeypatch.setattr(remote_file, "BLOCK_BYTES", 1 << 14)
    card = tmp_path / "card"
    write(card, sound(200 * FS), suffix=suffix)
    name = write(card, sound(200 * FS, 2), 3600, suffix=suffix).name
    serve_folder(server, card)
    job = job_of(tmp_path, f"{server.url}/card/", unit="hour", products=("flags",))
    units = plan_job(job).units
    plain = server.etag

    def fail(handler):
        if handler.headers["Range"].startswith(("bytes=0-", f"bytes={size - 16384}-")):
            return False
        if failure == "changed":
            server.etag = '"two"'
            return False
        return handler.empty({"gone": 503, "removed": 404}[failure])

    size = len(server.files[f"/card/{name}"])
    server.modes[f"/card/{name}"] = fail
    done, failed = [compute_unit(job, unit) for unit in units]
    assert done.state == "done"
    assert (failed.state, failed.outputs) == ("failed", ())
    reason = {
        "gone": "its server answers with status 503; tried 4 times",
        "removed": "No such file or directory",
        "changed": "has changed while it was read",
    }[failure]
    assert failed.reason == f"{server.url}/card/{name}: {reason}"
    assert failed.exit_code == (2 if suffix == ".wav" and failure != "gone" else 69)
    server.modes.clear()
    server.etag = plain
    assert compute_unit(job, units[1]).state == "done"


def test_a_plan_ends_with_a_store_that_is_gone(tmp_path, server):
    """Files are not left out because their store does not answer: the plan is made again."""
    server.files["/"] = index(*(f"{k}_20260501_000000.wav" for k in range(20)))
    server.mode = lambda handler: False if handler.path == "/" else handler.empty(503)
    with pytest.raises(UnavailableError, match=r"status 503; tried 4 times"):
        plan_job(job_of(tmp_path, f"{server.url}/"))


def test_a_change_of_the_file_is_seen_by_time_etag_and_ends(server):
    """The identity is that of a local file; without a time, the ETag counts."""
    server.files["/a"] = bytes(40_000)
    first = fingerprint(f"{server.url}/a")
    assert first.mtime_ns == MTIME_S * 10**9
    server.etag = '"other"'
    assert fingerprint(f"{server.url}/a") == first
    server.has_time = False
    undated = fingerprint(f"{server.url}/a")
    assert (undated.size, undated.mtime_ns) == (40_000, 0)
    server.etag = '"third"'
    assert fingerprint(f"{server.url}/a") != undated


# ---- folders


def test_pages_of_links_are_searched_below_the_folder(server, monkeypatch):
    """Links to other hosts, upwards, hidden ones and queries are left out; loops end."""
    server.files |= {
        "/a/": index("x.wav", "b/", "/a/", "../up.wav", "http://other/y.wav", ".z.wav", "q.wav?x",
                     "note.txt", "b/deep.wav", "x.wav", "n%20a.FLAC", "b/#top"),
        "/a/b/": index("deep.wav", "../", "/a/b/", "//other/e.wav"),
    }  # fmt: skip
    url = server.url
    assert list_urls(f"{url}/a/") == [
        f"{url}/a/b/deep.wav", f"{url}/a/n%20a.FLAC", f"{url}/a/x.wav"
    ]  # fmt: skip
    assert list_urls(f"{url}/a/", recursive=False) == [f"{url}/a/n%20a.FLAC", f"{url}/a/x.wav"]
    assert file_name(f"{url}/a/n%20a.FLAC") == "n a.FLAC"
    with pytest.raises(InputError, match="must be a sound file, or a folder with / at its end"):
        list_urls(f"{url}/a")
    monkeypatch.setattr(store_listing, "FILES_MAX", 2)
    with pytest.raises(InputError, match="/a/: has more than 2 sound files"):
        list_urls(f"{url}/a/")
    monkeypatch.setattr(http_store, "PAGE_BYTES_MAX", 99)
    with pytest.raises(InputError, match="/a/: its page has more than 99 bytes"):
        list_urls(f"{url}/a/")


class EndlessBucket:
    """A store whose list of a bucket never ends, by some numbers of keys and tokens."""

    def __init__(self, n_keys, token):
        self.n_keys, self.token, self.n_pages = n_keys, token, 0

    async def page(self, *_, **__):
        self.n_pages += 1
        keys = [f"{self.n_pages}-{k}.wav" for k in range(self.n_keys)]
        return KeyPage(dict.fromkeys(keys, 1), self.token(self.n_pages))


@pytest.mark.parametrize(
    ("n_keys", "token", "pages_max", "text"),
    [
        (0, lambda _: "same", 2, "its store sends a list without end"),
        (0, str, 101, "its store sends a list without end"),
        (3, lambda _: "same", 2, "its store sends a list without end"),
        (1, str, 201, "has more than 20000 files of any kind"),
    ],
)
def test_the_list_of_a_bucket_ends(n_keys, token, pages_max, text, monkeypatch):
    """Pages that repeat their token, empty ones and small ones are bounded by requests, too."""
    monkeypatch.setattr(store_listing, "KEYS_MAX", 20_000)
    bucket = EndlessBucket(n_keys, token)
    monkeypatch.setattr(stores, "_store", lambda _: bucket)
    with pytest.raises(InputError, match=rf"^s3://b: {text}$"):
        list_urls("s3://b")
    assert 2 <= bucket.n_pages <= pages_max


def test_folders_of_pages_are_bounded(server, monkeypatch):
    """A server that makes up folders is asked for a bounded number of them."""
    monkeypatch.setattr(store_listing, "FOLDERS_MAX", 5)

    def page(handler):
        handler.answer(index("a/", "b/", "c/"), status=200)

    server.mode = page
    with pytest.raises(InputError, match="/x/: has more than 5 folders"):
        list_urls(f"{server.url}/x/")
    assert len(server.requests) == 2


@pytest.mark.parametrize("page", [b"<![x[y", b"<!" * 9, b"<a href=x.wav \xff>", b"<a href=" * 9])
def test_a_page_that_is_no_html_has_the_links_that_it_has(server, page):
    """Whatever bytes a page has, its listing is a list."""
    server.files["/a/"] = page
    assert list_urls(f"{server.url}/a/") in ([], [f"{server.url}/a/x.wav"])


@pytest.mark.parametrize(
    "location", ["https://ho\nst/x.wav", "/a b.wav", "\\\\evil/x", "https://[", "\0"]
)
def test_a_redirection_to_no_address_is_refused(location):
    """Characters on which parsers of addresses disagree are in no address that is followed."""
    with pytest.raises(OSError, match="its server redirects to no address"):
        http_store._redirected("http://host/card/", location)


# ---- addresses


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://u:hunter2@host/a", r"https://\.\.\.@host: must hold no user and password"),
        ("s3://key:hunter2@bucket/a", r"s3://\.\.\.@bucket: must hold no user and password"),
        ("http:///a", "must name a server or a bucket"),
        ("s3://", "must name a server or a bucket"),
        ("http://h/a?X-Signature=hunter2", r"http://h/a\?\.\.\.: must have no query"),
        ("http://h/a#hunter2", "must have no query"),
        ("http://h/*.wav", "must be a file, or a folder with / at its end"),
        ("http://h/a b", "must be a file, or a folder"),
        ("http://h:99999/a", "must have a port from 0 to 65535"),
        ("s3://b/" + "a" * 5000, "must have at most 4096 characters"),
    ],
)
def test_addresses_with_secrets_or_without_sense_are_refused(tmp_path, url, rule):
    """In a job's file and in an edited plan; no secret is in the error."""
    with pytest.raises(ConfigError, match=rule) as error:
        check_url(url)
    assert "hunter2" not in str(error.value)
    path = tmp_path / "job.toml"
    path.write_text(f'[job]\nname = "a"\noutput = "o"\n[deployments.a]\ninputs = ["{url}"]\n')
    with pytest.raises(SettingsError, match=rule) as settings_error:
        read_job(path)
    assert "hunter2" not in str(settings_error.value)
    with pytest.raises(ConfigError, match=rule):
        RemoteFile(url)


def test_an_edited_plan_cannot_hold_a_password(tmp_path, server):
    """A unit whose piece has such an address fails, and its record does not repeat it."""
    path = write(tmp_path / "card", sound(70 * FS))
    serve_folder(server, tmp_path / "card")
    job = job_of(tmp_path, f"{server.url}/card/", products=("flags",))
    (unit,) = plan_job(job).units
    piece = msgspec.structs.replace(unit.pieces[0], path=f"http://u:hunter2@127.0.0.1/{path.name}")
    with pytest.raises(ConfigError, match="must hold no user and password"):
        UnitSamples(msgspec.structs.replace(unit, pieces=(piece,))).check()
    record = compute_unit(job, msgspec.structs.replace(unit, pieces=(piece,)))
    assert record.state == "failed"
    assert b"hunter2" not in msgspec.json.encode(record)


def test_libraries_do_not_log_requests(server):
    """Their debug logs hold signatures, so they are silent whatever the level of ours."""
    server.files["/a"] = b"x"
    RemoteFile(f"{server.url}/a").close()
    for name in ("botocore", "s3fs", "gcsfs", "google", "aiohttp", "fsspec"):
        assert logging.getLogger(name).getEffectiveLevel() >= logging.WARNING


def test_a_missing_library_is_named(monkeypatch):
    """The error says what to install."""
    stores._store.cache_clear()
    monkeypatch.setitem(sys.modules, "spectrod.source.store.objects", None)
    with pytest.raises(
        UnavailableError, match=r"s3:// needs the extra cloud: pip install 'spectrod"
    ):
        stores.store_of("s3://bucket/key")
