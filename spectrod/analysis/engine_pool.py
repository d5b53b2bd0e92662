"""Engines that stay open between calls that compute a whole signal."""

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, cast

from spectrod.analysis.engine import Engine, EngineKind, open_engine
from spectrod.lib.errors import DeviceError

_Key = tuple[EngineKind, str, int]


class EnginePool:
    """Pool of open engines; only one caller at a time uses an engine.

    Opening a device and loading its programs from the cache costs more than the spectra of a short
    signal. An engine of another process is not used: no driver survives a fork.
    """

    def __init__(self) -> None:
        self._engines: dict[_Key, Engine] = {}
        self._locks: dict[_Key, RLock] = {}

    @contextmanager
    def borrow(self, kind: EngineKind, device: str) -> Iterator[Engine]:
        """Lend an engine, opened as by ``open_engine``; discard it if it fails."""
        key = kind, device, os.getpid()
        with self._locks.setdefault(key, RLock()):
            engine = self._engines.get(key) or open_engine(kind, device)
            self._engines[key] = engine
            try:
                yield engine
            except DeviceError:
                self.discard(engine)
                raise

    def discard(self, engine: Engine) -> None:
        """Close an engine and remove it from the pool."""
        for key in [key for key, kept in self._engines.items() if kept is engine]:
            del self._engines[key]
            engine.close()


ENGINE_POOL = EnginePool()


class KeptEngines:
    """Engines that stay open from one recording to the next; for one thread.

    Parameters
    ----------
    n_sources : int
        Number of recordings that will probably use them.

    Attributes
    ----------
    n_sources : int
    uses_device : dict
        Whether a device computes the recordings that need certain kernels, as their user decides.
    """

    def __init__(self, n_sources: int = 1) -> None:
        self.n_sources = n_sources
        self.uses_device: dict[Hashable, bool] = {}
        self._engines: dict[tuple[EngineKind, str], Engine] = {}

    def open(self, kind: EngineKind, device: str, *, compiles: bool = True) -> Engine:
        """Open an engine, or return the open one; its ``close`` does nothing."""
        key = kind, device
        if key not in self._engines:
            self._engines[key] = open_engine(kind, device, compiles=compiles)
        return cast("Engine", _Kept(self._engines[key]))

    def close(self) -> None:
        """Close all engines, which keeps their compiled programs."""
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()


class _Kept:
    """An engine whose user does not close it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        """Do nothing."""
