"""Recorded sound of events: what is found, ranges, and what a hostile request or folder gets."""

import asyncio
import json
import os
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from starlette.applications import Starlette

from spectrod.apps.web.gate import Visitor
from spectrod.apps.web.sound import recorded_sound
from spectrod.apps.web.sound.recorded_sound import ClipPlace, RecordedSound
from spectrod.apps.web.sound.sound_answer import PIECE_BYTES, SentRange, parse_range
from spectrod.apps.web.sound.sound_routes import sound_routes
from spectrod.dsp.blocks import Block
from spectrod.formats.sound.sound_options import SoundOptions
from spectrod.formats.sound.sound_writer import SoundWriter
from spectrod.lib.errors import ConfigError, NotFoundError

S = 10**9
BEGIN_NS = 1_777_680_000 * S
FS = 8000
SECONDS = 3


def recorded(folder, begin_s=0, *, recording="night", source="pond", suffix=".wav", name=None):
    """Write three seconds of sound as the recorder does; return the path."""
    place = folder / recording / source
    place.mkdir(parents=True, exist_ok=True)
    path = place / (name or f"{begin_s}{suffix}")
    writer = SoundWriter(path, FS, 1, "s16", SoundOptions(source=source, recording=recording))
    begin_ns = BEGIN_NS + round(begin_s * S)
    samples = np.random.default_rng(int(begin_s)).uniform(-0.5, 0.5, (1, SECONDS * FS))
    writer.write(Block(samples.astype(np.float32), 0, begin_ns, begin_ns))
    writer.finish()
    # As if it had been copied later.
    os.utime(path, ns=(0, BEGIN_NS + 1000 * S))
    return path


def names(folder, begin_s, end_s, source="pond"):
    begin_ns, end_ns = (BEGIN_NS + round(one * S) for one in (begin_s, end_s))
    return [clip.place.name for clip in RecordedSound([folder]).clips(source, begin_ns, end_ns)]


async def get(folder, path, query, *, has_token=True, **headers):
    """Send a GET to the routes; return status, headers and body."""
    app = Starlette(routes=sound_routes([folder]))
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "root_path": "",
        "query_string": urlencode(query).encode(),
        "headers": [
            (key.replace("_", "-").encode(), text.encode()) for key, text in headers.items()
        ],
        "state": {"visitor": Visitor("127.0.0.1", has_token, is_authorized=True, scheme="http")},
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, body


FILE = {"folder": 0, "recording": "night", "source": "pond", "name": "0.wav"}


def got(folder, query=None, path="/api/sound/file", **more):
    return asyncio.run(get(folder, path, FILE | (query or {}), **more))


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_files_with_sound_of_a_time_are_found(tmp_path, suffix):
    """By the time that they state: when they were copied does not count."""
    for begin_s in (0, 100, 200):
        recorded(tmp_path, begin_s, suffix=suffix)
    recorded(tmp_path, 100, source="lake", suffix=suffix)
    assert names(tmp_path, 101, 102) == [f"100{suffix}"]
    assert names(tmp_path, 2, 201) == [f"{n}{suffix}" for n in (0, 100, 200)]
    assert names(tmp_path, 50, 60) == []
    assert names(tmp_path, SECONDS + 0.9, 60) == [f"0{suffix}"], "begins may be whole seconds"
    assert names(tmp_path, SECONDS + 1.1, 99.9) == []
    assert names(tmp_path, 101, 102, "gone") == []


def test_a_file_that_states_parts_of_seconds_has_no_more_sound(tmp_path):
    recorded(tmp_path, 0.5, name="half.wav")
    assert names(tmp_path, 0, 0.49) == names(tmp_path, SECONDS + 0.51, 9) == []
    assert names(tmp_path, 0, 0.51) == names(tmp_path, SECONDS + 0.49, 9) == ["half.wav"]


def test_of_two_recordings_both_are_found(tmp_path):
    """What is no sound, hidden or unfinished is not."""
    recorded(tmp_path, 0, recording="all")
    path = recorded(tmp_path, 1)
    for name in (".1.wav", "1.wav.part", "1.txt"):
        path.with_name(name).write_bytes(path.read_bytes())
    assert names(tmp_path, 1, 2) == ["0.wav", "1.wav"]


