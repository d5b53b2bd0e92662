"""Every error that spectrod raises on purpose, each with the exit code it ends a command with."""

from os import PathLike, fspath


class SpectrodError(Exception):
    """Base of all errors whose text is meant for the user: one line, the value, the rule."""

    exit_code = 2


class ConfigError(SpectrodError, ValueError):
    """A setting, argument or array breaks a rule."""


class InputError(SpectrodError, ValueError):
    """A recording or a stream of samples cannot be used: missing, empty, truncated, not finite."""


class UnavailableError(SpectrodError):
    """A device, driver, library or service that was asked for is not there."""

    exit_code = 69


class DeviceError(UnavailableError):
    """No OpenCL device fits, or the one in use failed."""


class KernelBuildError(DeviceError):
    """An OpenCL program did not compile; the text holds device, options and the compiler's log."""


class StorageError(SpectrodError):
    """A file or folder cannot be written or read back."""

    exit_code = 74


def storage_error(path: str | PathLike[str], error: OSError) -> StorageError:
    """Return the error of a file: its name, and the system's reason."""
    return StorageError(f"{fspath(path)}: {error.strerror or error}")


class BusyError(SpectrodError):
    """Something else holds what is needed: a port, an endpoint, a lock. Later may succeed."""

    exit_code = 75


class DeniedError(SpectrodError):
    """The daemon has refused: the key is unknown or revoked, or has no right to what was asked."""

    exit_code = 77


class NotFoundError(SpectrodError, LookupError):
    """What was named is not there: a source, a product, a topic, a key, a recording."""


class WireError(SpectrodError, ValueError):
    """A message does not follow the protocol."""


class InternalError(SpectrodError):
    """A broken invariant inside spectrod: a bug; please report it."""

    exit_code = 70
