"""What is compiled before samples wait for it."""

import numpy as np
import pytest

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.analysis.stream import FrameStream
from spectrod.analysis.warm_up import warm_up
from spectrod.types import Block, SpectrumSpec


@pytest.mark.slow
def test_what_was_compiled_is_kept_before_the_first_samples(opencl_device, tmp_path, monkeypatch):
    """Afterwards the cache holds all programs: neither the first frame nor the end adds one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine = OpenCLEngine(opencl_device)
    spec = SpectrumSpec(48000.0, 2, win_length=250, hop=100)
    warm_up(engine, spec)
    kept = sorted(tmp_path.rglob("*"))
    assert len(kept) > 1
    stream = FrameStream(spec, engine)
    assert stream.push(Block(np.ones((2, 2000), np.float32), 0, 0, 0))
    engine.close()
    assert sorted(tmp_path.rglob("*")) == kept


@pytest.mark.parametrize("hop", [1, 1 << 20])
def test_hops_of_any_length_are_warmed_up(hop):
    """Long hops take no memory for many frames of them."""
    warm_up(NumpyEngine(), SpectrumSpec(48000.0, 3, win_length=17, hop=hop))