def test_the_list_has_what_a_file_is_asked_for_with(tmp_path):
    path = recorded(tmp_path)
    span = {"t0": BEGIN_NS / 1e6, "t1": BEGIN_NS / 1e6 + 500}
    status, headers, body = got(tmp_path, {"source": "pond"} | span, "/api/sound")
    (clip,) = json.loads(body)["clips"]
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert clip["end_ms"] - clip["begin_ms"] == SECONDS * 1000 + 1000
    assert clip["bytes"] == path.stat().st_size
    asked = {key: clip[key] for key in ("folder", "recording", "source", "name")}
    status, headers, body = got(tmp_path, asked)
    assert (status, body) == (200, path.read_bytes())
    assert headers["content-type"] == "audio/wav"
    assert headers["content-disposition"] == 'inline; filename="0.wav"'


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, (0, 1000)),
        ("bytes=0-", (0, 1000)),
        ("bytes=10-19", (10, 20)),
        ("bytes=999-", (999, 1000)),
        ("bytes=990-5000", (990, 1000)),
        ("bytes=-10", (990, 1000)),
        ("bytes=-5000", (0, 1000)),
        ("bytes=1000-", None),
        ("bytes=-0", None),
        ("bytes=20-10", (0, 1000)),
        ("bytes=0-1,5-6", (0, 1000)),
        ("bytes=-", (0, 1000)),
        ("bytes=+1-2", (0, 1000)),
        (f"bytes={'9' * 40}-", (0, 1000)),
        ("rows=1-2", (0, 1000)),
    ],
)
def test_a_range_is_read_as_the_standard_says(header, expected):
    """None is 416; what cannot be understood is ignored."""
    found = parse_range(header, 1000)
    assert found == (None if expected is None else SentRange(*expected))


def test_an_empty_file_has_no_range():
    assert parse_range("bytes=-5", 0) is None
    assert parse_range(None, 0) == SentRange(0, 0)


def test_ranges_are_parts_of_the_file(tmp_path):
    """Of the same file, else all of it; the parts of a range are whole, however long it is."""
    content = recorded(tmp_path).read_bytes()
    assert len(content) < PIECE_BYTES
    status, headers, body = got(tmp_path, range="bytes=100-199")
    assert (status, body) == (206, content[100:200])
    assert headers["content-range"] == f"bytes 100-199/{len(content)}"
    assert headers["content-length"] == "100"
    tag = headers["etag"]
    assert got(tmp_path, range="bytes=100-199", if_range=tag)[0] == 206
    assert got(tmp_path, range="bytes=100-199", if_range='"other"')[2] == content
    status, headers, body = got(tmp_path, range=f"bytes={len(content)}-")
    assert (status, headers["content-range"], body) == (416, f"bytes */{len(content)}", b"")
    long = recorded(tmp_path, name="long.wav")
    with long.open("ab") as file:
        file.write(bytes(3 * PIECE_BYTES))
    status, _, body = got(tmp_path, {"name": "long.wav"}, range="bytes=5-")
    assert body == long.read_bytes()[5:]


def test_only_the_token_hears(tmp_path):
    """On this machine, too, and whatever is asked."""
    recorded(tmp_path)
    for path in ("/api/sound", "/api/sound/file"):
        status, _, body = got(tmp_path, {"t0": 0, "t1": 1}, path, has_token=False)
        assert status == 403
        assert json.loads(body)["error"].startswith("token: needed to hear")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"name": "../../../secret.wav"}, "name='../../../secret.wav': must be the name of a file"),
        ({"name": "..\\secret.wav"}, "name="),
        ({"name": "/etc/passwd"}, "name='/etc/passwd': must be the name of a file, .wav or .flac"),
        ({"name": "0.wav\0.txt"}, "name="),
        ({"name": "x" * 300 + ".wav"}, "name="),
        ({"name": ".wav"}, "name="),
        ({"name": ""}, "name=''"),
        ({"name": "0.spd"}, "name="),
        ({"source": ".."}, "source='..': must be a name"),
        ({"source": "a/b"}, "source="),
        ({"recording": ".."}, "recording='..': must be a name"),
        ({"recording": ""}, "recording=''"),
        ({"folder": "-1"}, "folder='-1': must be a whole number"),
        ({"folder": "1e3"}, "folder="),
    ],
)
def test_no_name_leads_out_of_the_folder(tmp_path, query, why):
    """Each is refused by its name, before anything is opened."""
    recorded(tmp_path / "recordings")
    recorded(tmp_path, name="secret.wav")
    status, _, body = got(tmp_path / "recordings", query)
    assert status == 400
    assert json.loads(body)["error"].startswith(why)


