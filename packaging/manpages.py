"""Write the manual pages: ``python packaging/manpages.py FOLDER``.

``spectrod.1`` lists the commands, ``spectrod-COMMAND.1`` has the options of each, made from what
``--help`` prints, and ``spectrod.toml.5`` has the commented built-in configuration. The packages
are built with them. argparse-manpage was tried: lines of help that begin with a full stop, as
``.npz`` does, are lost in its pages.
"""

import argparse
import datetime as dt
import os
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import spectrod
from spectrod.cli import whole_parser

_HELP_ACTIONS = (argparse._HelpAction, argparse._VersionAction, argparse._SubParsersAction)
_EXIT_CODES = (
    ("0", "done"),
    ("2", "a mistake in the arguments or in the configuration"),
    ("65", "done, but input files were skipped or read in part"),
    ("69", "a device or service is missing"),
    ("70", "a defect of spectrod"),
    ("74", "storage: no space, no permission, an input or output error"),
    ("75", "try again later"),
    ("77", "access denied"),
    ("130", "interrupted"),
)


def main() -> int:
    """Write all pages to the folder that the first argument names."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


def pages() -> dict[str, str]:
    """Return the text of each page, by file name."""
    # Usage lines are wrapped to the terminal's width, which pages must not depend on.
    os.environ["COLUMNS"] = "80"
    parser = whole_parser()
    commands = _subparsers(parser)
    summaries = {choice.dest: choice.help or "" for choice in _summaries(parser)}
    found = {"spectrod.1": _main_page(parser, summaries)}
    for name, command in commands.items():
        found[f"spectrod-{name}.1"] = _command_page(command, f"spectrod-{name}", summaries[name])
    found["spectrod.toml.5"] = _configuration_page()
    return found


def _main_page(parser: argparse.ArgumentParser, summaries: dict[str, str]) -> str:
    lines = _head("spectrod", 1, "streaming audio spectrum analyzer")
    lines += _section("SYNOPSIS", [".B spectrod", ".RI [ options ]", ".I command", "\\&..."])
    lines += _section("DESCRIPTION", [_escaped(parser.description or "")])
    lines.append(".SH COMMANDS")
    for name, summary in summaries.items():
        lines += [".TP", f".BR spectrod\\-{_escaped(name)} (1)", _escaped(summary)]
    lines.append(".SH EXIT STATUS")
    for code, meaning in _EXIT_CODES:
        lines += [".TP", f".B {code}", meaning]
    lines += [".SH FILES"]
    for path, what in (
        ("/etc/spectrod/spectrod.toml", "configuration of the system service"),
        ("/etc/spectrod/conf.d/*.toml", "its drop-ins: later files win"),
        ("/etc/spectrod/NAME.toml", "configuration of the service spectrod@NAME"),
        ("~/.config/spectrod/spectrod.toml", "configuration of a user"),
        ("/usr/share/doc/spectrod/", "the documentation of the Debian package"),
    ):
        lines += [".TP", f".I {path}", what]
    lines += _see_also(["spectrod.toml(5)", *(f"spectrod-{name}(1)" for name in summaries)])
    return "\n".join(lines) + "\n"


def _command_page(parser: argparse.ArgumentParser, name: str, summary: str) -> str:
    lines = _head(name, 1, summary)
    lines += _section("SYNOPSIS", _usage(parser))
    lines += _section("DESCRIPTION", [_escaped(parser.description or "")])
    for group, actions in _groups(parser):
        lines.append(f".SH {_escaped(group.upper())}")
        lines += [line for action in actions for line in _option(parser, action)]
    subcommands = _subparsers(parser)
    if subcommands:
        lines.append(".SH SUBCOMMANDS")
        helps = {choice.dest: choice.help or "" for choice in _summaries(parser)}
        common = set(parser._option_string_actions)
        for subname, subparser in subcommands.items():
            lines += [f".SS {_escaped(subname)}", _escaped(helps.get(subname, ""))]
            lines += [".PP", *_usage(subparser)]
            for _, actions in _groups(subparser):
                # Those of the command are above.
                own = [a for a in actions if not set(a.option_strings) & common]
                lines += [line for action in own for line in _option(subparser, action)]
    if parser.epilog:
        lines += _section("NOTES", [_escaped(parser.epilog)])
    lines += _see_also(["spectrod(1)", "spectrod.toml(5)"])
    return "\n".join(lines) + "\n"


def _configuration_page() -> str:
    text = files("spectrod.config").joinpath("default.toml").read_text(encoding="utf-8")
    lines = _head("spectrod.toml", 5, "configuration of spectrod")
    lines += _section(
        "DESCRIPTION",
        [
            "TOML.",
            "Every key may be left out; below is what holds then.",
            ".PP",
            ".nf",
            *(_escaped(line) for line in text.splitlines()),
            ".fi",
        ],
    )
    lines += _see_also(["spectrod-config(1)", "spectrod-run(1)"])
    return "\n".join(lines) + "\n"


def _head(name: str, section: int, summary: str) -> list[str]:
    # Builds that are repeated give the same bytes: reproducible-builds.org, SOURCE_DATE_EPOCH.
    made_s = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    date = dt.datetime.fromtimestamp(made_s, dt.UTC).date()
    title = f'.TH {_escaped(name.upper())} {section} {date} "spectrod {spectrod.__version__}"'
    return [title, ".SH NAME", f"{_escaped(name)} \\- {_escaped(summary)}"]


def _section(title: str, lines: list[str]) -> list[str]:
    return [f".SH {title}", *lines]


def _see_also(names: list[str]) -> list[str]:
    pages = [(name[:-3], name[-3:]) for name in names]
    lines = [
        f".BR {_escaped(page)} {section}{',' if index < len(pages) - 1 else ''}"
        for index, (page, section) in enumerate(pages)
    ]
    return _section("SEE ALSO", lines)


def _usage(parser: argparse.ArgumentParser) -> list[str]:
    usage = parser.format_usage().removeprefix("usage: ").rstrip("\n")
    return [".nf", *(_escaped(line) for line in usage.splitlines()), ".fi"]


def _groups(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, list[argparse.Action]]]:
    for group in parser._action_groups:
        actions = [
            action
            for action in group._group_actions
            if not isinstance(action, _HELP_ACTIONS) and action.help != argparse.SUPPRESS
        ]
        if actions:
            title = group.title or "options"
            yield ("arguments" if title == "positional arguments" else title), actions


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> list[str]:
    formatter = parser._get_formatter()
    heading = _escaped(formatter._format_action_invocation(action))
    text = formatter._expand_help(action) if action.help else ""
    return [".TP", f"\\fB{heading}\\fR", _escaped(" ".join(text.split()))]


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _summaries(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return list(action._choices_actions)
    return []


def _escaped(text: str) -> str:
    """Return ``text`` as roff prints it: hyphens are ASCII, no line begins with a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


if __name__ == "__main__":
    raise SystemExit(main())
