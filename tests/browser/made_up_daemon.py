"""A daemon of made-up rows, in threads of the test: their levels and times are what a test says."""

import contextlib
import json
import queue
import secrets
import sys
import threading
import time
from pathlib import Path

import numpy as np
import zmq

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.wire.headers import HeartbeatHeader, MetaHeader, SpectrumHeader
from spectrod.wire.schema import Frame, Heartbeat, Meta, encode

sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))
from made_up import SPECTRUM

SPEC = SpectrumSpec(fs=48000.0, win_length=4800, nfft=4800, hop=4800, scaling="dbfs")
"""Ten rows a second, bins of 10 Hz."""
TOPIC = "spec/mic/0/dbfs/"
FLOOR = -90.0
BEATS_S = 0.25
LIVE_S = 0.025
"""Time from one live row to the next: a page takes 50 a second, and merges more."""
_DESCRIBED = SPECTRUM | {
    "win_length": SPEC.win_length,
    "nfft": SPEC.nfft,
    "hop": SPEC.hop,
    "enbw_hz": 15.0,
    "shape": (SPEC.n_values,),
}


def tone(level, hertz=1000):
    """Return levels of a tone on a bin, over a floor of many levels (n_values,)."""
    values = FLOOR + (np.arange(SPEC.n_values) % 16).astype(np.float32)
    values[round(hertz / 10)] = level
    return values


class MadeUpDaemon:
    """Publishes what a test gives it; between that, if there is ``live``, its rows.

    Attributes
    ----------
    live : callable or None
        Returns the levels of the next row (n_values,); called from the daemon's thread.
    fields, beat_fields, meta_fields : dict
        Fields of the headers of live rows, heartbeats and descriptions that differ from usual ones.
    n_rows : int
        Rows that were sent so far; the next one has this number.
    subscriptions : set of bytes
        Prefixes that somebody subscribes to: nobody receives anything else.
    """

    def __init__(self, folder, begin_ns=None):
        self.folder = folder
        self.name = secrets.token_hex(6)
        self.endpoint = f"ipc://{folder}/{self.name}.ipc"
        self.live = None
        self.n_rows = 0
        self.epoch = 1
        self.sent = []
        self.subscriptions = set()
        self._begin_ns = time.time_ns() if begin_ns is None else begin_ns
        self._waiting = queue.SimpleQueue()
        self._beats = 0
        self.fields, self.beat_fields, self.meta_fields = {}, {}, {}
        self._is_ending = threading.Event()
        self._threads = []

    @contextlib.contextmanager
    def running(self, control_folder=None):
        """Publish; in a folder, offer the control socket that answers ``replay``."""
        with zmq.Context() as context:
            self._start(self._publish, context, zmq.XPUB, self.endpoint)
            if control_folder is not None:
                at = f"ipc://{control_folder}/control-{self.name}.ipc"
                self._start(self._answer, context, zmq.ROUTER, at)
            try:
                yield self
            finally:
                self._is_ending.set()
                for thread in self._threads:
                    thread.join()

    def _start(self, work, context, kind, endpoint):
        socket = context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind(endpoint)
        self._threads.append(threading.Thread(target=self._until_the_end, args=(work, socket)))
        self._threads[-1].start()

    def _until_the_end(self, work, socket):
        with socket:
            while not self._is_ending.is_set():
                work(socket)

    def send(self, *parts):
        """Send a message of any bytes."""
        self._waiting.put(lambda: list(parts))

    def give(self, values, **fields):
        """Send a row; ``fields`` are those of its header that differ."""
        self._waiting.put(lambda: self._row(values, fields))

    def _row(self, values, fields=None):
        """Return the parts of the next row."""
        seq = self.n_rows
        times = {"t_utc_ns": self.begins_ns(seq), "t_mono_ns": 0, "sample_index": seq * SPEC.hop}
        about = {"seq": seq, "epoch": self.epoch, "shape": (len(values),)}
        header = SpectrumHeader(**(_DESCRIBED | times | about | (fields or {})))
        self.sent.append(encode(Frame(TOPIC, header, np.asarray(values, np.float32))))
        self.n_rows += 1
        return self.sent[-1]

    def begins_ns(self, seq):
        """Return the time of a row's first sample."""
        return self._begin_ns + round(seq * 100_000_000)

    def middle_ms(self, seq):
        """Return the time of a row's middle."""
        return self.begins_ns(seq) / 1e6 + 50.0

    def _publish(self, socket):
        self._note_subscriptions(socket)
        self._beat(socket)
        for _ in range(round(BEATS_S / LIVE_S)):
            if self.live is not None:
                socket.send_multipart(self._row(self.live(), self.fields))
            with contextlib.suppress(queue.Empty):
                make = self._waiting.get(timeout=LIVE_S)
                while True:
                    socket.send_multipart(make())
                    make = self._waiting.get_nowait()

    def _note_subscriptions(self, socket):
        while socket.poll(0, zmq.POLLIN):
            kind, *prefix = socket.recv()
            (self.subscriptions.add if kind else self.subscriptions.discard)(bytes(prefix))

    def _beat(self, socket):
        now = {"epoch": self.epoch, "seq": self._beats, "t_utc_ns": time.time_ns()}
        self._beats += 1
        usual = {"t_mono_ns": 0, "state": "running", "frames": self.n_rows}
        beat = HeartbeatHeader(**(now | usual | self.beat_fields))
        about = {"device": "made up", "channels": 1, "channel_names": ("0",)}
        meta = MetaHeader(**(now | _DESCRIBED | about | self.meta_fields))
        topic = TOPIC.replace("spec/", "meta/")
        socket.send_multipart(encode(Meta(topic, meta, 10.0 * np.arange(SPEC.n_values))))
        socket.send_multipart(encode(Heartbeat("hb/mic/", beat)))

    def _answer(self, socket):
        """Answer one request as docs/control.md says of ``replay``."""
        if not socket.poll(50):
            return
        peer, text = socket.recv_multipart()
        asked = json.loads(text)
        params = asked["params"]
        rows = self.sent[params["first_seq"] :]
        found = rows[: params["limit"]]
        about = {"epoch": self.epoch, "more": len(rows) > len(found)}
        result = {"parts": [len(one) for one in found], **about}
        reply = {"v": 1, "id": asked["id"], "ok": True, "result": result}
        flat = [part for one in found for part in one]
        socket.send_multipart([peer, json.dumps(reply).encode(), *flat])
