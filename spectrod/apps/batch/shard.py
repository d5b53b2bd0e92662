"""Shards of a job: which of the plan's units one process group computes."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from spectrod.apps.batch.plan import Unit
from spectrod.lib.errors import ConfigError

SHARDS_MAX = 100_000

_VARIABLES = {
    "slurm": ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"),
    "kubernetes": ("JOB_COMPLETION_INDEX", "", ""),
}


class Shard(NamedTuple):
    """Shard ``number`` of ``total``, counted from 1."""

    number: int = 1
    total: int = 1

    def units(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Return the units of the shard: each total-th, from the number-th on."""
        return units[self.number - 1 :: self.total]


def parse_shard(text: str, environment: Mapping[str, str] = os.environ) -> Shard:
    """Parse ``I/N`` with I from 1 to N, ``slurm`` or ``kubernetes/N``.

    ``slurm`` takes the number and the count of an array of consecutive tasks from the variables
    ``SLURM_ARRAY_TASK_ID``, ``_MIN`` and ``_COUNT``; ``kubernetes/N`` takes the number of an
    indexed job from ``JOB_COMPLETION_INDEX``.

    Raises
    ------
    ConfigError
        If it has another form, or a variable is not set to a number that fits.
    """
    kind, _, count = text.partition("/")
    if kind in _VARIABLES:
        index, least, total = _VARIABLES[kind]
        if kind == "slurm" and not count:
            number = _variable(environment, index) - _variable(environment, least) + 1
            return _checked(text, number, _variable(environment, total))
        if kind == "kubernetes" and count.isdecimal():
            return _checked(text, _variable(environment, index) + 1, _number(text, count))
    if kind.isdecimal() and count.isdecimal():
        return _checked(text, _number(text, kind), _number(text, count))
    raise ConfigError(f"--shard {text}: must be I/N, slurm or kubernetes/N")


def _number(text: str, digits: str) -> int:
    if len(digits) > len(str(SHARDS_MAX)):
        raise ConfigError(f"--shard {text}: must be at most {SHARDS_MAX} shards")
    return int(digits)


def _variable(environment: Mapping[str, str], name: str) -> int:
    value = environment.get(name, "")
    if not value.isdecimal() or len(value) > len(str(SHARDS_MAX)):
        raise ConfigError(f"{name}={value!r}: must be a number; --shard needs it")
    return int(value)


def _checked(text: str, number: int, count: int) -> Shard:
    if not 1 <= number <= count <= SHARDS_MAX:
        raise ConfigError(
            f"--shard {text}: is shard {number} of {count}: must be from 1 to the number of "
            f"shards, at most {SHARDS_MAX}"
        )
    return Shard(number, count)
