"""Libraries for object stores beside each other: s3fs, which spectrod uses, and obstore.

    pip install obstore
    python benchmarks/bench_stores.py [--files N] [--kb KB] [--mb MB] [--json FILE]

Each runs in a process of its own against a store of S3's protocol on this machine (moto): it writes
small files, lists and reads them, eight at a time, and writes and reads a large one; what it reads
must be what it wrote. The store takes most of the wall clock, so the client's processor time is
what to compare; of ``import`` also the memory.
"""

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from multiprocessing.connection import Connection
from typing import Any

from _report import new_report, write_report

_AT_ONCE = 8
_BUCKET = "bench"
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_DEFAULT_REGION": "us-east-1",
}


class S3fs:
    """The library of the extra ``cloud``."""

    def __init__(self, url: str) -> None:
        from s3fs import S3FileSystem  # noqa: PLC0415 - the time of this import is measured

        self._store = S3FileSystem(endpoint_url=url, asynchronous=True, use_listings_cache=False)

    async def make_bucket(self) -> None:
        """Make the bucket."""
        await self._store._mkdir(_BUCKET)  # noqa: SLF001 - names of fsspec's asynchronous interface

    async def put(self, name: str, content: bytes) -> None:
        """Write an object."""
        await self._store._pipe_file(f"{_BUCKET}/{name}", content)  # noqa: SLF001

    async def get(self, name: str) -> bytes:
        """Read an object."""
        found: bytes = await self._store._cat_file(f"{_BUCKET}/{name}")  # noqa: SLF001
        return found

    async def names(self, folder: str) -> list[str]:
        """List the objects of a folder."""
        found = await self._store._find(f"{_BUCKET}/{folder}")  # noqa: SLF001
        return [one.removeprefix(f"{_BUCKET}/") for one in found]

    async def close(self) -> None:
        """Close the connections."""
        session = await self._store.set_session()
        await session.close()


class Obstore:
    """The binding of the object_store crate."""

    def __init__(self, url: str) -> None:
        import obstore  # noqa: PLC0415 - the time of this import is measured
        from obstore.store import S3Store  # noqa: PLC0415

        self._obstore = obstore
        self._store = S3Store(_BUCKET, endpoint=url, client_options={"allow_http": True})

    async def make_bucket(self) -> None:
        """Leave it to the library before."""

    async def put(self, name: str, content: bytes) -> None:
        """Write an object."""
        await self._obstore.put_async(self._store, name, content)

    async def get(self, name: str) -> bytes:
        """Read an object."""
        found = await self._obstore.get_async(self._store, name)
        return bytes(await found.bytes_async())

    async def names(self, folder: str) -> list[str]:
        """List the objects of a folder."""
        pages = self._obstore.list(self._store, prefix=folder)
        return [one["path"] async for page in pages for one in page]

    async def close(self) -> None:
        """Do nothing: it has no session."""


_LIBRARIES: dict[str, Callable[[str], Any]] = {"s3fs": S3fs, "obstore": Obstore}


async def _all(n: int, call: Callable[[int], Awaitable[Any]]) -> list[Any]:
    """Await calls for 0 to n - 1, so many at once."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(k: int) -> Any:
        async with turns:
            return await call(k)

    return await asyncio.gather(*(one(k) for k in range(n)))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _run(name: str, url: str, n_files: int, file_bytes: int, large_bytes: int) -> Any:
    results: dict[str, Any] = {"library": name, "version": version(name)}

    def note(what: str, since: tuple[float, float]) -> None:
        wall_s, processor_s = time.perf_counter() - since[0], time.process_time() - since[1]
        results[what] = {"wall_s": round(wall_s, 3), "processor_s": round(processor_s, 3)}

    def now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    before_mb, start = _peak_mb(), now()
    store = _LIBRARIES[name](url)
    note("import", start)
    results["import"]["memory_mb"] = round(_peak_mb() - before_mb, 1)
    await store.make_bucket()
    small = [os.urandom(file_bytes) for _ in range(n_files)]
    start = now()
    await _all(n_files, lambda k: store.put(f"{name}/small/{k:06}", small[k]))
    note("put_small", start)
    start = now()
    listed = await store.names(f"{name}/small")
    note("list", start)
    assert sorted(listed) == [f"{name}/small/{k:06}" for k in range(n_files)]
    start = now()
    assert await _all(n_files, lambda k: store.get(f"{name}/small/{k:06}")) == small
    note("get_small", start)
    large = os.urandom(large_bytes)
    start = now()
    await store.put(f"{name}/large", large)
    note("put_large", start)
    start = now()
    assert await store.get(f"{name}/large") == large
    note("get_large", start)
    await store.close()
    return results


def _serve(link: Connection) -> None:
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - of the tests

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    link.send(server.get_host_and_port()[1])
    link.recv()


def main() -> None:
    """Run each library, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--kb", type=int, default=100, help="size of a small file [1000 bytes]")
    parser.add_argument("--mb", type=int, default=100, help="size of the large file [MiB]")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--library", choices=_LIBRARIES, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.library:
        sizes = args.files, 1000 * args.kb, args.mb << 20
        print(json.dumps(asyncio.run(_run(args.library, args.url, *sizes))))
        return
    report = new_report("stores")
    context = multiprocessing.get_context("spawn")
    link, its_link = context.Pipe()
    server = context.Process(target=_serve, args=(its_link,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{link.recv()}"
    for name in _LIBRARIES:
        command = [sys.executable, __file__, "--library", name, "--url", url]
        command += [f"--{key}={getattr(args, key)}" for key in ("files", "kb", "mb")]
        environment = os.environ | _CREDENTIALS
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        report["results"].append(json.loads(done.stdout))
        print(report["results"][-1])
    server.terminate()
    if args.json:
        write_report(report, args.json)


if __name__ == "__main__":
    main()
