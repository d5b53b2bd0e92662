"""A new analysis parameter is written in three modules and appears everywhere by itself."""

import json
import subprocess
import sys

import pytest

FIELD = '    detrend: str = "none"\n'
INSERTED = {
    "spectrod.dsp.spectrum": {
        "    broadband: bool = False\n    taper": f"    broadband: bool = False\n{FIELD}    taper",
        "    iq: bool\n": "    iq: bool\n    detrend: str\n",
    },
    "spectrod.config.settings": {
        "    weighting: Annotated[\n": (
            '    detrend: Annotated[str, flag("KIND", "what is subtracted")] = "none"\n'
            "    weighting: Annotated[\n"
        )
    },
    "spectrod.wire.headers": {'    align: str = "start"\n': f'    align: str = "start"\n{FIELD}'},
}
"""The edits that add the field, by module: existing text and its replacement."""

SCRIPT = """
import importlib.abc, importlib.machinery, importlib.util, json, sys
from pathlib import Path

inserted = json.loads(sys.argv[1])

class Inserting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in inserted:
            return None
        text = Path(importlib.machinery.PathFinder.find_spec(name, path).origin).read_text()
        for old, new in inserted[name].items():
            assert old in text, (name, old)
            text = text.replace(old, new)
        # A file of its own: Python 3.13 finds the source of a class by its line.
        edited = Path(sys.argv[2], f"{name}.py")
        edited.write_text(text)
        return importlib.util.spec_from_file_location(name, edited)

sys.meta_path.insert(0, Inserting())

import argparse, inspect, types
import numpy as np
import spectrod
from spectrod.cli import options
from spectrod.cli.picture_options import like
from spectrod.config.config import load
from spectrod.formats.export.attributes import global_attributes
from spectrod.formats.picture import pixelmap
from spectrod.formats.description import Description, spec_fields, stored_spec
from spectrod.recording.remote import _spec_of
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.wire.jsonschema import schemas
from spectrod.daemon.publisher.queue import QueuedFrame
from spectrod.wire.schema import decode
from spectrod.daemon.publisher.topic_encoder import TopicEncoder

file = Path(sys.argv[2], "c.toml")
file.write_text('[analysis]\\ndetrend = "mean"\\n[products.slow]\\ndetrend = "linear"\\n')
(table,) = load(str(file)).all_sources
spec, slow = table.specs(48000.0, 1)
parser = argparse.ArgumentParser()
options.add_analysis(parser)
given = parser.parse_args(["--detrend", "mean"])
stream = TopicEncoder("roof", ["0"], spec, "numpy")
meta = decode(stream.description("meta/roof/0/dbfs/", 0, 0, "a file")).header
sent = types.SimpleNamespace(header=meta, product="dbfs", values=range(spec.n_values), topic="")
index = np.zeros(1, np.int64)
batch = SpectrumBatch(np.zeros((1, 1, spec.n_values), np.float32), index, index, index, spec, "")
about = pixelmap.Recording(spec, "numpy", 0, 0, 0, "spectrod").facts()
place = dict(plots=((0, 0, 1, 1),), f_scale="linear", f_min_hz=0, f_max_hz=1, duration_s=1,
             level_min=0, level_max=1, level_unit="dBFS", n_levels=2)
picture = Path(sys.argv[2], "x.svg")
text = pixelmap.PixelMap(**place, **about).to_json()
head = '<?xml version="1.0"?><svg><metadata id="spectrod">'
picture.write_text(head + text + "</metadata></svg>")
print(json.dumps({
    "file": spec.detrend,
    "product": slow.detrend,
    "flag": options.flags(given)["analysis"]["detrend"],
    "signatures": [inspect.signature(one).parameters["detrend"].default
                   for one in (spectrod.spectrogram, spectrod.Stft)],
    "description": meta.detrend,
    "header": json.loads(stream.headers(QueuedFrame(batch, 0, 0, 0), 0)[0])["detrend"],
    "schemas": sorted(name for name, one in schemas().items() if "detrend" in one["properties"]),
    "received": _spec_of(sent, {"0": meta}).detrend,
    "stored": stored_spec(spec_fields(spec)).detrend,
    "exported": global_attributes(Description(spec, "roof", ("0",), "spectrod"), {})["detrend"],
    "like": like(picture)["detrend"],
}))
"""


@pytest.mark.slow
def test_a_new_parameter_appears_everywhere(tmp_path):
    """A new field appears in configuration, flags, signatures, messages, schemas and files."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(INSERTED), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {
        "file": "mean",
        "product": "linear",
        "flag": "mean",
        "signatures": ["none", "none"],
        "description": "mean",
        "header": "mean",
        "schemas": ["bands", "meta", "spectrum"],
        "received": "mean",
        "stored": "mean",
        "exported": "mean",
        "like": "mean",
    }
