"""Sinks of one stream that other threads attach and detach while the analysis writes to them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from spectrod.dsp.writer import Sink
from spectrod.lib.errors import SpectrodError

Chunk = TypeVar("Chunk")

FailureHandler = Callable[[SpectrodError], None]


@dataclass(frozen=True, slots=True, eq=False)
class AttachedSink(Generic[Chunk]):
    """A sink of one product, or of all if ``product`` is empty.

    ``wants`` says that the product is to be computed for this sink.
    """

    sink: Sink[Chunk]
    on_failure: FailureHandler
    product: str = ""
    wants: bool = False

    def takes(self, product: str) -> bool:
        """Return True if the sink takes a product."""
        return self.product in ("", product)


class AttachedSinks(Generic[Chunk]):
    """Sinks that any thread attaches and detaches, and one thread writes to."""

    def __init__(self) -> None:
        self._sinks: tuple[AttachedSink[Chunk], ...] = ()
        self._writing = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._sinks)

    def attach(self, attached: AttachedSink[Chunk]) -> None:
        """Write all later chunks to a sink, until ``detach`` or its failure."""
        with self._writing:
            self._sinks = (*self._sinks, attached)

    def detach(self, sink: Sink[Chunk]) -> None:
        """Detach a sink; on return it is not called any more. Must not be called by a sink."""
        with self._writing:
            self._sinks = tuple(one for one in self._sinks if one.sink is not sink)

    def want(self, product: str) -> bool:
        """Return True if a sink wants a product to be computed."""
        return any(one.wants and one.takes(product) for one in self._sinks)

    def write(self, chunk: Chunk, product: str = "") -> None:
        """Write a chunk, of a product, to the sinks that take it.

        A sink that fails is detached, and its failure handler is called.
        """
        failed = []
        with self._writing:
            for one in self._sinks:
                if one.takes(product):
                    try:
                        one.sink.write(chunk)
                    except SpectrodError as error:
                        failed.append((one, error))
        for one, failure in failed:
            self.detach(one.sink)
            one.on_failure(failure)
