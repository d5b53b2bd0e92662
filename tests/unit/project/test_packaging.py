"""What the packages are made from agrees with the project."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import spectrod
from spectrod.cli import whole_parser

ROOT = Path(__file__).parents[3]
# A parser's list of subcommands has no public name.
COMMANDS = next(action.choices for action in whole_parser()._actions if action.dest == "command")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the text of each manual page, by file name."""
    folder = tmp_path_factory.mktemp("man")
    subprocess.run(
        [sys.executable, ROOT / "packaging/manpages.py", folder],
        env={"SOURCE_DATE_EPOCH": "86400"},
        check=True,
    )
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_the_lock_file_holds_what_the_project_asks_for():
    """Each dependency, and each of the packages' extras, is locked in a version that it admits."""
    text = (ROOT / "packaging/requirements.lock").read_text()
    locked = {}
    for line in text.splitlines():
        if re.match(r"[a-z0-9]", line):
            one = Requirement(line.rstrip(" \\"))
            locked.setdefault(canonicalize_name(one.name), []).append(one)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    packaged = ("mqtt", "fast", "netcdf", "web")
    asked = [*project["dependencies"], *(one for name in packaged for one in extras[name])]
    for wanted in map(Requirement, asked):
        for one in locked[canonicalize_name(wanted.name)]:
            (version,) = one.specifier
            assert wanted.specifier.contains(version.version), wanted


def test_the_debian_package_has_the_programs_version():
    """The changelog, from which Debian takes the version, names the program's."""
    first = (ROOT / "packaging/debian/changelog").read_text().splitlines()[0]
    assert first.startswith(f"spectrod ({spectrod.__version__}-")


def test_each_command_has_a_manual_page(pages):
    """Beside the main page and that of the configuration, there is one for each command."""
    names = {f"spectrod-{name}.1" for name in COMMANDS}
    assert set(pages) == names | {"spectrod.1", "spectrod.toml.5"}
    assert all(text.startswith(".TH ") and " 1970-01-02 " in text for text in pages.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_pages_have_each_option(pages, command):
    """Each option that --help shows is in the page, and no line is lost as a roff request."""
    page = pages[f"spectrod-{command}.1"]
    known = {"B", "BR", "I", "TH", "SH", "SS", "TP", "PP", "nf", "fi"}
    requests = {line[1:].split(" ")[0] for line in page.splitlines() if line.startswith(".")}
    assert requests <= known
    assert not any(line.startswith("'") for line in page.splitlines())
    for action in COMMANDS[command]._actions:
        for option in action.option_strings:
            if option not in ("-h", "--help") and action.help != "==SUPPRESS==":
                assert option.replace("-", r"\-") in page


def test_the_page_of_the_configuration_holds_it_all(pages):
    """Each line of the built-in configuration is in the page, escaped."""
    text = (ROOT / "spectrod/config/default.toml").read_text()
    printed = pages["spectrod.toml.5"].replace(r"\-", "-").replace(r"\e", "\\").replace(r"\&", "")
    assert text in printed
