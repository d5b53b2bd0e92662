"""Messages and rows of made-up topics, for tests of the page's server."""

import sys
from pathlib import Path

import numpy as np

from spectrod.apps.web.page_rows import RowMaker
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.wire.headers import BandsHeader, SpectrumHeader
from spectrod.wire.schema import BandFrame, Frame

sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))
from made_up import SPECTRUM

ENDPOINT = "tcp://127.0.0.1:5556"
TOPIC = TopicInfo(3, "spec/mic/0/dbfs/", "spec", ENDPOINT, "mic", "0", "dbfs", "dBFS", 48000.0)
COMMON = SPECTRUM | {"epoch": 1, "t_mono_ns": 0, "sample_index": 0}
ROW_NS = 20_000_000


def frame(values, seq=0, *, missed=0, restarted=False, **fields):
    """Return a message of 50 rows a second; its bins are 0 Hz to half the sample rate."""
    values = np.asarray(values, np.float32)
    nfft = 2 * (len(values) - 1)
    lengths = {"win_length": nfft, "nfft": nfft, "hop": 960, "shape": (len(values),)}
    times = {"seq": seq, "t_utc_ns": seq * ROW_NS}
    header = SpectrumHeader(**(COMMON | lengths | times | fields))
    return Frame(TOPIC.topic, header, values, missed=missed, restarted=restarted)


def band_frame(values, seq=0, **fields):
    """Return a message of a topic in bands."""
    values = np.asarray(values, np.float32)
    lengths = {"win_length": 64, "nfft": 64, "hop": 960, "shape": (len(values),)}
    bands = {"bands": "third-octave", "n_bands": len(values)}
    header = BandsHeader(**(COMMON | lengths | bands | {"seq": seq, "t_utc_ns": 0} | fields))
    return BandFrame("bands/mic/0/thirds/", header, values)


def make_rows(*frames):
    """Return the rows of messages of one topic."""
    maker = RowMaker(TOPIC)
    return [maker.make(one, None) for one in frames]
