"""A slow line as a proxy of TCP: so many bytes a second of all connections, and a delay."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

PIECE_BYTES = 1460
BURST_S = 0.1
"""What a line may catch up that this process was late for [s]."""


class SlowLine:
    """A line to a port of this machine.

    Parameters
    ----------
    port : int
        Where its far end connects to.
    bytes_s : float or None
        Bytes that the far end may send on all connections together [1/s]; None: no limit.
    delay_s : float, optional
        Time of a round trip that the line adds [s].
    """

    def __init__(self, port: int, bytes_s: float | None, delay_s: float = 0.0) -> None:
        self._port, self._bytes_s, self._way_s = port, bytes_s, delay_s / 2.0
        self._free_s = 0.0
        self._is_ending = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @contextlib.contextmanager
    def running(self) -> Iterator[int]:
        """Pass connections in a thread; yield the port of the line's near end."""
        loop, ready, found = asyncio.new_event_loop(), threading.Event(), []
        ended = asyncio.Event()

        async def serve() -> None:
            server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
            found.append(server.sockets[0].getsockname()[1])
            ready.set()
            async with server:
                await ended.wait()
            self._is_ending = True
            await asyncio.sleep(0)  # the last connections that came have tasks now
            for writer in self._writers:
                writer.transport.abort()
            while self._tasks:
                await asyncio.gather(*self._tasks)

        def run() -> None:
            with contextlib.closing(loop):
                loop.run_until_complete(serve())

        thread = threading.Thread(target=run)
        thread.start()
        ready.wait()
        try:
            yield found[0]
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()

    async def _connected(
        self, near_reader: asyncio.StreamReader, near_writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        sock = socket.socket()
        if self._bytes_s is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # it keeps nothing itself
        sock.settimeout(0.0)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self._port))
        far_reader, far_writer = await asyncio.open_connection(sock=sock, limit=4096)
        own = {near_writer, far_writer}
        self._writers |= own
        if self._is_ending:
            for writer in own:
                writer.transport.abort()
        try:
            await asyncio.gather(
                self._pass(near_reader, far_writer, None),
                self._pass(far_reader, near_writer, self._bytes_s),
            )
        finally:
            self._writers -= own
            far_writer.close()
            near_writer.close()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        bytes_s: float | None,
    ) -> None:
        """Pass one direction until it ends; what is on its way takes the line's time."""
        loop = asyncio.get_running_loop()
        on_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(1 if self._way_s == 0.0 else 256)
        arriving = asyncio.create_task(self._arrive(on_way, writer))
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                if bytes_s is not None:
                    self._free_s = max(self._free_s, loop.time() - BURST_S) + len(piece) / bytes_s
                    await asyncio.sleep(max(0.0, self._free_s - loop.time()))
                await on_way.put((loop.time() + self._way_s, piece))
        await on_way.put((0.0, b""))
        await arriving

    async def _arrive(
        self, on_way: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        is_open = True
        while (arrival := await on_way.get())[1]:
            at_s, piece = arrival
            if not is_open:  # what is still on its way is lost
                continue
            await asyncio.sleep(max(0.0, at_s - loop.time()))
            try:
                writer.write(piece)
                await writer.drain()
            except OSError:
                is_open = False
        writer.close()
