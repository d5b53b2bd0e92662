"""Engines that stay open between calls that compute a whole signal."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from spectrod.analysis.engine import Engine, EngineKind, open_engine
from spectrod.errors import DeviceError

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
