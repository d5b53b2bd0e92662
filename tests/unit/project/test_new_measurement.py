"""A new kind of measurement is written in four modules and appears everywhere by itself."""

import json
import subprocess
import sys

import pytest

from spectrod.measure.measurement_config import MeasurementConfig

SETTINGS = '''
"""The loudest bin of an interval: a kind of measurement that only a test has."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from spectrod.measure.frame_meter import FrameMeter
from spectrod.measure.frames_config import FramesConfig
from spectrod.measure.measurement_config import BoundMeter


@dataclass(frozen=True)
class Quantity:
    name: str = "loudest"
    unit: str = "Hz"
    is_of_all_channels: bool = False


class Tally:
    quantities, tables = (Quantity(),), ()

    def __init__(self, spec):
        self._spec = spec
        self.clear()

    def clear(self):
        self._sum = np.zeros((self._spec.n_signals, self._spec.n_bins))

    def skip(self, n_intervals):
        pass

    def interrupt(self):
        pass

    def add(self, rows):
        self._sum += rows.sum(axis=0, dtype=np.float64)

    def values(self):
        return self._spec.bin_frequencies[np.argmax(self._sum, axis=-1)][np.newaxis]


class LoudestConfig(FramesConfig, frozen=True):
    title = "Loudest bins"

    def check(self, fs, channels, *, iq):
        if fs is not None:
            self.spec(fs, channels or 1, iq=iq)

    def bind(self, signals):
        spec = self.spec_of(signals)
        fields = self.header_fields(spec)
        return BoundMeter(signals, partial(self._open, spec), self.facts(spec), fields)

    def _open(self, spec, first_sample):
        return FrameMeter(
            spec,
            Tally(spec),
            interval_s=self.interval_s,
            align=self.align,
            first_sample=first_sample,
        )
'''
INSERTED = {
    "spectrod.measure.kinds": {
        '    "transfer": TransferConfig,\n': (
            '    "transfer": TransferConfig,\n    "loudest": LoudestConfig,\n'
        ),
        "from spectrod.measure.measurement_config import": (
            "from spectrod.measure.loudest_config import LoudestConfig\n"
            "from spectrod.measure.measurement_config import"
        ),
    },
    "spectrod.wire.headers": {
        "class TonesHeader(": (
            "class LoudestHeader(_FramesHeader, frozen=True, kw_only=True):\n"
            '    """Loudest bin of one channel in one interval."""\n\n'
            '    schema: Literal["spectrod.loudest"] = "spectrod.loudest"\n\n\n'
            "class TonesHeader("
        ),
        '    "transfer": TransferHeader,\n': (
            '    "transfer": TransferHeader,\n    "loudest": LoudestHeader,\n'
        ),
    },
}
"""The edits that add the kind, by module: existing text and its replacement."""

