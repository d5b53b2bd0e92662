"""The vocabulary page and the code: each name that it lists exists."""

import re
from pathlib import Path

import pytest

import spectrod

PACKAGE = Path(spectrod.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
HOUSE = (PACKAGE.parent / "docs" / "house.md").read_text(encoding="utf-8")
CELLS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith("|-")
]
NAMES = sorted(
    {name for row in CELLS if len(row) == 3 for name in re.findall(r"`([^`]+)`", row[2])}
)


def defines(name: str) -> bool:
    """Return whether ``a.b`` is a package or module of spectrod, or a class or function in one."""
    path = PACKAGE.joinpath(*name.split("."))
    if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
        return True
    module = path.parent.with_suffix(".py")
    return module.is_file() and bool(
        re.search(
            rf"^(class|def) {re.escape(path.name)}\b", module.read_text("utf-8"), re.MULTILINE
        )
    )


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_glossary_are_in_the_code(name):
    """Every module, class and function that the glossary names exists in the code."""
    assert defines(name), f"docs/glossary.md names {name}, which spectrod/ does not define"


def test_the_check_of_names_fails_for_unknown_ones():
    """The check of names fails for a missing module and for a missing class in a module."""
    assert not defines("dsp.blocks.NoSuchClass")
    assert not defines("no_such_module")


def test_each_term_is_explained_once():
    """Every term is listed once and has a meaning."""
    terms = [row[0] for row in CELLS if len(row) == 3]
    assert sorted(set(terms) - {"term"}) == sorted(term for term in terms if term != "term")
    assert all(row[1] for row in CELLS)


def test_each_room_is_in_the_plan_of_the_house():
    """The plan of the house has each package of the tree once, and no other."""
    listed = re.findall(r"^\| \d+ \| `(\w+)` \|", HOUSE, re.MULTILINE)
    assert sorted(listed) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
