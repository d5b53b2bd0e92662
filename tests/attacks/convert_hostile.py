"""Converts files one after the other, and prints a line of JSON for each.

    python convert_hostile.py FOLDER NAME...      spectrod convert NAME into an .npz
    python convert_hostile.py JOB SHARD...        spectrod batch merge of each shard
    python convert_hostile.py merge JOB...        spectrod batch merge of each job

A line has the exit code, what was said, the time of this process and of the largest process that
read a file [s], and the memory of both [bytes].
"""

import contextlib
import io
import json
import os
import sys
import threading
import time
from pathlib import Path

from spectrod.cli import main
from spectrod.formats.export.confined import confined_process as readers

TICKS_S = os.sysconf("SC_CLK_TCK")


class Watch(threading.Thread):
    """Reads what the processes that read files take, until it is stopped."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.bytes = self.seconds = 0

    def run(self):
        """Look every 5 ms."""
        while not self.over.wait(0.005):
            for starter in list(readers._starters.values()):
                pid = starter._process.pid
                with contextlib.suppress(OSError):
                    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
                    for child in text.split():
                        self.look(child)

    def look(self, pid):
        """Take the peaks of a process."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            status = Path(f"/proc/{pid}/status").read_text()
            self.bytes = max(self.bytes, kilobytes(status) << 10)
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            self.seconds = max(self.seconds, (int(fields[11]) + int(fields[12])) / TICKS_S)


def kilobytes(status):
    """Return the peak memory in a status [kB]."""
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0])


def one(arguments):
    """Run a command; return what it took."""
    watch = Watch()
    watch.start()
    began_s, said, out = time.process_time(), io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(out):
        code = main(arguments)
    own_s = time.process_time() - began_s
    watch.over.set()
    watch.join()
    own_bytes = kilobytes(Path("/proc/self/status").read_text()) << 10
    return {
        "code": code,
        "said": said.getvalue(),
        "out": out.getvalue(),
        "seconds": own_s + watch.seconds,
        "bytes": own_bytes + watch.bytes,
    }


def run(where, *names):
    """Convert, or merge."""
    for name in names:
        if where == "merge":
            found = one(["batch", "merge", name])
        elif where.endswith(".toml"):
            found = one(["batch", "merge", where, name])
        else:
            found = one(["convert", name, f"{where}/{Path(name).name}.npz"])
        print(json.dumps({"name": Path(name).name, **found}), flush=True)  # noqa: T201 - its result


if __name__ == "__main__":
    os.fsync = os.fdatasync = lambda _: None  # the page cache is enough here, and faster
    run(*sys.argv[1:])
