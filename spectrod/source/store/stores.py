"""The stores of this process, and requests to them: bounded in time, and repeated."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, Protocol

from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import UnavailableError
from spectrod.lib.text import printable
from spectrod.source.store.file_part import FilePart, UnreachableError
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


def request(url: str, call: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
    """Start a request on fsspec's event loop, and repeat it while its store does not answer.

    Parameters
    ----------
    url : str
        What is asked for, for errors.
    call : callable
        Makes the coroutine of one attempt.

    Returns
    -------
    answer : Future
        Raises OSError as the store does, and UnavailableError after the last attempt.
    """
    from fsspec.asyn import get_loop  # noqa: PLC0415

    return asyncio.run_coroutine_threadsafe(_repeated(url, call), get_loop())


async def _repeated(url: str, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    backoff = Backoff(BACKOFF_FIRST_S, BACKOFF_LAST_S)
    n_attempts = 0
    while True:
        try:
            async with asyncio.timeout(REQUEST_S):
                return await call()
        except TimeoutError:
            reason = f"its store does not answer within {REQUEST_S:g} s"
        except UnreachableError as error:
            reason = str(error)
        n_attempts += 1
        if n_attempts >= ATTEMPTS_MAX:
            raise UnavailableError(f"{printable(url)}: {reason}; tried {n_attempts} times")
        await asyncio.sleep(backoff.next_s())
