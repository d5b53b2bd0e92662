"""The page over a slow line and on a slow computer: live rows keep coming."""

import asyncio
import contextlib
import os
import socket
import threading
from urllib.parse import urlsplit

import pytest
from programs import running_daemon, running_web

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

TIMEOUT_MS = 120_000
BYTES_S = 50_000
SECONDS = 30
FREEZE_MAX_MS = 2000
SLOWER = 4.0
"""How many times slower than an idle one the computer is to be."""
PIECE_BYTES = 1460
CONFIG = """
[sources.array]
uri = "signal:pink,-30"
channels = 4
[analysis]
win_length = 4096
hop = 960
[publish]
endpoints = ["{endpoint}"]
[engine]
engine = "numpy"
"""

# Notes when rows of each stream came, as its own handlers do, and how large messages are.
WATCH = """
globalThis.came = [];
globalThis.sizes = [];
const Plain = WebSocket;
globalThis.WebSocket = class extends Plain {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", async ({ data }) => {
      if (typeof data === "string") return;
      const at = performance.now();
      const view = new DataView(data);
      globalThis.sizes.push(data.byteLength);
      let offset = 8;
      for (let left = view.getUint16(2, true); left > 0; left -= 1) {
        const [stream, rows, bits, values] = [0, 4, 6, 8].map((n) =>
          n === 8 ? view.getUint32(offset + n, true) : view.getUint16(offset + n, true));
        globalThis.came.push([stream, at]);
        offset += 16 + 32 * rows + Math.ceil((rows * values * bits) / 32) * 4;
      }
    });
  }
};
"""
# Longest times without rows, of each waterfall.
GAPS = """() => {
  const waterfalls = new Map();
  for (const [stream, at] of globalThis.came) {
    if (stream % 8 !== 0) continue;
    if (!waterfalls.has(stream)) waterfalls.set(stream, { last: at, gap: 0 });
    const one = waterfalls.get(stream);
    one.gap = Math.max(one.gap, at - one.last);
    one.last = at;
  }
  const now = performance.now();
  return [...waterfalls.values()].map(({ last, gap }) => Math.max(gap, now - last));
}"""


class SlowLine:
    """A line to a server on which all connections together pass so many bytes a second."""

    def __init__(self, address):
        self._to = urlsplit(address)
        self._free_s = 0.0
        self._tasks = set()

    @contextlib.contextmanager
    def running(self):
        """Pass connections in a thread; yield the address of the line's near end."""
        loop, ready, found = asyncio.new_event_loop(), threading.Event(), []
        ended = asyncio.Event()

        async def serve():
            server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
            found.append(server.sockets[0].getsockname()[1])
            ready.set()
            async with server:
                await ended.wait()
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

        def run():
            with contextlib.closing(loop):
                loop.run_until_complete(serve())

        thread = threading.Thread(target=run)
        thread.start()
        ready.wait()
        try:
            yield f"http://127.0.0.1:{found[0]}/"
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()

    async def _connected(self, near_reader, near_writer):
        self._tasks.add(asyncio.current_task())
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # it keeps nothing for itself
        sock.settimeout(0.0)
        await asyncio.get_running_loop().sock_connect(sock, (self._to.hostname, self._to.port))
        far_reader, far_writer = await asyncio.open_connection(sock=sock, limit=4096)
        try:
            await asyncio.gather(
                self._pass(near_reader, far_writer, is_slow=False),
                self._pass(far_reader, near_writer, is_slow=True),
            )
        finally:
            far_writer.close()
            near_writer.close()

    async def _pass(self, reader, writer, *, is_slow):
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                if is_slow:
                    self._free_s = max(self._free_s, loop.time()) + len(piece) / BYTES_S
                    await asyncio.sleep(self._free_s - loop.time())
                writer.write(piece)
                await writer.drain()
        writer.close()


def slower():
    """Return how many times slower the page must be made: other work on the machine counts."""
    return max(1.0, SLOWER / max(1.0, os.getloadavg()[0] / os.cpu_count()))


def test_four_charts_go_on_over_a_slow_line_on_a_slow_computer(chromium, tmp_path):
    """At 50 kB/s and a quarter of the processor no waterfall waits for rows for over 2 s."""
    with (
        running_daemon(tmp_path, CONFIG) as endpoint,
        running_web(endpoint, "--recordings", tmp_path / "none") as (link, _),
        SlowLine(link).running() as line,
    ):
        page = chromium.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.set_default_timeout(TIMEOUT_MS)
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.add_init_script(WATCH)
        throttle = page.context.new_cdp_session(page)
        throttle.send("Emulation.setCPUThrottlingRate", {"rate": slower()})
        topics = "&".join(f"topic=spec/array/{n}/dbfs/" for n in range(4))
        page.goto(f"{line}#v=1&{topics}", timeout=TIMEOUT_MS)
        page.wait_for_function("() => new Set(globalThis.came.map(([stream]) => stream)).size >= 8")
        page.evaluate("() => { globalThis.came.length = globalThis.sizes.length = 0; }")
        until = page.evaluate("performance.now()") + 1000 * SECONDS
        page.wait_for_function("until => performance.now() >= until", arg=until)
        gaps = page.evaluate(GAPS)
        sizes = page.evaluate("globalThis.sizes")
        page.context.close()
    assert len(gaps) == 4
    assert max(gaps) <= FREEZE_MAX_MS
    assert max(sizes) <= 66_000
    assert problems == []
