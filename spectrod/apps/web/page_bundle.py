"""The page's modules as one: a browser then waits for one answer, not for rounds of them.

Those that a page loads later, by ``import("./path.js")``, are another one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
_LATER: Final = re.compile(r'(?<!await )\bimport\("(\.[^"]*)"\)')
_OTHERWISE: Final = re.compile(r"^(?:import|export)\b.*|\bimport(?:\(|\.meta).*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A module that is joined from others, and those that it loads later, by their file names."""

    text: str
    later: Mapping[str, str]


def bundle(
    modules: Mapping[str, str], first: str, name: Callable[[str, str], str] = lambda path, _: path
) -> Bundle:
    """Return one module that does what a module and all that it imports do, in the same order.

    Each module is a function of its own, called once, so that no two names meet. It follows those
    that it imports, its path in a comment before it; comments, empty lines and indentations are
    left out. What is loaded later has the modules that the first one has not, and gets from it
    those that both need.

    Parameters
    ----------
    modules : mapping of str to str
        Source texts by path.
    first : str
        Path of the module that a page loads.
    name : callable
        Gives the file name of a module that is loaded later from its path and its joined text;
        the file lies beside the first one's.

    Raises
    ------
    ValueError
        If a module is missing, imports itself by way of others, or imports or exports in a form
        other than ``import { a, b as c } from "./path.js";``, ``import("./path.js")`` without
        ``await``, which those that are loaded later must not have, and ``export const``,
        ``function``, ``async function`` or ``class``.
    """
    order: dict[str, str] = {}
    _add(modules, first, order, ())
    text = _joined(order)
    later: dict[str, str] = {}
    for path in dict.fromkeys(there for one in order for there in _found(_LATER, 1, modules, one)):
        made, shared = _loaded_later(modules, path, order)
        file = name(path, made)
        later[file] = made
        call = f'import("./{file}").then(({{ join }}) => join({", ".join(shared)}))'
        text = text.replace(f'import("{path}")', call)
    return Bundle(text, later)


def _joined(order: Mapping[str, str]) -> str:
    return "".join(f"// {path}\n{text}" for path, text in order.items())


def _found(form: re.Pattern[str], group: int, modules: Mapping[str, str], path: str) -> list[str]:
    """Return the paths that a module names in a form, which has them in a group."""
    text = _UNSENT.sub(_text_alone, modules[path])
    return [_resolved(path, found[group]) for found in form.finditer(text)]


def _loaded_later(
    modules: Mapping[str, str], path: str, before: Mapping[str, str]
) -> tuple[str, list[str]]:
    """Return a module that is loaded later, and the constants of the first one that it takes.

    Its function ``join`` returns the same each time, as an import does.
    """
    if path in before:
        raise ValueError(f"{path}: is imported, and loaded later: no form that can be joined")
    order = dict(before)
    _add(modules, path, order, ())
    own = {there: text for there, text in order.items() if there not in before}
    nested = [there for module in own for there in _found(_LATER, 1, modules, module)]
    if nested:
        raise ValueError(f"{path}: loads {nested[0]} later: no form that can be joined")
    wanted = {there for module in own for there in _found(_IMPORT, 2, modules, module)}
    shared = [_constant(number) for number, there in enumerate(before) if there in wanted]
    last = _constant(list(order).index(path))
    head = f"let made;\nexport const join = ({', '.join(shared)}) => (made ??= (() => {{\n"
    return f"{head}{_joined(own)}return {last};\n}})());\n", shared


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
    other = _OTHERWISE.search(_LATER.sub("", body))
    if other:
        raise ValueError(f"{path}: {other[0]!r}: no form that can be joined")
    body = _LATER.sub(lambda found: f'import("{_resolved(path, found[1])}")', body)
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
