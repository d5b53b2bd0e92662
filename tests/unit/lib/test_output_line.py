import os
import pty
from pathlib import Path

import pytest

from spectrod.lib.errors import StorageError
from spectrod.lib.output_line import write_line


@pytest.fixture
def pipe():
    """Open a pipe; return its read descriptor and its write end as a text file."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w", encoding="ascii") as out:
        yield reader, out


def test_a_line_is_written_at_once_in_the_files_encoding(pipe):
    """A line is written at once, with question marks for what the encoding lacks."""
    reader, out = pipe
    write_line("a µ", out)
    assert os.read(reader, 100) == b"a ?\n"
    os.close(reader)


def test_a_reader_that_does_not_read_is_not_waited_for(pipe):
    """While a pipe is full, lines are dropped; when it has room, they are written again."""
    reader, out = pipe
    size = sum(1 for _ in iter(lambda: write_until_full(out.fileno()), 0))
    write_line("left out", out)
    rest = b""
    while len(rest) < size * 4096:
        rest += os.read(reader, 65536)
    write_line("written", out)
    assert (rest.strip(b"x"), os.read(reader, 100)) == (b"", b"written\n")
    os.close(reader)


def write_until_full(fd):
    os.set_blocking(fd, False)
    try:
        return os.write(fd, b"x" * 4096)
    except BlockingIOError:
        return 0
    finally:
        os.set_blocking(fd, True)


def test_a_reader_that_has_gone_is_a_broken_pipe(pipe):
    """A closed pipe or terminal is a broken pipe."""
    reader, out = pipe
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        write_line("x", out)
    master, slave = pty.openpty()
    os.close(master)
    with os.fdopen(slave, "w") as terminal, pytest.raises(BrokenPipeError):
        write_line("x", terminal)


def test_a_full_disk_is_a_storage_error():
    """A full disk is a storage error with the file and the reason."""
    with (
        Path("/dev/full").open("w") as full,
        pytest.raises(StorageError, match="/dev/full: No space left on device"),
    ):
        write_line("x", full)
