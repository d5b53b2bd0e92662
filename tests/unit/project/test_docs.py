"""The documentation: links lead somewhere, commands have the options shown, pictures stay small."""

import re
import shlex
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from spectrod.cli import main, whole_parser
from spectrod.lib.errors import ConfigError

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    if path.name != "CHANGELOG.md"
)
PICTURES = sorted(ROOT.glob("docs/pictures/*.png"))
PICTURE_BYTES = 200_000
PICTURES_BYTES = 1_500_000

FENCE = re.compile(r"^( *)(```+|~~~+) *(\w*)[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
PARSER = whole_parser()


def name_of(page: Path) -> str:
    """Return the page's path in the repository."""
    return str(page.relative_to(ROOT))


def prose(text: str) -> str:
    """Return Markdown without its code, in which brackets are no links."""
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", FENCE.sub("", text), flags=re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub and the site make them."""
    counts: Counter[str] = Counter()
    found = set()
    for line in FENCE.sub("", text).splitlines():
        if match := re.match(r"#{1,6} +(.+?) *#*$", line):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            found.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
            counts[slug] += 1
    return found


def dead_links(page: Path) -> list[str]:
    """Return the relative links of a page that have no target in the tree."""
    dead = []
    for target in LINK.findall(prose(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = page.parent / path if path else page
        if not there.exists() or (anchor and anchor not in anchors(there.read_text("utf-8"))):
            dead.append(target)
    return dead


def commands(text: str) -> list[str]:
    """Return the calls of spectrod in the shell blocks of a page, each without redirections."""
    found = []
    for _, _, language, block in FENCE.findall(text):
        if language not in ("", "sh", "console"):
            continue
        for line in re.sub(r" *\\\n *", " ", block).splitlines():
            # With prompts, the other lines are output.
            if line.startswith("$ ") or "\n$ " not in f"\n{block}":
                words = line.removeprefix("$ ").strip().removeprefix("sudo ")
                found += [words] if words.startswith("spectrod ") else []
    return found


def arguments(command: str) -> list[str]:
    """Return the arguments of the first program of a shell command."""
    lexer = shlex.shlex(re.sub(r"\d>", ">", command), posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if set(word) <= set("|;&<>"):
            break
        words.append(word)
    return words[1:]


def unknown_commands(text: str) -> list[str]:
    """Return the commands of a page that the program refuses for their words."""
    refused = []
    for command in commands(text):
        try:
            PARSER.parse_args(arguments(command))
        except ConfigError as error:
            refused.append(f"{command}: {error}")
    return refused


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_relative_link_has_a_target(page):
    """Each file, folder and heading that a page links to exists."""
    assert dead_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_command_is_one_that_the_program_takes(page):
    """Each `spectrod ...` in a shell block has a command and options that exist."""
    assert unknown_commands(page.read_text("utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_configuration_is_toml(page):
    """Each block of configuration can be read as TOML."""
    for _, _, language, block in FENCE.findall(page.read_text("utf-8")):
        if language == "toml":
            tomllib.loads(block)


def test_the_tutorials_configuration_is_right(tmp_path, capsys):
    """`spectrod config check` finds no mistake in the configuration of the service's tutorial."""
    text = (ROOT / "docs/tutorials/unattended.md").read_text("utf-8")
    (block,) = [block for _, _, language, block in FENCE.findall(text) if language == "toml"]
    path = tmp_path / "spectrod.toml"
    path.write_text(block)
    assert main(["config", "check", str(path)]) == 0
    assert f"{path}: right" in capsys.readouterr().out


def test_the_check_of_links_finds_missing_files_and_headings(tmp_path):
    """A missing file and a missing heading are found; code, repeated headings and URLs are not."""
    page = tmp_path / "page.md"
    page.write_text(
        "# One `a.b`: two\n## Same\n## Same\n[a](#one-ab-two) [b](#same-1) [c](#same-2)\n"
        "[d](gone.md) [e](https://example.org/x) `[f](no.md)`\n```\n[g](no.md)\n```\n"
    )
    assert dead_links(page) == ["#same-2", "gone.md"]


def test_the_check_of_commands_finds_unknown_options():
    """An option that does not exist is found, also behind a continued line; comments are not."""
    text = (
        "```sh\nspectrod record a.wav \\\n    -o a.png --colour red  # why\n"
        "spectrod levels a.wav > b\n```\n"
        "```toml\nspectrod nonsense\n```\n"
    )
    (refused,) = unknown_commands(text)
    assert "--colour: no such option" in refused


def test_pictures_are_small_and_used():
    """Each picture of the documentation is small, all together too, and a page shows it."""
    sizes = {path.name: path.stat().st_size for path in PICTURES}
    assert all(size < PICTURE_BYTES for size in sizes.values()), sizes
    assert sum(sizes.values()) < PICTURES_BYTES
    shown = {
        Path(target).name for page in PAGES for target in LINK.findall(page.read_text("utf-8"))
    }
    assert set(sizes) <= shown
