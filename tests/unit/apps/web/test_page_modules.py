"""The page's modules without a browser: Node runs tests/page, and Python compares its tables."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
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


PARSE = """
import { readFileSync } from "node:fs";
import { SourceTextModule } from "node:vm";
for (const path of process.argv.slice(1)) {
  try {
    new SourceTextModule(readFileSync(path, "utf8"));
  } catch (error) {
    console.error(`${path}: ${error}`);
    process.exitCode = 1;
  }
}
"""


def parse(*paths):
    options = ["--experimental-vm-modules", "--no-warnings", "--input-type=module"]
    command = [node(), *options, "--eval", PARSE, "--", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_every_module_is_read(tmp_path):
    """Node can parse every module that the page has, and names those that it cannot."""
    done = parse(*sorted((ROOT / "spectrod" / "apps" / "web" / "page").rglob("*.js")))
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "wrong.js").write_text("export const a = ;")
    done = parse(tmp_path / "wrong.js")
    assert done.returncode == 1
    assert "wrong.js: SyntaxError" in done.stderr


def test_colour_maps_are_those_of_pictures():
    """The page's colour maps are, byte for byte, written from the tables that pictures use."""
    make = module(PAGE_TESTS / "make_colormaps.py")
    assert make.PATH.read_text(encoding="ascii") == make.text()
