"""What notebooks show: pictures of matplotlib's figures, which pyplot does not know, and tables."""

import io
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from spectrod.lib.optional_packages import need

_DPI: Final = 100


class Drawn:
    """Has ``values`` and ``plot()``: a notebook shows the picture, and below it the ``repr``."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def values(self) -> Any:
            """What is drawn, an array."""

        def plot(self, ax: Any = None) -> Any:
            """Draw into axes of matplotlib, or of a new figure; returns them."""

    def _repr_png_(self) -> bytes | None:
        """Return the picture for notebooks; None without values, or without matplotlib."""
        if not self.values.size or find_spec("matplotlib") is None:
            return None
        return png_of(self.plot().figure)

    def _repr_html_(self) -> str | None:
        """Return the picture with the ``repr`` below it, where there is one."""
        return self._html_of(self._repr_png_())

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """Return both, of which IPython would draw each by itself."""
        picture = self._repr_png_()
        return (
            {} if picture is None else {"image/png": picture, "text/html": self._html_of(picture)}
        )

    def _html_of(self, picture: bytes | None) -> str | None:
        if picture is None:
            return None
        from base64 import b64encode  # noqa: PLC0415 - a client without a notebook needs neither
        from html import escape  # noqa: PLC0415

        data = b64encode(picture).decode()
        image = f'<img alt="" src="data:image/png;base64,{data}">'
        return f"<figure>{image}<figcaption>{escape(repr(self))}</figcaption></figure>"


def show_figure(shown: Any, figure: Any) -> Any:
    """Return an object that a notebook shows as the picture of a figure; it stays as it is.

    Notebooks draw the figures of pyplot alone, and print the others as text.

    Parameters
    ----------
    shown : matplotlib.figure.Figure or matplotlib.axes.Axes
        What a cell may end with: the figure, or its axes.
    figure : matplotlib.figure.Figure
    """
    shown._repr_png_ = partial(png_of, figure)
    return shown


def png_of(figure: Any) -> bytes:
    """Return a figure as PNG, at 100 pixels per inch."""
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=_DPI)
    return memory.getvalue()


def axes_for(ax: Any = None) -> Any:
    """Return axes of matplotlib: those that are given, or those of a new figure.

    Raises
    ------
    UnavailableError
        If matplotlib is not installed: ``pip install 'spectrod[plot]'``.
    """
    need("matplotlib", "plot")
    if ax is not None:
        return ax
    figure = import_module("matplotlib.figure").Figure((8.0, 4.0), layout="constrained")
    return show_figure(figure.subplots(), show_figure(figure, figure))


def html_table(caption: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table for notebooks, all of whose texts are escaped."""
    from html import escape  # noqa: PLC0415 - as above

    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )
