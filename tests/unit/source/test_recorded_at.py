"""Start times of recordings in the notation of each recorder."""

import datetime as dt
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.source.files.recorded_at import find_start, recorded_at, recorded_at_name

NOON = "2026-05-01T04:30:00"


def iso(found):
    """Return UTC to the microsecond, and whether a zone was named."""
    if found is None:
        return None
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    utc = epoch + dt.timedelta(microseconds=found.utc_ns // 1000)
    return utc.isoformat().removesuffix("+00:00"), found.has_zone


@pytest.mark.parametrize(
    ("name", "utc", "has_zone"),
    [
        ("20260501_043000.WAV", NOON, False),
        ("20260501_043000T.WAV", NOON, False),  # AudioMoth, triggered
        ("S4A01234_20260501_043000.wav", NOON, False),  # Song Meter
        ("SITE_0+1_20260501$043000.wav", NOON, False),  # Song Meter 3 with GPS
        ("SBW1391_20260501_043000.wav", NOON, False),  # icListen
        ("PAM_20260501_043000_123.wav", NOON, False),  # PAMGuard; milliseconds or a counter
        ("AMAR123.1.20260501T043000Z.wav", NOON, True),  # JASCO
        ("20260501T143000+1000_REC.flac", NOON, True),  # Frontier Labs
        ("20260501T013000-03:00.flac", NOON, True),
        ("5146.260501043000.wav", NOON, False),  # SoundTrap
        ("6550.260501043000.x.wav", NOON, False),
        ("69F42C48.WAV", NOON, True),  # older AudioMoth
        ("2026-05-01T04:30:00.wav", NOON, False),
        ("2026-05-01_04-30-00.ogg", NOON, False),
        ("2026-05-01 04.30.00.mp3", NOON, False),
        ("2026-05-01-04-30-00-UTC.wav", NOON, True),
        ("2026_05_01_04_30_00", NOON, False),
        ("20260501043000.wav", NOON, False),
        ("mic1-20260501-043000.25.wav", NOON + ".250000", False),
        ("20260501_043000.123456Z.wav", NOON + ".123456", True),
        ("20260501_043000-0015.wav", NOON, False),  # a counter, no zone
        ("20240229_235959.wav", "2024-02-29T23:59:59", False),
        ("19600101_000000.wav", "1960-01-01T00:00:00", False),
    ],
)
def test_names_with_a_time(name, utc, has_zone):
    """The names that each recorder gives are read, with fractions and time zones."""
    assert iso(recorded_at_name(name)) == (utc, has_zone)


@pytest.mark.parametrize(
    "name",
    [
        "t.wav",
        "20261301_043000.wav",  # month 13
        "20260230_043000.wav",
        "20260501_250000.wav",
        "20260501_043060.wav",
        "18991231_235959.wav",
        "20260501.wav",
        "20260501_0430.wav",
        "1202605010430001.wav",
        "260501_043000.wav",  # or day first
        "260501043000.wav",
        "5146.261301043000.wav",
        "ST_20260501_043000_20260501_050000.wav",  # which?
        "DEADBEEF.WAV",  # after 2038
        "12345678.WAV",  # before the first AudioMoth
        "69f42c48.wav",
        "",
    ],
)
def test_names_that_do_not(name):
    """A name that is invalid, ambiguous or no time gives no start time."""
    assert recorded_at_name(name) is None


@pytest.fixture
def wav(tmp_path):
    """Make a WAV file with more chunks before or after its samples."""

    def make(name="x.wav", before=(), behind=(), form="WAV"):
        path = tmp_path / name
        soundfile.write(path, np.zeros(1001), 48000, subtype="PCM_16", format=form)
        data = path.read_bytes()
        for chunk in before:
            data = data[:12] + chunk + data[12:]
        for chunk in behind:
            data += chunk
        path.write_bytes(data)
        return str(path)

    return make


def chunk(name, content, size=None):
    pad = b"\0" * (len(content) % 2)
    return struct.pack("<4sI", name, len(content) if size is None else size) + content + pad


def bext(date=b"2026-05-01", time=b"04:30:00", samples=0):
    content = bytes(320) + date + time + struct.pack("<QH", samples, 1) + bytes(254)
    return chunk(b"bext", content)


AT_0430 = (4 * 3600 + 30 * 60) * 48000


@pytest.mark.parametrize("place", ["before", "behind"])
@pytest.mark.parametrize(
    ("header", "utc"),
    [
        (bext(), NOON),
        (bext(b"2026_05_01", b"04-30-00"), NOON),
        (bext(samples=AT_0430 + 12_000), NOON + ".250000"),
        (bext(samples=AT_0430 - 36_000), "2026-05-01T04:29:59.250000"),
        (bext(samples=10 * 3600 * 48000), NOON),  # a time code of its own
        (bext(b"0000-00-00"), None),
        (bext(b"          "), None),
        (chunk(b"bext", bytes(100)), None),
        (chunk(b"guan", b"GUANO|Version: 1.0\nTimestamp: 2026-05-01T06:30:00.5+02:00\n"), NOON),
        (chunk(b"guan", b"Timestamp: 2026-05-01 04:30:00\nMake: X"), NOON),
        (chunk(b"guan", b"GUANO|Version: 1.0\nTimestamp : 2026-05-01T04:30:00Z\0\0\0\0"), NOON),
        (chunk(b"guan", b"Timestamp: 2026-05-01T04:30:00\0\n\0\0"), NOON),
        (chunk(b"guan", b"A: 1\0 Timestamp:2026-05-01T04:30:00\0"), NOON),
        (chunk(b"guan", b"\xef\xbb\xbfTimestamp: 2026-05-01T04:30:00"), NOON),
        (chunk(b"guan", b"\xef\xbb\xbfGUANO|Version: 1\r\tTimestamp\t: 20260501T043000Z\r"), NOON),
        (chunk(b"guan", b"Timestamp: 2026-05-01 06:30:00 +02:00 "), NOON),
        (chunk(b"guan", b"Timestamp: 2026-05-01T04:30:00 Z"), NOON),
        (chunk(b"guan", b"X|Timestamp: 2026-05-01T04:30:00"), None),
        (chunk(b"guan", b"Timestamp: yesterday\n"), None),
        (chunk(b"guan", b"Timestamp: 2026-05-01\n"), None),
        (chunk(b"guan", b"Timestamp: 0001-01-01T00:00:00\n"), None),
        (chunk(b"guan", b"\xff\xfe"), None),
        (chunk(b"odd ", b"123"), None),
    ],
)
def test_headers_of_wav_files(wav, header, utc, place):
    """BWF and GUANO chunks are read at any place, and invalid ones are ignored."""
    found = recorded_at(wav(**{place: [header]}), 48000.0)
    if utc is None:
        assert found is None
    else:
        fraction = ".500000" if b"00.5+" in header else ""
        assert iso(found)[0] == utc + fraction


@pytest.mark.parametrize("form", ["RF64", "WAVEX", "WAV"])
def test_chunks_behind_the_samples_of_any_wav(wav, form):
    """Chunks after the samples are found by the samples' size, in 64 bits for RF64."""
    assert iso(recorded_at(wav(behind=[bext()], form=form), 48000.0)) == (NOON, False)


@pytest.mark.parametrize("cut", [0, 3, 11, 12, 15, 19, 40])
def test_headers_that_end_early(wav, cut):
    """A header cut at any byte gives less information and no error."""
    path = Path(wav(before=[bext()]))
    path.write_bytes(path.read_bytes()[:cut])
    assert recorded_at(str(path), 48000.0) is None


def test_a_chunk_that_claims_too_much(wav):
    """A chunk size beyond the file or the limit is not read."""
    path = wav(before=[chunk(b"bext", b"x", size=1 << 31)])
    assert recorded_at(path, 48000.0) is None


@pytest.mark.parametrize(
    ("comment", "utc"),
    [
        ("Recorded at 04:30:00 01/05/2026 by AudioMoth 01 at gain", NOON),
        ("Recorded at 04:30:00 01/05/2026 (UTC) by AudioMoth", NOON),
        ("Recorded at 06:30:00 01/05/2026 (UTC+2) by AudioMoth", NOON),
        ("Recorded at 01:00:00 01/05/2026 (UTC-3:30) during deployment", NOON),
        ("Recorded at 04:00:00.123 01/05/2026 (UTC-0:30) by AudioMoth", NOON + ".123000"),
        ("Recorded at 04:30:00 01/13/2026 (UTC) by AudioMoth", None),
        ("Recorded at noon", None),
    ],
)
def test_comments_of_the_audiomoth(tmp_path, comment, utc):
    """AudioMoth's comment gives the time with its zone, as libsndfile reads it."""
    path = tmp_path / "x.wav"
    with soundfile.SoundFile(path, "w", 8000, 1, "PCM_16") as file:
        file.comment = comment
        file.write(np.zeros(100))
    with soundfile.SoundFile(path) as file:
        found = recorded_at(str(path), 8000.0, file.comment)
    assert iso(found) == (None if utc is None else (utc, True))


def test_a_named_time_zone_wins(wav):
    """A time with a zone takes precedence, then the header, then the name."""
    guano = chunk(b"guan", b"Timestamp: 2026-05-01T04:30:00Z")
    assert iso(recorded_at(wav("20260501_063000.wav", [bext(), guano]), 48000.0)) == (NOON, True)
    assert iso(recorded_at(wav("20260501_063000.wav", [bext()]), 48000.0)) == (NOON, False)
    late = "2026-05-01T06:30:00"
    assert iso(recorded_at(wav("20260501_063000Z.wav", [bext()]), 48000.0)) == (late, True)


def test_the_log_names_the_time_and_its_origin(wav, caplog):
    """One log line names the file, the time, its origin and an assumed time zone."""
    caplog.set_level("INFO")
    found = find_start(wav(before=[bext()]), 48000.0)
    assert (found.utc_ns, found.offset_s) == (1777609800 * 10**9, 0)
    assert caplog.messages[0].endswith(
        "x.wav starts at 2026-05-01T04:30:00+00:00, from its BWF header, "
        "which names no time zone: taken as UTC"
    )
    assert find_start(wav("y.wav")) is None
    assert len(caplog.messages) == 1