SCRIPT = """
import importlib.abc, importlib.machinery, importlib.util, json, sys
from pathlib import Path

inserted, settings, folder = json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3])

class Inserting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "spectrod.measure.loudest_config":
            text = settings
        elif name in inserted:
            text = Path(importlib.machinery.PathFinder.find_spec(name, path).origin).read_text()
            for old, new in inserted[name].items():
                assert old in text, (name, old)
                text = text.replace(old, new)
        else:
            return None
        # A file of its own: Python 3.13 finds the source of a class by its line.
        edited = folder / f"{name}.py"
        edited.write_text(text)
        return importlib.util.spec_from_file_location(name, edited)

sys.meta_path.insert(0, Inserting())

import contextlib, csv, io
import h5py
import spectrod.cli
from spectrod.apps.web.page_topics import TopicTable
from spectrod.apps.web.page_values import values_fields
from spectrod.apps.ctl.ctl_replay import frame_text
from spectrod.apps.view.live import values_prefix
from spectrod.apps.view.meters import Meters
from spectrod.client import Control, subscribe
from spectrod.client.rpc_codec import messages_of
from spectrod.config import config
from spectrod.daemon.control.controlled import ControlledDaemon
from spectrod.daemon.daemon import build_daemon
from spectrod.wire.jsonschema import schemas
from spectrod.wire.schema import decode

def load():
    return config.load(str(file))

file = folder / "c.toml"
file.write_text(f'''
[source]
uri = "signal:sine,1000,-20"
[engine]
engine = "numpy"
[publish]
endpoints = ["tcp://127.0.0.1:*"]
[control]
endpoints = ["ipc://{folder}/c.ipc"]
[loudest.top]
interval_s = 0.125
win_length = 480
[recordings.table]
product = "top"
folder = "{folder}/recordings"
values = "csv"
[recordings.file]
product = "top"
folder = "{folder}/recordings"
values = "nc"
''')
written = config.to_toml(load())
daemon = ControlledDaemon(build_daemon(load()), load(), load)
daemon.start()
with Control(daemon.endpoints[0], timeout_s=20) as control:
    (endpoint,) = control.call("status")["daemon"]["publish"]
    prefix = values_prefix("loudest", "spec/")
    with subscribe(endpoint, prefix, timeout_s=20) as frames:
        received = [next(frames) for _ in range(4)]
    topic = received[0].topic
    result, parts = control.call_parts("replay", topic=topic, first_seq=1, limit=1)
    ((message,), _) = messages_of(result, parts)
    lines = control.call("set", changes={"loudest.top.interval_s": 0.25})
    interval_s = control.call("get", key="loudest.top.interval_s")
daemon.stop()
frame = received[-1]
meters, topics = Meters(), TopicTable()
meters.hear(frame, 0.0)
info = topics.note_frame(endpoint, frame, 0.0)
table = min(folder.glob("recordings/**/*.csv"))  # rows of another interval begin a new file
netcdf = min(folder.glob("recordings/**/*.nc"))
rows = [line for line in table.read_text().splitlines() if not line.startswith("#")]
with h5py.File(netcdf) as stored:
    loudest, title = float(stored["loudest"][1, 0]), stored.attrs["title"]
spectrod.cli._COMMANDS["loudest"] = "find the loudest bin of intervals"
spectrod.cli._MODULES["loudest"] = "apps.measurements.intervals"
with contextlib.redirect_stdout(io.StringIO()) as printed:
    flags = ["--win-length", "480", "--interval", "500ms", "--align", "start", "--duration", "1"]
    assert spectrod.cli.main(["loudest", "signal:sine,1000,-20", *flags]) == 0
print(json.dumps({
    "settings": "[loudest.top]" in written,
    "topic": topic,
    "value": frame["loudest"],
    "schema": frame.header.schema,
    "window": frame.header.window,
    "set": (lines[0], interval_s),
    "replayed": decode(message)["loudest"],
    "ctl": frame_text(frame).split()[2:],
    "schemas": "loudest" in schemas(),
    "terminal": meters.lines("signal/0", 0.0),
    "page": (info.kind, info.interval_s, values_fields(1, frame)["names"]),
    "command": [line.split()[2:] for line in printed.getvalue().splitlines()[2:]],
    "csv": list(csv.DictReader(rows))[1]["loudest"],
    "netcdf": loudest,
    "title": title if isinstance(title, str) else title.decode(),
}))
"""


@pytest.mark.slow
def test_a_new_kind_of_measurement_appears_everywhere(tmp_path):
    """A new kind is configured, measured, sent, recorded, replayed and shown."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(INSERTED), SETTINGS, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loudest_hz = 11 * 48000 / 512
    assert json.loads(run.stdout) == {
        "settings": True,
        "topic": "loudest/signal/0/top/",
        "value": loudest_hz,
        "schema": "spectrod.loudest",
        "window": "hann",
        "set": ["loudest.top.interval_s: 0.125 -> 0.25", 0.25],
        "replayed": loudest_hz,
        "ctl": ["loudest", "1031.25", "Hz"],
        "schemas": True,
        "terminal": ["top  loudest 1031.2 Hz"],
        "page": ["loudest", 0.125, ["loudest"]],
        "command": [["1031.25"], ["1031.25"]],
        "csv": "1031.25",
        "netcdf": loudest_hz,
        "title": "Loudest bins of test signal sine,1000,-20",
    }


def test_a_kind_that_opens_no_meter_cannot_be_made():
    """Settings of a kind must check themselves and bind to signals."""

    class Incomplete(MeasurementConfig, frozen=True):
        title = "Nothing"

    with pytest.raises(TypeError, match=r"abstract methods '?bind'?, '?check'?"):
        Incomplete("a")
