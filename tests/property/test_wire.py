import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from spectrod.lib.errors import WireError
from spectrod.wire.schema import Frame, SpectrumHeader, decode, encode

counts = st.integers(0, 2**63 - 1)
times = st.integers(-(2**63) + 1, 2**63 - 1)  # -2^63 is NumPy's "not a time"
hertz = st.floats(1e-3, 1e9)
texts = st.text(max_size=40)


@st.composite
def frames(draw):
    nfft = draw(st.integers(1, 300))
    n_bins = nfft // 2 + 1
    header = SpectrumHeader(
        seq=draw(counts),
        epoch=draw(counts),
        t_utc_ns=draw(times),
        t_mono_ns=draw(counts),
        sample_index=draw(counts),
        fs=draw(hertz),
        win_length=draw(st.integers(1, nfft)),
        nfft=nfft,
        hop=draw(st.integers(1, 10**6)),
        window=draw(texts),
        enbw_hz=draw(hertz),
        shape=(n_bins,),
        unit=draw(texts),
        ref=draw(texts),
        cal_id=draw(st.none() | texts),
        engine=draw(texts),
        gap_samples=draw(counts),
    )
    return Frame("spec/a/0/dbfs/", header, draw(npst.arrays(np.float32, n_bins)))


@pytest.mark.slow
@given(frames())
def test_any_frame_survives_the_wire(frame):
    """Header and values of any frame, NaN and infinities included, survive bit for bit."""
    received = decode(encode(frame))
    assert received.header == frame.header
    assert received.values.tobytes() == frame.values.tobytes()


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_arbitrary_bytes_are_refused_as_a_wire_error(parts):
    """Arbitrary bytes raise nothing but a WireError."""
    with pytest.raises(WireError):
        decode(parts)


@pytest.mark.slow
@given(frames(), st.data())
def test_a_damaged_message_is_refused_or_read(frame, data):
    """A message with one changed byte is read or raises a WireError."""
    parts = encode(frame)
    which = data.draw(st.integers(0, 1))
    damaged = bytearray(parts[which])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    parts[which] = bytes(damaged)
    with contextlib.suppress(WireError):
        decode(parts)
