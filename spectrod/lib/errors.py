"""All errors that spectrod raises on purpose, each with the exit code of a command."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any, Self

_LINES_IN_TEXT = 20


def _shown(value: object) -> str:
    if value is ...:
        return ""
    if isinstance(value, float):
        return f"={value:g}"
    return f"={value!r}" if isinstance(value, str) else f"={value}"


class SpectrodError(Exception):
    """Base of all errors whose text is meant for the user: one line with the value and the rule."""

    exit_code = 2

    @property
    def lines(self) -> tuple[str, ...]:
        """The text; an error of several mistakes has a line for each."""
        return (str(self),)

    def reworded(self, reword: Callable[[str], str]) -> Self:
        """Return the error with another text; its class and attributes are the same."""
        error = type(self).__new__(type(self), reword(str(self)))
        error.__dict__.update(self.__dict__)
        return error

    def of(self, what: str) -> Self:
        """Return the error with a text that begins with what it is about."""
        return self.reworded(lambda text: f"{what}: {text}")


class ConfigError(SpectrodError, ValueError):
    """A setting, argument or array breaks a rule.

    Parameters
    ----------
    text : str
        The rule, or all of the text if there are no ``values``.
    *keys : str
        Settings that the rule is about, beside those of ``values``.
    **values : object
        Settings that break the rule; the text begins with each as ``KEY=VALUE``, or as ``KEY`` if
        the value is ``...``.

    Attributes
    ----------
    keys : tuple of str
        Settings that it is about; the first that is set is the one to change.
    """

    def __init__(self, text: str, /, *keys: str, **values: object) -> None:
        shown = ", ".join(key + _shown(value) for key, value in values.items())
        super().__init__(f"{shown}: {text}" if values else text)
        self.keys = (*values, *keys)


class SettingsError(ConfigError):
    """Settings break rules.

    Parameters
    ----------
    lines : sequence of str
        One for each mistake; the text has the first 20.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        n_more = len(lines) - _LINES_IN_TEXT
        more = [f"and {n_more} more"] if n_more > 0 else []
        super().__init__("; ".join([*lines[:_LINES_IN_TEXT], *more]))
        self._lines = tuple(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return SettingsError, (self._lines,)

    def reworded(self, reword: Callable[[str], str]) -> Self:
        """Return the error with other lines."""
        return type(self)([reword(line) for line in self._lines])

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each mistake."""
        return self._lines


class InputError(SpectrodError, ValueError):
    """A recording or a stream of samples is unusable: missing, empty, truncated, not finite."""


class EmptyRecordingError(InputError):
    """A recording ended before its first sample."""


class UnavailableError(SpectrodError):
    """A requested device, driver, library or service is missing."""

    exit_code = 69


class DeviceError(UnavailableError):
    """No OpenCL device is suitable, or the one in use failed."""


class KernelBuildError(DeviceError):
    """An OpenCL program did not compile; the text holds device, options and the compiler's log."""


class NotCompiledError(SpectrodError):
    """A kernel is not in the cache, where compiling it was excluded; NumPy computes instead."""


class StorageError(SpectrodError):
    """A file or folder cannot be written or read back."""

    exit_code = 74


def exists_error(name: str) -> StorageError:
    """Return the error for a file that would replace another one."""
    return StorageError(f"{name}: already exists; choose another name")


def storage_error(path: str | PathLike[str], error: OSError) -> StorageError:
    """Return the error of a file, with its name and the system's reason."""
    return StorageError(f"{fspath(path)}: {error.strerror or error}")


@contextmanager
def storage_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Raise StorageError, see ``storage_error``, for any OSError of the block."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error) from error


class BusyError(SpectrodError):
    """A needed resource is in use: a port, an endpoint, a lock. A later attempt may succeed."""

    exit_code = 75


class DeniedError(SpectrodError):
    """The daemon refused a request: the key is unknown or revoked, or lacks the right."""

    exit_code = 77


class NotFoundError(SpectrodError, LookupError):
    """A named object does not exist: a source, a product, a topic, a key, a recording."""


class NoProductError(ConfigError, NotFoundError):
    """A source has no such product: a wrong setting, or a wrong name in a request."""


class WireError(SpectrodError, ValueError):
    """A message violates the protocol."""


class InternalError(SpectrodError):
    """A broken invariant in spectrod: a defect; please report it."""

    exit_code = 70


def bug_error(error: Exception) -> InternalError:
    """Return the error of an exception that only a defect of spectrod raises.

    With ``SPECTROD_DEBUG`` in the environment, the traceback goes to standard error.
    """
    if os.environ.get("SPECTROD_DEBUG"):
        import traceback  # noqa: PLC0415

        traceback.print_exception(error)
    # Not repr(): that of pyopencl's errors holds no text.
    what = f"{type(error).__name__}({str(error)!r})"
    return InternalError(f"{what}: a bug; please report it (SPECTROD_DEBUG=1 shows where)")
