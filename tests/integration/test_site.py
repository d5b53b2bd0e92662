"""The documentation as a site: it builds strictly and loads nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.extended
def test_the_site_builds_strictly_and_is_complete_in_itself(tmp_path):
    """Each page and link is known; no page has a script, style or picture from elsewhere."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(list(ROOT.glob("docs/*.md")))
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]* src=\"?(\S+?)[\" >]|<link[^>]* href=\"?(\S+?)[\" >]"
    )
    targets = {"".join(found) for page in pages for found in loaded.findall(page.read_text())}
    assert any(target.endswith(".css") for target in targets)
    assert not [target for target in targets if re.match(r"(https?:)?//", target)]
