"""Files and bytes a second that ``spectrod upload`` sends, its processor time and its memory.

    python benchmarks/bench_upload.py [--files N] [--kb KB] [--mb MB] [--delay-ms MS] [--json FILE]

Sends many small files, then the same folder again, of which nothing is new, then one large file,
each by a command of its own to a server of this machine that answers as S3 does and drops the
content: what is measured is the client. ``--delay-ms`` is how long the server waits before each
answer, as a far one does. ``start_s`` is the time of a command that finds an empty folder.
"""

import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

from _report import new_report, write_report

_CHUNK_BYTES = 1 << 20


def main() -> None:
    """Start the server, time, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--kb", type=int, default=100, help="size of a small file [1000 bytes]")
    parser.add_argument("--mb", type=int, default=1024, help="size of the large file [MiB]")
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("upload")
    context = multiprocessing.get_context("spawn")
    link, its_link = context.Pipe()
    server = context.Process(target=_serve, args=(its_link, args.delay_ms * 1e-3), daemon=True)
    server.start()
    with tempfile.TemporaryDirectory() as name:
        url = f"http://127.0.0.1:{link.recv()}"
        for kind in ("empty", "small", "large"):
            (Path(name) / kind).mkdir()
        for k in range(args.files):
            (Path(name) / "small" / f"{k:06}.spd").write_bytes(os.urandom(1000 * args.kb))
        with (Path(name) / "large/x.wav").open("wb") as file:
            for _ in range(args.mb):
                file.write(os.urandom(1 << 20))
        for what in ("empty", "small", "small", "large"):
            report["results"].append(_upload(Path(name) / what, url))
            print(*(f"{key}: {value}" for key, value in report["results"][-1].items()), sep=", ")
    server.terminate()
    if args.json:
        write_report(report, args.json)


def _upload(folder: Path, url: str) -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    address = f"s3://bench/{folder.name}"
    command = [sys.executable, "-m", "spectrod", "upload", str(folder), address]
    start_s = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        summary = process.stdout.read().strip()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - start_s
    if process.returncode:
        raise SystemExit(f"spectrod: exit code {process.returncode}")
    n_files = len(list(folder.iterdir()))
    n_bytes = sum(path.stat().st_size for path in folder.iterdir())
    return {
        "summary": summary,
        "wall_s": round(wall_s, 2),
        "files_per_s": round(n_files / wall_s, 1),
        "mb_per_s": round(n_bytes / wall_s / 1e6, 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": round(_peak_mb(used), 1),
    }


def _peak_mb(used: resource.struct_rusage) -> float:
    return used.ru_maxrss * 1024 / 1e6


def _serve(link: Connection, delay_s: float) -> None:
    sizes: dict[str, int] = {}

    class Store(BaseHTTPRequestHandler):
        """Answers of S3 for one bucket; the content is dropped."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """List the files."""
            begin = unquote(self.path.partition("prefix=")[2].partition("&")[0])
            keys = [
                f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size></Contents>"
                for key, size in sizes.items()
                if key.startswith(begin)
            ]
            self._answer(f"<ListBucketResult>{''.join(keys)}</ListBucketResult>")

        def do_PUT(self) -> None:
            """Take a file, or a part of one."""
            n_left = n_bytes = int(self.headers["Content-Length"])
            while n_left:
                n_left -= len(self.rfile.read(min(n_left, _CHUNK_BYTES)))
            key, _, query = self.path.removeprefix("/bench/").partition("?")
            if not query:
                sizes[key] = n_bytes
            self._answer("")

        def do_POST(self) -> None:
            """Begin an upload in parts, or complete it."""
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            key, _, query = self.path.removeprefix("/bench/").partition("?")
            what = "Complete" if "uploadId" in query else "Initiate"
            self._answer(
                f"<{what}MultipartUploadResult><Key>{key}</Key><UploadId>1</UploadId>"
                f"<ETag>1</ETag></{what}MultipartUploadResult>"
            )

        def _answer(self, text: str) -> None:
            time.sleep(delay_s)  # of the line that is measured: nothing waits for it else
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        link.send(server.server_address[1])
        server.serve_forever()


if __name__ == "__main__":
    main()
