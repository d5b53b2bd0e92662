"""Engines that stay open from one call to the next, for calls that compute a whole signal."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from spectrod.analysis.engine import Engine, EngineKind, open_engine
from spectrod.errors import DeviceError

_Key = tuple[EngineKind, str, int]


class Engines:
    """The engines that were borrowed so far; who borrows one has it for himself.

    Opening a device and taking its programs from the cache costs more than the spectra of a short
    signal. An engine of another process is left alone: no driver survives a fork.
    """

    def __init__(self) -> None:
        self._engines: dict[_Key, Engine] = {}
        self._locks: dict[_Key, RLock] = {}

    @contextmanager
    def borrow(self, kind: EngineKind, device: str) -> Iterator[Engine]:
        """Lend an engine, opened as ``open_engine`` does; one that fails is not lent again."""
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
        """Close an engine, which is not lent again."""
        for key in [key for key, kept in self._engines.items() if kept is engine]:
            del self._engines[key]
            engine.close()


ENGINES = Engines()
