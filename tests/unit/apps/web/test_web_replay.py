"""Holes in the rows of topics, and how a daemon's replay fills them."""

import asyncio
import logging
import re

import msgspec
import numpy as np
import pytest

from spectrod.apps.web import replay
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.apps.web.replay import ReplayClient, ReplayedRows
from spectrod.lib.errors import BusyError, UnavailableError
from spectrod.wire.headers import SpectrumHeader

NAME = "spec/mic/0/dbfs/"
TOPIC = TopicInfo(3, NAME, "spec", "tcp://a:1", "mic", "0", "dbfs", "dBFS", 8000.0)
EPOCH = 77


def header(seq, epoch=EPOCH, n_values=5):
    return SpectrumHeader(
        seq=seq,
        epoch=epoch,
        t_utc_ns=10**18 + seq * 10**8,
        t_mono_ns=0,
        sample_index=800 * seq,
        fs=8000.0,
        win_length=8,
        nfft=8,
        hop=800,
        window="hann",
        enbw_hz=1.5,
        shape=(n_values,),
        unit="dBFS",
        ref="",
        engine="numpy",
    )


def message(seq, epoch=EPOCH, topic=NAME, n_values=5):
    values = np.full(n_values, -float(seq), "<f4")
    return [topic.encode(), msgspec.json.encode(header(seq, epoch, n_values)), values.tobytes()]


class FakeDaemon:
    """Answers ``replay`` as a daemon that keeps the messages from a number on."""

    def __init__(self, oldest=0, newest=10**6):
        self.oldest, self.newest = oldest, newest
        self.asked = []

    async def __call__(self, endpoint, params):
        self.asked.append((endpoint, *params.values()))
        first = max(params["first_seq"], self.oldest)
        last = min(first + params["limit"], self.newest)
        parts = [part for seq in range(first, last) for part in message(seq)]
        result = {"epoch": EPOCH, "parts": [3] * (last - first), "more": last < self.newest}
        return result, parts


def filled(ask, *live, wait=True):
    """Note live rows; return the numbers and levels of the rows that were kept."""
    kept = []

    def keep(topic_id, header, row, edges_hz, *, is_replayed):
        assert (topic_id, edges_hz, is_replayed) == (3, None, True)
        kept.append((header.seq, round(-327.67 + 0.01 * int(row[0]), 2)))

    async def run():
        rows = ReplayedRows(lambda: {3: TOPIC}, keep, ask)
        for one in live:
            rows.note(3, one, np.zeros(one.shape[0], np.uint16), None)
            if wait:
                await rows.settled(3)
        await rows.settled(3)
        await rows.settled(99)
        rows.close()

    asyncio.run(run())
    return kept


def test_rows_before_the_first_one_are_asked_for_once():
    """What the daemon still has comes in order, in bounded requests, up to the first row."""
    daemon = FakeDaemon(oldest=100)
    kept = filled(daemon, header(400), header(401), header(402))
    assert kept == [(seq, -float(seq) if seq < 328 else -327.67) for seq in range(100, 400)]
    assert [one[2] for one in daemon.asked] == [0, 228, 356]
    assert {one[:2] for one in daemon.asked} == {("tcp://a:1", NAME)}
    assert all(one[4] <= replay.MESSAGES_AT_ONCE for one in daemon.asked)


def test_lost_rows_and_those_of_a_restarted_daemon_are_asked_for():
    """A hole is asked for in the epoch of the row after it, from the last row on."""
    daemon = FakeDaemon()
    kept = filled(daemon, header(0), header(1), header(5), header(2, epoch=78))
    assert [seq for seq, _ in kept] == [2, 3, 4]
    assert daemon.asked == [("tcp://a:1", NAME, 2, EPOCH, 3), ("tcp://a:1", NAME, 0, 78, 2)]


def test_a_long_hole_is_filled_from_its_newest_rows(monkeypatch):
    """No more rows are asked for than are kept, by their number or by their bytes."""
    monkeypatch.setattr(replay, "HOLE_ROWS_MAX", 10)
    assert [seq for seq, _ in filled(FakeDaemon(), header(50))] == list(range(40, 50))
    monkeypatch.setattr(replay, "HOLE_BYTES_MAX", 50)
    assert [seq for seq, _ in filled(FakeDaemon(), header(50))] == list(range(45, 50))


def test_holes_that_wait_are_bounded():
    """Of a row that misses its predecessor each time, the newest holes are filled."""
    live = [header(2 * n) for n in range(200)]
    kept = filled(FakeDaemon(), *live, wait=False)
    assert [seq for seq, _ in kept] == [2 * n - 1 for n in range(200 - replay.HOLES_MAX, 200)]


@pytest.mark.parametrize(
    "parts",
    [message(3, topic="spec/mic/1/dbfs/"), message(3, epoch=1), message(9), message(2)],
    ids=["topic", "epoch", "later", "earlier"],
)
def test_messages_that_were_not_asked_for_are_left_out(parts):
    """Only rows of the hole are kept, and a daemon that repeats itself is asked no more."""
    asked = []

    async def ask(_endpoint, params):
        asked.append(params)
        return {"epoch": EPOCH, "parts": [3], "more": True}, parts

    assert filled(ask, header(2), header(9)) == []
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (UnavailableError("away"), "no replay: away"),
        (BusyError("too\nmany"), r"no replay: too\\nmany"),
        (({"epoch": 1, "parts": [3]}, [b"x"]), "parts=.3.: must be those of 1"),
        (({"parts": [1]}, [b"x"]), "missing required field `epoch`"),
        (({"epoch": EPOCH, "parts": [2]}, [b"spec/a/0/d/", b"{"]), "no replay: spec/a/0/d/"),
    ],
    ids=["away", "busy", "parts", "result", "message"],
)
def test_a_daemon_without_replay_is_told_once_and_costs_nothing(answer, text, caplog):
    """The holes stay, a line of the log says why, and the next hole is tried again."""
    asked = []

    async def ask(_endpoint, params):
        asked.append(params)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with caplog.at_level(logging.INFO, logger="spectrod.apps.web.replay"):
        assert filled(ask, header(3), header(6)) == []
    assert len(asked) == 2
    assert len(caplog.messages) == 1
    assert re.search(text, caplog.messages[0])


def test_an_answer_waits_a_bounded_time(monkeypatch):
    """A daemon that does not answer holds up requests for the past no longer than is said."""
    monkeypatch.setattr(replay, "SETTLED_S", 0.01)

    async def ask(_endpoint, _params):
        await asyncio.Event().wait()

    assert filled(ask, header(3)) == []


def test_only_daemons_with_a_control_socket_here_are_asked():
    """Of an endpoint elsewhere nothing is asked: its publisher takes no requests."""
    ask = ReplayClient(None, None).ask("tcp://192.0.2.1:5556", {})
    with pytest.raises(UnavailableError, match=r"tcp://192\.0\.2\.1:5556: has no control socket"):
        asyncio.run(ask)
