"""The tutorials: each command of their console blocks runs and prints what stands there."""

import doctest
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
END = "end of the output"


def steps(page: str) -> list[tuple[str, str]]:
    """Return each command of a page's console blocks and the output that stands below it."""
    found = []
    for block in BLOCK.findall((TUTORIALS / page).read_text("utf-8")):
        for step in block.removeprefix("$ ").split("\n$ "):
            command, _, output = step.partition("\n")
            found.append((command, output.rstrip("\n")))
    return found


@pytest.fixture
def shell(tmp_path):
    """Return a shell in an empty folder beside the examples; its jobs end with the test."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "run").mkdir(mode=0o700)
    # Its folders are not those of a daemon that runs on this machine.
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        ["bash"],
        cwd=tmp_path,
        env=os.environ | env | {"XDG_RUNTIME_DIR": str(tmp_path / "run")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with process:
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def run(shell: subprocess.Popen, command: str) -> str:
    """Run a command and return what it and its jobs print until it ends."""
    shell.stdin.write(f"{command}\necho; echo '{END}'\n")
    shell.stdin.flush()
    lines = []
    while (line := shell.stdout.readline()) != f"{END}\n":
        assert line, f"{command}: the shell has ended"
        # On a busy machine a subscriber may have to wait for the daemon, and reports it.
        if not line.startswith("nothing from tcp://"):
            lines.append(line)
    return "".join(lines).strip("\n")


@pytest.mark.extended
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", ["archives.md", "acoustics.md", "live.md"])
def test_each_command_prints_what_the_tutorial_shows(shell, page):
    """The output of each command is the one shown; `...` stands for any text."""
    for command, output in steps(page):
        got = run(shell, command)
        same = doctest.OutputChecker().check_output(
            f"{output}\n", f"{got}\n", doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        )
        assert same, f"$ {command}\nshown:\n{output}\nprinted:\n{got}"
