"""Hook of mkdocs: pages from outside docs/, and links between them and those inside.

The root of the site is both the repository's and that of docs/: README.md becomes index.md,
`docs/x.md` becomes `x.md`. Folders that pages link to get an index of their files.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "LICENSE": "LICENSE",
    **{name: name for name in ("CONTRIBUTING.md", "CHANGELOG.md")},
    **{name: name for name in ("examples/README.md", "kernels/README.md")},
}
"""Files outside docs/ and what they are called on the site."""
FOLDERS = {"adr": ("Decisions", "md"), "schema": ("JSON Schemas", "json")}
"""Folders of docs/ that are linked to: title of the index, and suffix of the files."""

LINK = re.compile(r"(\]\()([^)\s:#]+)((?:#[^)]*)?\))")


def title_of(path: Path) -> str:
    """Return the title of a page, or the file's name if it has none."""
    first = path.read_text("utf-8").partition("\n")[0]
    return first.removeprefix("# ") if first.startswith("# ") else path.name


def index_of(folder: str) -> str:
    """Return a page that lists the files of a folder of docs/."""
    title, suffix = FOLDERS[folder]
    paths = sorted((ROOT / "docs" / folder).glob(f"*.{suffix}"))
    lines = [f"- [{title_of(path)}]({path.name})" for path in paths]
    return f"# {title}\n\n" + "\n".join(lines) + "\n"


def linked_results() -> set[str]:
    """Return the results of benchmarks that pages link to."""
    pages = (ROOT / "docs").glob("*.md")
    text = "\n".join(page.read_text("utf-8") for page in pages)
    return set(re.findall(r"\]\(\.\./(benchmarks/results/[^)]+)\)", text))


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the pages that are not in docs/."""
    for source, name in OUTSIDE.items() | {(name, name) for name in linked_results()}:
        content = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, name, content=content))
    for folder in FOLDERS:
        files.append(File.generated(config, f"{folder}/index.md", content=index_of(folder)))
    return files


def site_path(source: Path, target: str) -> str:
    """Return where the site has what a page links to, relative to the site's root."""
    path = (source.parent / target).resolve().relative_to(ROOT).as_posix()
    path = OUTSIDE.get(path, path).removeprefix("docs/")
    return f"{path}/index.md" if path in FOLDERS else path


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Change links that lead out of docs/ or into it to those of the site."""
    here = page.file.src_uri
    sources = {name: source for source, name in OUTSIDE.items()}
    source = ROOT / sources.get(here, f"docs/{here}")
    up = "../" * here.count("/")

    def change(link: re.Match[str]) -> str:
        return f"{link[1]}{up}{site_path(source, link[2])}{link[3]}"

    # Code keeps its brackets.
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(LINK.sub(change, part) if k % 2 == 0 else part for k, part in enumerate(parts))
