"""Make the pages of the documentation's site: those of docs/, and some from outside it.

    python scripts/site_pages.py build/site_pages

The root of the site is both the repository's and that of docs/: README.md becomes index.md,
`docs/x.md` becomes `x.md`. Links between both are changed accordingly. Folders that pages link to
get an index of their files.
"""

import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

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


def named_in(nav: object) -> set[str]:
    """Return the pages that a navigation names."""
    if isinstance(nav, str):
        return {nav}
    parts = nav.values() if isinstance(nav, dict) else nav
    assert isinstance(parts, Iterable)
    return set().union(*map(named_in, parts))


def left_out() -> list[str]:
    """Return the pages of docs/ that the navigation does not name: nobody would find them."""
    # The navigation alone: the rest of the file has tags of Python's.
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    named = named_in(yaml.safe_load("nav:" + text)["nav"])
    docs = ROOT / "docs"
    pages = (page.relative_to(docs) for page in docs.rglob("*.md"))
    listed = {str(page) for page in pages if page.parts[0] not in FOLDERS}
    return sorted(listed - named)


def site_path(source: Path, target: str) -> str:
    """Return where the site has what a page links to, relative to the site's root."""
    path = (source.parent / target).resolve().relative_to(ROOT).as_posix()
    path = OUTSIDE.get(path, path).removeprefix("docs/")
    return f"{path}/index.md" if path in FOLDERS else path


def on_site(markdown: str, here: str) -> str:
    """Change links of a page that lead out of docs/ or into it to those of the site."""
    sources = {name: source for source, name in OUTSIDE.items()}
    source = ROOT / sources.get(here, f"docs/{here}")
    up = "../" * here.count("/")

    def change(link: re.Match[str]) -> str:
        return f"{link[1]}{up}{site_path(source, link[2])}{link[3]}"

    # Code keeps its brackets.
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(LINK.sub(change, part) if k % 2 == 0 else part for k, part in enumerate(parts))


def write(folder: Path) -> None:
    """Write all pages to a folder, which is made again."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    for source, name in OUTSIDE.items() | {(name, name) for name in linked_results()}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, folder / name)
    for name in FOLDERS:
        (folder / name / "index.md").write_text(index_of(name), "utf-8")
    for page in folder.rglob("*.md"):
        text = on_site(page.read_text("utf-8"), page.relative_to(folder).as_posix())
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    if missing := left_out():
        sys.exit(f"mkdocs.yml: nav must name {', '.join(missing)}")
    write(Path(sys.argv[1]))
