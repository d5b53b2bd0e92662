"""Journal entries with fields of their own."""

import json
import logging
import os
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from spectrod.daemon.service import logs
from spectrod.daemon.service.systemd_journal import JournalHandler, message_id

DOCS = Path(__file__).parents[3] / "docs" / "operations.md"
ABOUT = {"source": "roof", "recording": "night", "event": "record.failed"}


@pytest.fixture
def journal(tmp_path):
    """The journal's end of its socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "journal"))
        receiver.settimeout(5.0)
        yield receiver


@pytest.fixture
def log(journal, tmp_path):
    """A logger whose records go to the journal, and its fallback's records."""
    lost = []

    class Fallback(logging.Handler):
        def emit(self, record):
            lost.append(record.getMessage())

    handler = JournalHandler(Fallback(), tmp_path / "journal")
    handler.setFormatter(logs._LineFormatter("%(message)s"))
    logger = logging.getLogger("spectrod.test_journal")
    logger.setLevel("DEBUG")
    logger.propagate = False
    logger.addHandler(handler)
    yield logger, lost
    logger.removeHandler(handler)
    handler.close()


def parsed(entry):
    """Parse an entry as journald does."""
    fields = {}
    while entry:
        name, _, rest = entry.partition(b"\n")
        (n_bytes,) = struct.unpack("<Q", rest[:8])
        fields[name.decode()] = rest[8 : 8 + n_bytes].decode()
        assert rest[8 + n_bytes : 9 + n_bytes] == b"\n"
        entry = rest[9 + n_bytes :]
    return fields


def test_a_record_is_an_entry_with_fields(journal, log):
    """An entry names the source, the recording and the event, and its MESSAGE_ID is stable."""
    log[0].warning("%s: full", "roof", extra={"about": ABOUT})
    assert parsed(journal.recv(1 << 16)) == {
        "MESSAGE": "roof: full",
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "spectrod",
        "SPECTROD_LOGGER": "spectrod.test_journal",
        "SPECTROD_SOURCE": "roof",
        "SPECTROD_RECORDING": "night",
        "SPECTROD_EVENT": "record.failed",
        "MESSAGE_ID": message_id("record.failed"),
    }


@pytest.mark.parametrize(
    ("level", "number"), [("debug", "7"), ("info", "6"), ("warning", "4"), ("error", "3")]
)
def test_each_level_has_its_priority(journal, log, level, number):
    """A record that is about nothing has its priority, and no other field but the logger."""
    getattr(log[0], level)("x")
    fields = parsed(journal.recv(1 << 16))
    assert fields["PRIORITY"] == number
    assert not {"MESSAGE_ID", "SPECTROD_SOURCE"} & set(fields)


def test_a_traceback_is_part_of_its_entry(journal, log):
    """An exception is one entry of several lines, and a text cannot forge a field."""
    try:
        raise OSError("disk\nPRIORITY=0")  # noqa: TRY301 - the entry is what is tested
    except OSError:
        log[0].exception("a.wav\nPRIORITY=0")
    fields = parsed(journal.recv(1 << 16))
    first, *rest = fields["MESSAGE"].split("\n")
    assert first == r"a.wav\nPRIORITY=0"
    assert rest[0] == "    Traceback (most recent call last):"
    assert fields["PRIORITY"] == "3"


def test_long_texts_are_cut(journal, log):
    """A traceback of 1 MB and a name of 1 MB fit in one datagram."""
    error = OSError("disk")
    error.add_note("line of a note\n" * 10**5)
    log[0].info("failed", exc_info=error, extra={"about": {"source": "y" * 10**6}})
    fields = parsed(journal.recv(1 << 20))
    assert len(fields["MESSAGE"]) == 48 << 10
    assert len(fields["SPECTROD_SOURCE"]) == 1 << 10


def test_without_a_journal_the_fallback_has_the_line(journal, log, tmp_path):
    """A missing socket, and a journal that reads nothing, lose no line and raise nothing."""
    logger, lost = log
    while not lost:  # until the queue of the socket is full
        logger.info("unread")
    assert set(lost) == {"unread"}
    (tmp_path / "journal").unlink()
    logger.info("gone")
    assert lost[-1] == "gone"


def test_the_documented_ids_are_those_of_the_events():
    """Each MESSAGE_ID in the documentation is that of its event; they are promises."""
    found = dict(
        re.findall(r"^\| `(\w+\.\w+)` \| `([0-9a-f]{32})` \|$", DOCS.read_text(), re.MULTILINE)
    )
    assert len(found) > 15
    assert found == {kind: message_id(kind) for kind in found}
    assert message_id("record.failed") == found["record.failed"]


def test_json_lines_keep_their_priority_in_the_journal(capsys, monkeypatch):
    """JSON under systemd has the prefix that the journal removes, and says what it is about."""
    stderr = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{stderr.st_dev}:{stderr.st_ino}")
    formatter = logs._formatter("json")
    record = logging.LogRecord("spectrod.x", logging.INFO, "", 0, "ready", None, None)
    record.about = ABOUT
    line = formatter.format(record)
    assert line.startswith("<6>{")
    assert json.loads(line[3:])["about"] == ABOUT
    monkeypatch.delenv("JOURNAL_STREAM")
    assert logs._formatter("json").format(record).startswith("{")


@pytest.mark.slow
def test_an_abort_leaves_the_tracebacks_of_all_threads(tmp_path):
    """SIGABRT, as the watchdog sends it, leaves a traceback of each thread on standard error."""
    program = (
        "import os, signal, sys, threading\n"
        "from spectrod.daemon.service import loop\n"
        "def fake(*_, **__):\n"
        "    threading.Thread(target=threading.Event().wait, name='stuck', daemon=True).start()\n"
        "    os.kill(os.getpid(), signal.SIGABRT)\n"
        "import spectrod.cli.run_daemon\n"
        "spectrod.cli.run_daemon.run_daemon = fake\n"
        "from spectrod.cli import main\n"
        "main(['run', '--source', 'signal:sine,1000,-20', '--engine', 'numpy'])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == -6
    assert "Fatal Python error: Aborted" in done.stderr
    assert done.stderr.count("most recent call first") >= 2
    assert "in fake" in done.stderr
