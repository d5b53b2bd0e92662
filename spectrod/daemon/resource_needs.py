"""What a daemon needs of the machine's limits, estimated from its configuration.

The numbers are what a daemon was measured to have, rounded up.
"""

from collections.abc import Iterator, Sized
from typing import Final, NamedTuple

from spectrod.config.config import Config, RecordingConfig, SourceTable
from spectrod.lib import descriptors, tasks
from spectrod.lib.errors import UnavailableError
from spectrod.source.kinds import find_kind

BASE: Final = {"descriptors": 48, "threads": 24}
"""Of a daemon without a source: sockets, control, metrics, publisher, the first of the pool. The
pool goes on with fewer threads than it may have, and OpenCL drivers are left out if they fail."""


class ResourceNeeds(NamedTuple):
    """Needs of a daemon, or of a part of it.

    Attributes
    ----------
    descriptors : int
        Open descriptors, without those of connections.
    threads : int
        Threads, with those of its child processes.
    """

    descriptors: int
    threads: int


def needs_of(config: Config) -> ResourceNeeds:
    """Estimate what a daemon needs, without connections."""
    parts = [ResourceNeeds(**BASE), *map(_of_source, config.all_sources)]
    for recording in config.recordings:
        n = len(recording.sources) or len(config.all_sources)
        one = _of_recording(recording)
        parts.append(ResourceNeeds(n * one.descriptors, n * one.threads))
    return ResourceNeeds(*map(sum, zip(*parts, strict=True)))


def shortages(config: Config) -> Iterator[str]:
    """Yield a line for each limit of this process that is too low for a configuration."""
    needs = needs_of(config)
    of_what = f"{_counted(config.all_sources, 'source')} and " + _counted(
        config.recordings, "recording"
    )
    # Half of the descriptors may be connections.
    needed, limit = 2 * needs.descriptors, descriptors.current_limit()
    if needed > limit:
        yield (
            f"{of_what} need {needed} descriptors, half of them for connections: the limit is "
            f"{limit} (LimitNOFILE= of the unit, or ulimit -n)"
        )
    threads = tasks.current_limit()
    if threads and needs.threads > threads.n:
        yield (f"{of_what} need {needs.threads} threads: the limit is {threads.n} ({threads.name})")


def require(config: Config) -> None:
    """Raise UnavailableError if a limit of this process is too low for a configuration."""
    if lines := list(shortages(config)):
        raise UnavailableError("; ".join(lines))


def _counted(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'s' * (len(things) != 1)}"


def _of_source(table: SourceTable) -> ResourceNeeds:
    kind, _ = find_kind(table.uri)
    if kind.prefix in ("soundcard", "auto"):
        return ResourceNeeds(12, 8)  # with the capture process
    is_alone = table.pace == "full" or table.uri == "-"
    return ResourceNeeds(4, 2 if is_alone else 0)


def _of_recording(recording: RecordingConfig) -> ResourceNeeds:
    """Return the needs of a recording of one source."""
    n = 4 + 3 * bool(recording.samples) + 8 * recording.pyramid
    return ResourceNeeds(n, 1)
