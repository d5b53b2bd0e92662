"""Tables of the documentation have every command of the program and every key of the settings."""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement

from spectrod.cli import whole_parser
from spectrod.config.settings import Config
from spectrod.lib.optional_packages import PACKAGES

DOCS = Path(__file__).parents[3] / "docs"
# A parser's list of subcommands has no public name.
COMMANDS = next(action.choices for action in whole_parser()._actions if action.dest == "command")
ROWS = {
    match[1]: set(re.findall(r"`(\w+)`", match[2])) | ({"name"} if ".NAME" in match[1] else set())
    for match in re.finditer(
        r"^\| `\[([\w.]+)\]`.*? \| (.*) \|$",
        (DOCS / "configuration.md").read_text("utf-8"),
        re.MULTILINE,
    )
}


def structs() -> dict[str, type[msgspec.Struct]]:
    """Return the struct of each section; those of named tables are items of a tuple."""
    found = {}
    for field in msgspec.structs.fields(Config):
        inside = getattr(field.type, "__args__", None)
        found[f"{field.name}.NAME" if inside else field.name] = inside[0] if inside else field.type
    return found


def keys(struct: type[msgspec.Struct]) -> set[str]:
    """Return the names of a struct's fields."""
    return {field.encode_name for field in msgspec.structs.fields(struct)}


def test_each_section_has_a_row():
    """The table of sections has those that exist, and no others."""
    assert set(ROWS) == set(structs())


@pytest.mark.parametrize(
    "section", [name for name in structs() if name not in ("sources.NAME", "products.NAME")]
)
def test_each_key_is_in_its_row(section):
    """The row of a section has its keys, and no others."""
    assert ROWS[section] == keys(structs()[section])


def test_each_command_has_a_row():
    """The table of commands has those that exist, and no others."""
    text = (DOCS / "commands.md").read_text("utf-8")
    assert set(re.findall(r"^\| `spectrod (\w+)", text, re.MULTILINE)) == set(COMMANDS)


def test_each_extra_has_its_row():
    """The table of extras has those of the package, each with what it installs."""
    text = (DOCS / "packages.md").read_text("utf-8").partition("## Extras")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", text, re.MULTILINE)
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {
        name: {Requirement(wanted).name for wanted in packages}
        for name, packages in project["optional-dependencies"].items()
    }
    assert {name: set(packages.split(", ")) for name, packages in rows} == extras
    assert set(PACKAGES) == set(extras) - {"bench"}
