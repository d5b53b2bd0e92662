"""The Debian package, built here and installed in a machine with a real systemd."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import spectrod

sys.path.insert(0, str(Path(__file__).parents[1] / "systemd"))
from container import Machine, MissingToolError, require_tools

# The first fixture may have to build a Debian, and the package.
pytestmark = [pytest.mark.systemd, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
CONFIG = "/etc/spectrod/spectrod.toml"
UNIT = "spectrod.service"


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Make a folder with the package, and with one of a later version of the same files."""
    try:
        require_tools()
    except MissingToolError as error:
        pytest.fail(f"tests under a real systemd: {error}")
    folder = tmp_path_factory.mktemp("packages")
    tree = folder / "tree"
    # Not from the tree itself: another test may read the same files.
    subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
    quick = {**os.environ, "DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}
    made = subprocess.run(
        ["make", f"--directory={tree}", "deb"],
        env=quick,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, (made.stdout + made.stderr)[-4000:]
    (package,) = (tree / "dist").glob("*.deb")
    package.rename(folder / "first.deb")
    later = folder / "later"
    subprocess.run(["dpkg-deb", "--raw-extract", folder / "first.deb", later], check=True)
    control = later / "DEBIAN/control"
    text = control.read_text()
    version = f"Version: {spectrod.__version__}-1\n"
    assert version in text
    control.write_text(text.replace(version, f"Version: {spectrod.__version__}-2\n"))
    subprocess.run(
        ["dpkg-deb", "-Znone", "--build", "--root-owner-group", later, folder / "later.deb"],
        check=True,
        capture_output=True,
    )
    shutil.rmtree(later)
    shutil.rmtree(tree)
    return folder


@pytest.fixture(scope="module")
def machine(packages):
    """Boot a Debian into which the package has been installed."""
    with Machine({packages: "/packages"}) as machine:
        machine.run("dpkg", "--install", "/packages/first.deb")
        yield machine


def _property(machine, name):
    return machine.run("systemctl", "show", "--value", f"--property={name}", UNIT).stdout.strip()


def test_lintian_finds_nothing(packages):
    """Debian's checker has no error or warning that the package does not answer."""
    command = ["lintian", "--allow-root", "--fail-on=error,warning", packages / "first.deb"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.stdout, checked.returncode) == ("", 0)


def test_it_is_installed_and_does_not_start(machine):
    """The command is on the PATH; what could hear a microphone starts when it is told to."""
    version = machine.run("spectrod", "--version").stdout
    assert version == f"spectrod {spectrod.__version__}\n"
    assert _property(machine, "UnitFileState") == "disabled"
    assert _property(machine, "ActiveState") == "inactive"
    for unit in ("system/spectrod@.service", "user/spectrod.service"):
        path = machine.path("/usr/lib/systemd") / unit
        assert "ExecStart=/usr/bin/spectrod run" in path.read_text()
    assert machine.path("/usr/share/man/man1/spectrod-record.1.gz").exists()
    assert machine.path("/usr/share/doc/spectrod/operations.md.gz").exists()
    assert machine.path("/usr/share/doc/spectrod/examples/prometheus").is_dir()
    library = machine.path("/usr/lib/spectrod/lib")
    compiled = library.rglob("spectrod/daemon/__pycache__/daemon.*.pyc")
    assert list(compiled)


def test_its_kernels_and_files_serve(machine):
    """A recording is made by OpenCL with what the package and Debian bring."""
    machine.run("spectrod", "record", "signal:sine,1000,-20", "--duration=1", "-o/root/x.png")
    assert machine.path("/root/x.png").read_bytes().startswith(b"\x89PNG")
    assert "OpenCL" in machine.run("spectrod", "devices").stdout
    assert machine.run("spectrod", "selftest", "--engine=opencl").stdout


def test_an_upgrade_restarts_what_runs_and_keeps_edits(machine):
    """Install, edit, enable, start, upgrade: it runs again, with the edited configuration."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = machine.path(CONFIG)
    edited = path.read_text()
    for old, new in (('uri = "soundcard"', 'uri = "signal:sine,1000,-20"'), (":5556", f":{port}")):
        assert old in edited
        edited = edited.replace(old, new)
    path.write_text(edited)
    machine.run("systemctl", "enable", "--now", UNIT)
    before = _property(machine, "MainPID")

    machine.run("dpkg", "--install", "/packages/later.deb")

    assert _property(machine, "ActiveState") == "active"
    assert _property(machine, "MainPID") not in (before, "0")
    assert path.read_text() == edited
    machine.run("spectrod", "ctl", "status")
    machine.run("systemctl", "reload", UNIT)


def test_removing_stops_it_and_purging_leaves_nothing(machine):
    """Removing keeps configuration and state; purging takes them away."""
    machine.run("dpkg", "--install", "/packages/later.deb")
    machine.run("dpkg", "--remove", "spectrod")
    assert _property(machine, "ActiveState") in ("inactive", "failed")
    assert machine.path(CONFIG).exists()
    assert not machine.path("/usr/lib/spectrod").exists()
    machine.run("dpkg", "--purge", "spectrod")
    found = machine.run(
        *("find", "/etc", "/usr", "/var", "/run", "/lib", "-xdev", "-name", "*spectrod*"),
        *("-not", "-path", "/var/log/journal/*"),
    )
    assert found.stdout == ""