def test_other_places_have_no_sound(tmp_path):
    """Links, other kinds of files, other folders, and files of others under a name of sound."""
    folder, outside = tmp_path / "recordings", tmp_path / "outside"
    path, secret = recorded(folder), recorded(outside, name="secret.wav")
    place = path.parent
    (place / "link.wav").symlink_to(secret)
    os.mkfifo(place / "fifo.wav")
    (place / "folder.wav").mkdir()
    (folder / "night" / "linked").symlink_to(secret.parent)
    (folder / "linked").symlink_to(outside / "night")
    (place / "shadow.wav").write_text("root:x:0:0\n")
    os.link(recorded(tmp_path / "else", source="lake"), place / "lake.wav")
    os.link(recorded(tmp_path / "else", recording="day"), place / "day.wav")
    queries = [
        *({"name": f"{name}.wav"} for name in ("link", "fifo", "folder", "shadow", "lake", "day")),
        {"source": "linked", "name": "secret.wav"},
        {"recording": "linked", "name": "secret.wav"},
        {"folder": 1},
        {"name": "gone.wav"},
    ]
    for query in queries:
        status, _, body = got(folder, query)
        assert (status, "there is no such sound" in json.loads(body)["error"]) == (404, True), query
    assert names(folder, 0, 1) == ["0.wav"]
    assert names(folder, 0, 1, "linked") == []
    assert got(folder)[0] == 200


def test_a_question_reads_few_of_many_files(tmp_path, monkeypatch):
    """Those that were written since come first."""
    monkeypatch.setattr(recorded_sound, "READ_MAX", 3)
    for begin_s in range(8):
        path = recorded(tmp_path, 10 * begin_s)
        os.utime(path, ns=(0, BEGIN_NS + (10 * begin_s + SECONDS) * S))
    read = []
    own = recorded_sound.read_origin
    monkeypatch.setattr(recorded_sound, "read_origin", lambda *given: read.append(1) or own(*given))
    assert names(tmp_path, 41, 42) == ["40.wav"]
    assert len(read) == 3


def test_questions_have_a_source_and_a_time(tmp_path):
    for query, why in (
        ({"source": "..", "t0": 0, "t1": 1}, "source='..': must be a name"),
        ({"source": "pond", "t0": 0}, "t1: is missing"),
        ({"source": "pond", "t0": "nan", "t1": 1}, "t0='nan': must be a finite number"),
        ({"source": "pond", "t0": 2, "t1": 1}, "t0=2.0, t1=1.0: t1 must be above t0"),
    ):
        status, _, body = asyncio.run(get(tmp_path, "/api/sound", query))
        assert (status, json.loads(body)) == (400, {"error": why})


def test_a_file_that_is_no_sound_of_a_recording_is_not_opened(tmp_path):
    recorded(tmp_path)
    sound = RecordedSound([tmp_path])
    with pytest.raises(ConfigError, match=r"^name='a\.txt': must be the name of a file"):
        sound.open(ClipPlace(0, "night", "pond", "a.txt"))
    with pytest.raises(NotFoundError, match=r"^'a\.wav': there is no such sound of pond$"):
        sound.open(ClipPlace(0, "night", "pond", "a.wav"))
    before = len(list(Path("/proc/self/fd").iterdir()))
    os.close(sound.open(ClipPlace(0, "night", "pond", "0.wav")))
    assert sound.clips("pond", BEGIN_NS, BEGIN_NS + S)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
