"""What `make install` and `make uninstall` refuse: they may remove only what is spectrod's."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def refused(target, prefix, folder):
    """Run a target that must fail, unable to reach this machine's own unit; return its error."""
    elsewhere = [f"UNITDIR={folder}", f"SYSUSERSDIR={folder}", "SYSTEMD_RUNS=false"]
    result = subprocess.run(
        ["make", target, f"PREFIX={prefix}", *elsewhere],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    return result.stderr


@pytest.mark.parametrize("target", ["install-program", "uninstall"])
def test_a_shared_prefix_is_left_alone(target, tmp_path):
    """A folder that holds something else (/usr/local) gets no program and is never removed."""
    shared = tmp_path / "local"
    program = shared / "bin" / "spectrod"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert f"PREFIX={shared}: " in refused(target, shared, tmp_path)
    assert list(shared.rglob("*")) == [program.parent, program]


@pytest.mark.parametrize("prefix", ["", "relative", "/two words"])
def test_a_prefix_that_cannot_be(prefix, tmp_path):
    """What the shell would split, or take from the current folder, is refused with its rule."""
    expected = f"PREFIX={prefix}: must be one absolute path without spaces"
    assert expected in refused("uninstall", prefix, tmp_path)
