import json
import logging
import os
import re
import subprocess
import sys
import warnings

import pytest

from spectrod.errors import ConfigError
from spectrod.service import configure_logging


@pytest.fixture(autouse=True)
def _root_logger_restored():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    # basicConfig(force=True) would close pytest's own handlers.
    root.handlers[:] = []
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def _logged(capsys, style, level="info"):
    configure_logging(level, style)
    log = logging.getLogger("spectrod.test")
    log.debug("detail %d", 1)
    log.info("ready")
    log.warning("late")
    log.error("gone\nfor good")
    return capsys.readouterr().err.splitlines()


def test_journal_style_prefixes_every_line_with_its_priority(capsys):
    """Each line carries the sd-daemon prefix of its level, the second of a message too."""
    assert _logged(capsys, "journal") == ["<6>ready", "<4>late", "<3>gone", "<3>for good"]


def test_debug_records_have_the_lowest_priority(capsys):
    """Level debug shows the debug record, with priority 7."""
    assert _logged(capsys, "journal", "debug")[0] == "<7>detail 1"


def test_human_style_has_time_and_level(capsys):
    """A line for a person begins with UTC in RFC 3339 and the level."""
    line = _logged(capsys, "human")[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO    ready", line)


def test_json_style_is_one_object_a_line(capsys):
    """Every line parses, and a message with a line break stays one line."""
    lines = [json.loads(line) for line in _logged(capsys, "json", "warning")]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("warning", "late"),
        ("error", "gone\nfor good"),
    ]
    assert lines[0]["logger"] == "spectrod.test"
    assert lines[0]["ts"].endswith("Z")


def test_json_style_keeps_the_traceback(capsys):
    """A logged exception is in the same object as its message."""
    configure_logging("info", "json")
    try:
        raise OSError("no such device")  # noqa: TRY301 - the log line is what is tested
    except OSError:
        logging.getLogger("spectrod.test").exception("failed")
    assert "no such device" in json.loads(capsys.readouterr().err)["traceback"]


def test_warnings_become_records(capsys):
    """What the warnings module shows goes the way of the other log lines."""
    configure_logging("warning", "journal")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # catch_warnings restored showwarning: capture again inside.
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("old driver", stacklevel=1)
    assert capsys.readouterr().err.startswith("<4>")


_HELLO = (
    "import logging; from spectrod.service import configure_logging; "
    "configure_logging(); logging.getLogger('spectrod').info('hello')"
)


def _stderr_of_hello(journal_stream):
    reader, writer = os.pipe()
    with os.fdopen(reader) as output, os.fdopen(writer, "w") as stderr:
        status = os.fstat(stderr.fileno())
        stream = journal_stream or f"{status.st_dev}:{status.st_ino}"
        environ = {**os.environ, "JOURNAL_STREAM": stream}
        subprocess.run([sys.executable, "-c", _HELLO], env=environ, stderr=stderr, check=True)
        stderr.close()
        return output.read()


def test_auto_is_journal_on_the_journals_own_stream():
    """Where standard error is the stream that JOURNAL_STREAM names, lines have the prefix."""
    assert _stderr_of_hello(None) == "<6>hello\n"


def test_auto_is_human_elsewhere():
    """Standard error that was redirected away from the journal gets no prefix."""
    assert _stderr_of_hello("1:2").endswith("Z INFO    hello\n")


@pytest.mark.parametrize(
    ("level", "style", "message"),
    [
        ("loud", "auto", "log.level='loud': must be one of debug, info, warning, error"),
        ("info", "xml", "log.style='xml': must be one of auto, journal, human, json"),
    ],
)
def test_unknown_choices_are_refused(level, style, message):
    """A level or style that does not exist is named, with those that do."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        configure_logging(level, style)
