"""Radial filters around frequency zero, and the texts that describe them."""

from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

from spectrod.lib.errors import ConfigError

Unit = Literal["cyc", "nyq"]
EdgeKind = Literal["ideal", "gauss", "butterworth", "cosine"]
EDGE_KINDS: tuple[EdgeKind, ...] = get_args(EdgeKind)

# Far beyond any picture; the squares stay within the range of float32.
_RADIUS_MIN, _RADIUS_MAX = 1e-6, 1e9


@dataclass(frozen=True, slots=True)
class Radius:
    """A spatial frequency, in every direction.

    Attributes
    ----------
    value : float
        1e-6 to 1e9.
    unit : {"cyc", "nyq"}
        Cycles along the image's longer side, or parts of the Nyquist frequency, which is half a
        cycle a pixel.

    Raises
    ------
    ConfigError
        If the value breaks the rule.
    """

    value: float
    unit: Unit = "cyc"

    def __post_init__(self) -> None:
        if not _RADIUS_MIN <= self.value <= _RADIUS_MAX:
            raise ConfigError(
                f"radius={self.value:g}: must be from {_RADIUS_MIN:g} to {_RADIUS_MAX:g}"
            )

    @classmethod
    def parse(cls, text: str) -> "Radius":
        """Parse ``32``, ``32cyc`` or ``0.25nyq``; ConfigError for other texts."""
        unit: Unit = "nyq" if text.endswith("nyq") else "cyc"
        try:
            value = float(text.removesuffix(unit))
        except ValueError:
            raise ConfigError(
                f"radius={text!r}: must be a number of cycles along the longer side, as 32 or "
                "32cyc, or of parts of Nyquist, as 0.25nyq"
            ) from None
        return cls(value, unit)

    def cycles(self, side: int) -> float:
        """Return the cycles along a longer side with a number of pixels."""
        return self.value if self.unit == "cyc" else self.value * side / 2.0


@dataclass(frozen=True, slots=True)
class Edge:
    """Transition of a filter from pass to stop; all but the ideal one pass half at the radius.

    Attributes
    ----------
    kind : {"ideal", "gauss", "butterworth", "cosine"}
        A step; 2^-(f / radius)^2; 1 / (1 + (f / radius)^(2 order)); half a period of a cosine.
    order : float
        Order of a Butterworth filter, > 0.
    width : Radius, optional
        Width of a cosine edge, from pass to stop.

    Raises
    ------
    ConfigError
        If a rule is broken.
    """

    kind: EdgeKind = "ideal"
    order: float = 1.0
    width: Radius | None = None

    def __post_init__(self) -> None:
        if self.kind not in EDGE_KINDS:
            raise ConfigError(f"edge={self.kind!r}: must be one of {', '.join(EDGE_KINDS)}")
        if not 0.0 < self.order <= 100.0:
            raise ConfigError(f"order={self.order:g}: must be more than 0, at most 100")
        if (self.width is None) == (self.kind == "cosine"):
            raise ConfigError(
                f"width={self.width}: must be given for a cosine edge, and only there"
            )

    @classmethod
    def parse(cls, text: str) -> "Edge":
        """Parse ``ideal``, ``gauss``, ``butterworth,ORDER`` or ``cosine,WIDTH``.

        Raises
        ------
        ConfigError
            If it is another text, or a rule is broken.
        """
        kind, comma, number = text.partition(",")
        if kind in ("ideal", "gauss") and not comma:
            return cls("ideal" if kind == "ideal" else "gauss")
        if kind == "cosine" and number:
            return cls("cosine", width=Radius.parse(number))
        if kind == "butterworth" and number:
            return cls("butterworth", order=_number(text, number))
        raise _edge_error(text)


def _number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise _edge_error(text) from None


def _edge_error(text: str) -> ConfigError:
    rule = "must be ideal, gauss, butterworth,ORDER or cosine,WIDTH"
    return ConfigError(f"edge={text!r}: {rule}")


@dataclass(frozen=True, slots=True)
class RadialFilter:
    """Filter that passes frequencies from ``inner`` to ``outer``.

    A low-pass has no inner radius, a high-pass no outer one. With the same edges, the low-pass and
    the high-pass of one radius add up to the image; so do the three parts of two radii.

    Attributes
    ----------
    inner, outer : Radius, optional
        At least one.
    edge : Edge
        Edge at both radii.

    Raises
    ------
    ConfigError
        If there is no radius.
    """

    inner: Radius | None = None
    outer: Radius | None = None
    edge: Edge = Edge()

    def __post_init__(self) -> None:
        if self.inner is None and self.outer is None:
            raise ConfigError("a filter without a radius: must have an inner or an outer one")

    @property
    def keeps_mean(self) -> bool:
        """Whether frequency zero, the image's mean, passes."""
        return self.inner is None

    def check(self, side: int) -> None:
        """Raise as ``cycles`` and ``shape`` if the filter does not fit an image's longer side."""
        self.cycles(side)
        self.shape(side)

    def cycles(self, side: int) -> tuple[float, float]:
        """Return inner and outer radius in cycles along the longer side of an image.

        Parameters
        ----------
        side : int
            Its length in pixels.

        Returns
        -------
        inner, outer : float
            0 and infinity for missing radii.

        Raises
        ------
        ConfigError
            If the inner radius is not below the outer one.
        """
        inner = self.inner.cycles(side) if self.inner else 0.0
        outer = self.outer.cycles(side) if self.outer else inf
        if inner >= outer:
            raise ConfigError(f"band={inner:g} {outer:g} cycles: must be two radii, lower first")
        return inner, outer

    def shape(self, side: int) -> float:
        """Return the edge's order, or its width in cycles along the longer side.

        Raises
        ------
        ConfigError
            If a cosine edge would reach below zero.
        """
        if self.edge.width is None:
            return self.edge.order
        width = self.edge.width.cycles(side)
        lowest = min(radius.cycles(side) for radius in (self.inner, self.outer) if radius)
        if width > 2.0 * lowest:
            raise ConfigError(
                f"width={width:g} cycles: must be at most twice the radius {lowest:g} cycles"
            )
        return width
