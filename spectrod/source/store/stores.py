"""The stores of this process, and requests to them: bounded in time, and repeated."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import cache
from typing import Any, Protocol

from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import UnavailableError
from spectrod.lib.text import printable
from spectrod.source.store.file_part import FilePart, SentPart, UnreachableError
from spectrod.source.store.urls import HTTP_SCHEMES, scheme_of

REQUEST_S = 60.0
"""Longest time of a request with its answer [s]."""
ATTEMPTS_MAX = 4
"""How often a request is made before its store counts as gone."""
BACKOFF_FIRST_S, BACKOFF_LAST_S = 0.5, 8.0
"""First and longest pause before a request is repeated [s]."""

_LIBRARIES = (
    "aiobotocore", "aiohttp", "asyncio", "boto3", "botocore", "fsspec", "gcsfs", "google", "s3fs",
    "urllib3",
)  # fmt: skip


class Store(Protocol):
    """Files of one kind of store. The coroutines run on fsspec's event loop."""

    async def read(self, url: str, first: int, end: int) -> FilePart:
        """Read the bytes [first, end) of a file, fewer at its end.

        Raises
        ------
        OSError
            If it is missing, may not be read, or its store cannot read by parts.
        UnreachableError
            If another attempt may succeed.
        """
        ...


class WritableStore(Store, Protocol):
    """Files of a store that can be written; errors are those of ``read``.

    A file appears under its name when it is complete, in place of one that had it.
    """

    async def put(self, url: str, content: bytes) -> str:
        """Write a file in one request; return its ``digest``, or nothing if it is not said."""
        ...

    async def delete(self, url: str) -> None:
        """Remove a file, if there is one."""
        ...

    async def begin(self, url: str) -> str:
        """Begin an upload in parts, and return its name."""
        ...

    async def put_part(self, url: str, upload: str, part: SentPart) -> str:
        """Send a part, and return what ``complete`` needs of it."""
        ...

    async def complete(self, url: str, upload: str, tags: Sequence[str]) -> str:
        """Make the file of all parts; return as ``put`` does."""
        ...

    async def abort(self, url: str, upload: str) -> None:
        """Remove the parts of an upload that is not completed."""
        ...

    async def digest(self, url: str) -> str:
        """Return the checksum of a file, hexadecimal, as ``uploads.is_same`` compares it."""
        ...

    async def unfinished(self, url: str) -> list[tuple[str, str]]:
        """Return some uploads in parts that are not completed: their files' addresses and names.

        ``url`` is what these addresses begin with.
        """
        ...


class Ask(Protocol):
    """Makes a request, as ``request`` does, and waits for its answer."""

    def __call__(
        self, url: str, call: Callable[[], Coroutine[Any, Any, Any]], limit_s: float | None = None
    ) -> Any:
        """Return the answer; raises what ``request`` says, or what ends the wait."""
        ...


_making = threading.Lock()


def store_of(url: str) -> Any:
    """Return the store of an address; made when it is first used.

    Raises
    ------
    UnavailableError
        If the libraries of the extra ``cloud`` are not installed.
    """
    scheme = scheme_of(url)
    try:
        with _making:
            return _store("http" if scheme in HTTP_SCHEMES else scheme)
    except ImportError as error:
        raise UnavailableError(
            f"{scheme}:// needs the extra cloud: pip install 'spectrod[cloud]' "
            f"({error.name} is missing)"
        ) from error


@cache
def _store(kind: str) -> Any:
    # These are slow to import, and optional. Their logs may hold signed requests.
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    if kind == "http":
        from spectrod.source.store.http import HttpStore  # noqa: PLC0415

        return HttpStore()
    from spectrod.source.store.objects import GcsStore, S3Store  # noqa: PLC0415

    return S3Store() if kind == "s3" else GcsStore()


def request(
    url: str, call: Callable[[], Coroutine[Any, Any, Any]], limit_s: float | None = None
) -> Future[Any]:
    """Start a request on fsspec's event loop, and repeat it while its store does not answer.

    Parameters
    ----------
    url : str
        What is asked for, for errors.
    call : callable
        Makes the coroutine of one attempt.
    limit_s : float, optional
        Longest time of an attempt [s]; ``REQUEST_S`` by default.

    Returns
    -------
    answer : Future
        Raises OSError as the store does, and UnavailableError after the last attempt.
    """
    from fsspec.asyn import get_loop  # noqa: PLC0415

    return asyncio.run_coroutine_threadsafe(_repeated(url, call, limit_s or REQUEST_S), get_loop())


def answer(
    url: str, call: Callable[[], Coroutine[Any, Any, Any]], limit_s: float | None = None
) -> Any:
    """Make a request, wait for its answer and return it; see ``request``."""
    return request(url, call, limit_s).result()


async def _repeated(url: str, call: Callable[[], Coroutine[Any, Any, Any]], limit_s: float) -> Any:
    backoff = Backoff(BACKOFF_FIRST_S, BACKOFF_LAST_S)
    n_attempts = 0
    while True:
        try:
            async with asyncio.timeout(limit_s):
                return await call()
        except TimeoutError:
            reason = f"its store does not answer within {limit_s:g} s"
        except UnreachableError as error:
            reason = str(error)
        n_attempts += 1
        if n_attempts >= ATTEMPTS_MAX:
            raise UnavailableError(f"{printable(url)}: {reason}; tried {n_attempts} times")
        await asyncio.sleep(backoff.next_s())
