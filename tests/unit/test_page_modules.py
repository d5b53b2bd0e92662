"""The page's modules without a browser: Node runs tests/page, and Python compares its tables."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE_TESTS = ROOT / "tests" / "page"


def node():
    found = shutil.which("node")
    if found is None:
        pytest.fail("the page's tests need node: make test installs Debian's nodejs")
    return found


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize("path", sorted(PAGE_TESTS.glob("*.test.js")), ids=lambda path: path.name)
def test_of_the_page(path):
    """Node's tests of one module of the page succeed, and there is at least one."""
    command = [node(), "--test", "--test-reporter=tap", str(path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "\n# fail 0\n" in done.stdout
    assert "\n# pass 0\n" not in done.stdout


def test_every_module_is_read():
    """Node can parse every module that the page has."""
    for path in sorted((ROOT / "spectrod" / "web" / "page").glob("*.js")):
        command = [node(), "--check", "--input-type=module"]
        done = subprocess.run(
            command, input=path.read_text(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{path.name}: {done.stderr}"


def test_colour_maps_are_those_of_pictures():
    """The page's colour maps are, byte for byte, written from the tables that pictures use."""
    make = module(PAGE_TESTS / "make_colormaps.py")
    assert make.PATH.read_text(encoding="ascii") == make.text()
