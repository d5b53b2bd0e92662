"""Refusals of `make install` and `make uninstall`: they may remove only spectrod's files."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def refused(target, prefix, folder):
    """Run a target that must fail, without access to this machine's unit; return its error."""
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
    """A prefix that contains something else, such as /usr/local, is refused and never removed."""
    shared = tmp_path / "local"
    program = shared / "bin" / "spectrod"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert f"PREFIX={shared}: " in refused(target, shared, tmp_path)
    assert list(shared.rglob("*")) == [program.parent, program]


@pytest.mark.parametrize("prefix", ["", "relative", "/two words"])
def test_a_prefix_that_cannot_be(prefix, tmp_path):
    """A prefix with spaces or a relative prefix is refused with the rule."""
    expected = f"PREFIX={prefix}: must be one absolute path without spaces"
    assert expected in refused("uninstall", prefix, tmp_path)
