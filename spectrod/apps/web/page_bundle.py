"""The page's modules as one: a browser then waits for one answer, not for rounds of them."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

_IMPORT: Final = re.compile(r'^import \{([^{}"]*)\} from "(\.[^"]*)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?:async )?(?:const|function|class) (\w+)", re.MULTILINE)
_UNSENT: Final = re.compile(
    r"(`[^`]*`)|^[ \t]*(?:/\*\*.*?\*/|//[^\n]*)?\n|^[ \t]+|(?<=[;,{]) //[^\n\"'`]*$",
    re.MULTILINE | re.DOTALL,
)
"""A comment, an empty line, an indentation; or a text, which has none of them.

A comment behind code has no quotes, so that it is none in a text.
"""
_UNSENT_STYLE: Final = re.compile(r'("[^"]*")|/\*.*?\*/\n?|^\s+', re.MULTILINE | re.DOTALL)
_OTHERWISE: Final = re.compile(r"^(?:import|export)\b.*|\bimport(?:\(|\.meta).*", re.MULTILINE)


def bundle(modules: Mapping[str, str], first: str) -> str:
    """Return one module that does what a module and all that it imports do, in the same order.

    Each module is a function of its own, called once, so that no two names meet. It follows those
    that it imports, its path in a comment before it; comments, empty lines and indentations are
    left out.

    Parameters
    ----------
    modules : mapping of str to str
        Source texts by path.
    first : str
        Path of the module that a page loads.

    Raises
    ------
    ValueError
        If a module is missing, imports itself by way of others, or imports or exports in a form
        other than ``import { a, b as c } from "./path.js";`` and ``export const``, ``function``,
        ``async function`` or ``class``.
    """
    order: dict[str, str] = {}
    _add(modules, first, order, ())
    return "".join(f"// {path}\n{text}" for path, text in order.items())


def short_style(style: str) -> str:
    """Return a style sheet without comments, empty lines and indentations."""
    return _UNSENT_STYLE.sub(_text_alone, style)


def _text_alone(found: re.Match[str]) -> str:
    return found[1] or ""


def _add(
    modules: Mapping[str, str], path: str, order: dict[str, str], above: tuple[str, ...]
) -> None:
    """Add a module after all that it imports."""
    if path in order:
        return
    if path in above:
        raise ValueError(f"{path}: imports itself by way of {above[-1]}")
    if path not in modules:
        raise ValueError(
            f"{path}: no such module, imported by {above[-1] if above else 'the page'}"
        )
    text = _UNSENT.sub(_text_alone, modules[path])
    for _, there in _IMPORT.findall(text):
        _add(modules, _resolved(path, there), order, (*above, path))
    order[path] = _wrapped(path, text, list(order))


def _wrapped(path: str, text: str, before: list[str]) -> str:
    """Return a module as the constant of what it exports, after those ``before``."""
    exported = ", ".join(_EXPORT.findall(text))

    def of_constant(found: re.Match[str]) -> str:
        names = re.sub(r"(\w+)\s+as\s+(\w+)", r"\1: \2", found[1])
        return f"const {{{names}}} = {_constant(before.index(_resolved(path, found[2])))};\n"

    body = _IMPORT.sub(of_constant, text)
    body = _EXPORT.sub(lambda found: found[0].removeprefix("export "), body)
    other = _OTHERWISE.search(body)
    if other:
        raise ValueError(f"{path}: {other[0]!r}: no form that can be joined")
    return f"const {_constant(len(before))} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"


def _resolved(path: str, there: str) -> str:
    """Return the path of a module that another one names."""
    parts: list[str] = []
    for part in (PurePosixPath(path).parent / there).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _constant(number: int) -> str:
    """Return the name of the constant of a module by its place: shorter than its path."""
    return f"${number}"
