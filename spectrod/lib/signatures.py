"""Signatures as ``help()`` shows them."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args

from numpy.typing import ArrayLike

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Named:
    """An annotation that is shown as its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


def naming_arrays(function: _Function) -> _Function:
    """Decorate a function so that its signature says ``ArrayLike``, not the types of which it is.

    NumPy's ``ArrayLike`` is a union of private types, which fills ten lines.
    """
    function.__signature__ = with_arrays_named(  # type: ignore[attr-defined]  # inspect reads it
        inspect.signature(function)
    )
    return function


def with_arrays_named(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature in which ``ArrayLike`` has its name, alone and in unions."""
    return signature.replace(
        parameters=[
            one.replace(annotation=_named(one.annotation)) for one in signature.parameters.values()
        ]
    )


def _named(annotation: Any) -> Any:
    members, whole = get_args(ArrayLike), get_args(annotation)
    if not members or not set(members) <= set(whole):
        return annotation
    first = whole.index(members[0])
    others = [one for one in whole[first:] if one not in members]
    before, after = (map(_text, part) for part in (whole[:first], others))
    return _Named(" | ".join([*before, "ArrayLike", *after]))


def _text(annotation: Any) -> str:
    return "None" if annotation is type(None) else inspect.formatannotation(annotation)
