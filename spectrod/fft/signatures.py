"""Types of the transforms: what is given in single precision stays so, and devices' arrays too."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from pyopencl.array import Array

SingleArray: TypeAlias = NDArray[np.float16] | NDArray[np.float32] | NDArray[np.complex64]
_Length: TypeAlias = SupportsIndex | None
_Lengths: TypeAlias = Sequence[int] | None
_Axes: TypeAlias = Sequence[int]
_Out: TypeAlias = NDArray[Any] | None


class ToComplex(Protocol):
    """A transform along one axis whose results are complex."""

    @overload
    def __call__(
        self,
        a: SingleArray,
        n: _Length = None,
        axis: int = -1,
        norm: str | None = None,
        out: _Out = None,
    ) -> NDArray[np.complex64]: ...
    @overload
    def __call__(
        self,
        a: ArrayLike,
        n: _Length = None,
        axis: int = -1,
        norm: str | None = None,
        out: _Out = None,
    ) -> NDArray[np.complex128]: ...
    @overload
    def __call__(
        self,
        a: "Array",
        n: _Length = None,
        axis: int = -1,
        norm: str | None = None,
        out: "Array | None" = None,
    ) -> "Array": ...


class ToReal(Protocol):
    """A transform along one axis whose results are real."""

    @overload
    def __call__(
        self,
        a: SingleArray,
        n: _Length = None,
        axis: int = -1,
        norm: str | None = None,
        out: _Out = None,
    ) -> NDArray[np.float32]: ...
    @overload
    def __call__(
        self,
        a: ArrayLike,
        n: _Length = None,
        axis: int = -1,
        norm: str | None = None,
        out: _Out = None,
    ) -> NDArray[np.float64]: ...
    @overload
    def __call__(
        self,
        a: "Array",
        n: _Length = None,
        axis: int = -1,
        norm: str | None = None,
        out: "Array | None" = None,
    ) -> "Array": ...


class PlaneToComplex(Protocol):
    """A transform along two axes whose results are complex."""

    @overload
    def __call__(
        self, a: SingleArray, s: _Lengths = None, axes: _Axes = (-2, -1), norm: str | None = None
    ) -> NDArray[np.complex64]: ...
    @overload
    def __call__(
        self, a: ArrayLike, s: _Lengths = None, axes: _Axes = (-2, -1), norm: str | None = None
    ) -> NDArray[np.complex128]: ...
    @overload
    def __call__(
        self, a: "Array", s: _Lengths = None, axes: _Axes = (-2, -1), norm: str | None = None
    ) -> "Array": ...


class PlaneToReal(Protocol):
    """A transform along two axes whose results are real."""

    @overload
    def __call__(
        self, a: SingleArray, s: _Lengths = None, axes: _Axes = (-2, -1), norm: str | None = None
    ) -> NDArray[np.float32]: ...
    @overload
    def __call__(
        self, a: ArrayLike, s: _Lengths = None, axes: _Axes = (-2, -1), norm: str | None = None
    ) -> NDArray[np.float64]: ...
    @overload
    def __call__(
        self, a: "Array", s: _Lengths = None, axes: _Axes = (-2, -1), norm: str | None = None
    ) -> "Array": ...


def to_complex(function: Callable[..., Any]) -> ToComplex:
    """Return a function as it is, with the types of ``ToComplex``."""
    return cast("ToComplex", function)


def to_real(function: Callable[..., Any]) -> ToReal:
    """Return a function as it is, with the types of ``ToReal``."""
    return cast("ToReal", function)


def plane_to_complex(function: Callable[..., Any]) -> PlaneToComplex:
    """Return a function as it is, with the types of ``PlaneToComplex``."""
    return cast("PlaneToComplex", function)


def plane_to_real(function: Callable[..., Any]) -> PlaneToReal:
    """Return a function as it is, with the types of ``PlaneToReal``."""
    return cast("PlaneToReal", function)
