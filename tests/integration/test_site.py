"""The documentation as a site: it builds strictly and loads nothing from elsewhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(folder, *command):
    """Run a module or script of Python's in a folder; return what it did."""
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def pages(tmp_path):
    """Make the folder with the pages and the site's settings; return that of the pages."""
    done = run(ROOT, "scripts/site_pages.py", tmp_path / "build/site_pages")
    assert done.returncode == 0, done.stderr
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    return tmp_path / "build/site_pages"


@pytest.mark.extended
def test_the_site_builds_strictly_and_is_complete_in_itself(pages, tmp_path):
    """Each page and link is known; no page has a script, style or picture from elsewhere."""
    done = run(tmp_path, "-m", "zensical", "build", "--strict")
    assert done.returncode == 0, done.stdout + done.stderr
    found = list((tmp_path / "site").rglob("*.html"))
    assert len(found) > len(list(pages.glob("*.md")))
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]* src=\"?(\S+?)[\" >]|<link[^>]* href=\"?(\S+?)[\" >]"
    )
    targets = {"".join(target) for page in found for target in loaded.findall(page.read_text())}
    assert any(target.endswith(".css") for target in targets)
    assert not [target for target in targets if re.match(r"(https?:)?//", target)]


@pytest.mark.extended
def test_links_to_nothing_are_found(pages, tmp_path):
    """Strictly, a build fails for links to a page or a heading that is not there."""
    (pages / "view.md").write_text("# View\n\n[one](nowhere.md), [other](web.md#nothing)\n")
    done = run(tmp_path, "-m", "zensical", "build", "--strict")
    assert done.returncode != 0
    for problem in ("page does not exist", "anchor does not exist"):
        assert problem in done.stdout + done.stderr
