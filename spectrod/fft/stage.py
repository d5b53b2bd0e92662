"""The one interface between plans and kernels: a stage transforms lines of a device array.

A kernel family (``spectrod.fft.local``, ``spectrod.analysis.stft.stft_local``, ...) offers a
``Family``: what it can do, the parameters for a device that a tuner may try, its own choice first,
and the stage itself. Plans are made of stages and know nothing of kernels.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from spectrod.lib.errors import ConfigError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

Kind = Literal["c2c", "r2c", "c2r"]
Precision = Literal["single", "double"]

TunedKind = Literal["c2c", "r2c", "c2r", "stft", "stft-iq"]
"""What can be tuned: transforms, and spectra of frames of real and of I/Q samples."""

Key = tuple[int, TunedKind, Precision]
"""What a tuner's result is for: length, kind and precision."""

LENGTH_MAX = 1 << 26
"""Longest transform."""


@dataclass(frozen=True, slots=True)
class TransformSpec:
    """What a stage computes, for every line alike.

    Attributes
    ----------
    n : int
        Length of the transform, 1 to ``LENGTH_MAX``. Of a real transform: of its real side.
    kind : {"c2c", "r2c", "c2r"}
        Complex to complex; real to the n // 2 + 1 bins of its half spectrum; and back, where the
        imaginary parts of bin 0 and of an even n's bin n / 2 are taken as zero.
    inverse : bool
        Sign of the exponent: ``exp(-2 pi i j k / n)`` forward, plus inverse. r2c is forward, c2r
        inverse. No transform scales by itself.
    precision : {"single", "double"}
        float32 or float64 in memory and in arithmetic.

    Raises
    ------
    ConfigError
        If a rule is broken.
    """

    n: int
    kind: Kind = "c2c"
    inverse: bool = False
    precision: Precision = "single"

    def __post_init__(self) -> None:
        if not 1 <= self.n <= LENGTH_MAX:
            raise ConfigError(f"n={self.n}: must be 1 to {LENGTH_MAX}")
        if self.kind != "c2c" and self.inverse != (self.kind == "c2r"):
            raise ConfigError(f"inverse={self.inverse}: r2c is forward, c2r is inverse")

    @property
    def key(self) -> Key:
        """What a result of the tuner is for; both directions of c2c share it."""
        return self.n, self.kind, self.precision

    @property
    def n_in(self) -> int:
        """Values of a line that are read."""
        return self.n // 2 + 1 if self.kind == "c2r" else self.n

    @property
    def n_out(self) -> int:
        """Values of a line that are written."""
        return self.n // 2 + 1 if self.kind == "r2c" else self.n

    @property
    def complex_length(self) -> int:
        """Length of the complex transform that a line takes: half of n for an even real one."""
        return self.n if self.kind == "c2c" else self.n // 2

    @property
    def real_bytes(self) -> int:
        """Bytes of a real number."""
        return 4 if self.precision == "single" else 8

    @property
    def in_value_bytes(self) -> int:
        """Bytes of a value that is read."""
        return self.real_bytes * (1 if self.kind == "r2c" else 2)

    @property
    def out_value_bytes(self) -> int:
        """Bytes of a value that is written."""
        return self.real_bytes * (1 if self.kind == "c2r" else 2)


@dataclass(frozen=True, slots=True)
class Lines:
    """Where an array (outer, n, inner) of real or complex values lies in a buffer.

    Value e of line (o, i) is the one numbered ``first + o * pitch + e * inner + i``; lines are
    along the middle axis. Complex values are interleaved. All counts are in values, not bytes.

    Attributes
    ----------
    buffer : pyopencl.Buffer
        Device memory.
    pitch : int
        From one outer index to the next; for a dense array ``n * inner``.
    first : int
        The array's first value.
    """

    buffer: Any
    pitch: int
    first: int = 0


def as_pairs(lines: Lines) -> Lines | None:
    """Return real lines as complex ones; None unless every line starts at an even place."""
    if lines.first % 2 or lines.pitch % 2:
        return None
    return Lines(lines.buffer, lines.pitch // 2, lines.first // 2)


class Stage(Protocol):
    """A transform of one spec, compiled for one device; one thread at a time.

    Attributes
    ----------
    spec : TransformSpec
        What it computes.
    strided : bool
        Whether inner may be more than 1; if not, the caller transposes.
    """

    spec: TransformSpec
    strided: bool

    def scratch_bytes(self, outer: int, inner: int) -> int:
        """Bytes of device memory that ``launch`` needs beside its input and output; 0 for none."""
        ...

    def launch(
        self,
        out: Lines,
        source: Lines,
        outer: int,
        inner: int,
        scale: float,
        scratch: Any = None,
    ) -> list[Any]:
        """Queue the transform of outer x inner lines and its multiplication by scale.

        The source is left unchanged, unless out is the same memory: out and source may start at the
        same byte with pitches of the same number of bytes (in place), or must not overlap. Nothing
        outside the lines is touched. Returns the events of the launches, in order.

        Parameters
        ----------
        out, source : Lines
            n_out and n_in values a line.
        outer, inner : int
            Counts of lines, >= 1; inner = 1 unless ``strided``.
        scale : float
            Factor of the result, rounded to the precision.
        scratch : pyopencl.Buffer, optional
            At least ``scratch_bytes(outer, inner)`` bytes, where that is not 0.
        """
        ...


class Params(Protocol):
    """Compile-time parameters of a stage: a frozen dataclass of numbers, texts and tuples."""


class Spec(Protocol):
    """What a family computes: a ``TransformSpec``, or a ``StftSpec``."""

    @property
    def key(self) -> Key:
        """What a result of the tuner is for."""
        ...


S_contra = TypeVar("S_contra", contravariant=True)


class Family(Protocol[S_contra]):
    """A way of computing; those of transforms and of spectra add how a stage is built.

    Attributes
    ----------
    name : str
        In the tuner's file and in tables; no other family has it.
    """

    name: str

    @property
    def params_type(self) -> type[Params]:
        """Class of its parameters, which ``load_params`` makes from a file's."""
        ...

    def supports(self, spec: S_contra, device: DeviceInfo) -> bool:
        """Whether the family computes this on this device, within the device's limits."""
        ...

    def candidates(self, spec: S_contra, device: DeviceInfo) -> Iterable[Params]:
        """Parameters worth a tuner's time, the untuned choice first; all within the limits."""
        ...


class TransformFamily(Family[TransformSpec], Protocol):
    """A way of computing transforms."""

    def build(self, context: Context, spec: TransformSpec, params: Any) -> Stage:
        """Compile.

        Raises
        ------
        ConfigError
            If the parameters are not of this spec.
        DeviceError
            If the device cannot run them, or has no memory for the tables.
        KernelBuildError
            If a kernel does not compile.
        """
        ...


P = TypeVar("P")


def load_params(kind: type[P], values: Mapping[str, Any]) -> P:
    """Make parameters of a dataclass from the names and values of a file.

    Raises
    ------
    ConfigError
        If a name is unknown or missing, a value is of another type, or breaks a rule.
    """
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if set(values) != names:
        raise ConfigError(f"{sorted(values)}: must be {sorted(names)}")
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error)) from error
