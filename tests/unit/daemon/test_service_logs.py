import json
import logging
import os
import re
import subprocess
import sys
import warnings

import pytest

from spectrod.daemon.service import configure_logging
from spectrod.lib.errors import ConfigError


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
    """In journal style each message is one line with the sd-daemon prefix of its level."""
    assert _logged(capsys, "journal") == ["<6>ready", "<4>late", r"<3>gone\nfor good"]


def test_debug_records_have_the_lowest_priority(capsys):
    """At level debug, debug records appear with priority 7."""
    assert _logged(capsys, "journal", "debug")[0] == "<7>detail 1"


def test_human_style_has_time_and_level(capsys):
    """A line for people starts with UTC in RFC 3339 and the level."""
    line = _logged(capsys, "human")[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO    ready", line)


_FORGED = "a.wav\n2026-01-01T00:00:00.000Z ERROR   forged \x1b]0;title\x07 \u202e caf\udce9"


@pytest.mark.parametrize("style", ["human", "journal"])
def test_a_message_cannot_forge_another(capsys, style):
    """A file name with line breaks, escape sequences and raw bytes stays on its own line."""
    configure_logging("info", style)
    logging.getLogger("spectrod.test").warning("%s: is left unchanged", _FORGED)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.endswith(r" forged \x1b]0;title\x07 \u202e caf\xe9: is left unchanged" "\n")


@pytest.mark.parametrize(("style", "begin"), [("human", "    "), ("journal", "<3>    ")])
def test_the_lines_of_a_traceback_are_indented(capsys, style, begin):
    """Traceback lines are indented, so they cannot look like log messages."""
    configure_logging("info", style)
    try:
        raise OSError(_FORGED)  # noqa: TRY301 - the log line is what is tested
    except OSError:
        logging.getLogger("spectrod.test").exception("failed")
    first, *traceback = capsys.readouterr().err.splitlines()
    assert first.endswith("failed")
    assert traceback[0] == f"{begin}Traceback (most recent call last):"
    assert all(line.startswith(begin) and line.isprintable() for line in traceback)


def test_json_style_has_no_lone_surrogates(capsys):
    """A line with a file name that is not UTF-8 is valid for strict JSON parsers."""
    configure_logging("info", "json")
    logging.getLogger("spectrod.test").warning("caf\udce9")
    assert json.loads(capsys.readouterr().err)["event"] == r"caf\xe9"


def test_json_style_is_one_object_a_line(capsys):
    """In JSON style every message is one valid line, also with a line break in it."""
    lines = [json.loads(line) for line in _logged(capsys, "json", "warning")]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("warning", "late"),
        ("error", "gone\nfor good"),
    ]
    assert lines[0]["logger"] == "spectrod.test"
    assert lines[0]["ts"].endswith("Z")


def test_json_style_keeps_the_traceback(capsys):
    """In JSON style a traceback is in the object of its message."""
    configure_logging("info", "json")
    try:
        raise OSError("no such device")  # noqa: TRY301 - the log line is what is tested
    except OSError:
        logging.getLogger("spectrod.test").exception("failed")
    assert "no such device" in json.loads(capsys.readouterr().err)["traceback"]


def test_warnings_become_records(capsys):
    """Python warnings are written as log records."""
    configure_logging("warning", "journal")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # catch_warnings restored showwarning: capture again inside.
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("old driver", stacklevel=1)
    assert capsys.readouterr().err.startswith("<4>")


_HELLO = (
    "import logging; from spectrod.daemon.service import configure_logging; "
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
    """Auto selects the journal style if standard error is the stream in JOURNAL_STREAM."""
    assert _stderr_of_hello(None) == "<6>hello\n"


def test_auto_is_human_elsewhere():
    """Auto selects the human style if standard error was redirected."""
    assert _stderr_of_hello("1:2").endswith("Z INFO    hello\n")


@pytest.mark.parametrize(
    ("level", "style", "message"),
    [
        ("loud", "auto", "log.level='loud': must be one of debug, info, warning, error"),
        ("info", "xml", "log.style='xml': must be one of auto, journal, human, json"),
    ],
)
def test_unknown_choices_are_refused(level, style, message):
    """An unknown level or style is refused with the list of known ones."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        configure_logging(level, style)
