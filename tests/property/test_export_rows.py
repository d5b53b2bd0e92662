import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.export.export_options import ExportOptions
from spectrod.recording.inputs import open_recording
from spectrod.recording.output_plan import make_data

SPEC = SpectrumSpec(fs=8000.0, win_length=16, hop=4, nfft=16)
ABOUT = Description(SPEC, "any", ("1",), "spectrod")
INT64 = st.integers(-(2**63), 2**63 - 1)
UTC_NS = st.integers(0, 4 * 10**18)


@st.composite
def batches(draw):
    """Generate batches of any rows and bits with any gaps before them."""
    n = draw(st.integers(0, 6))
    bits = draw(st.binary(min_size=36 * n, max_size=36 * n))
    numbers = {
        name: np.array(draw(st.lists(of, min_size=n, max_size=n)), np.int64)
        for name, of in (("sample_index", INT64), ("t_mono_ns", INT64), ("t_utc_ns", UTC_NS))
    }
    return SpectrumBatch(
        np.frombuffer(bits, np.float32).reshape(n, 1, 9),
        spec=SPEC,
        engine=draw(st.sampled_from(["numpy", "opencl", ""])),
        gap_samples=draw(st.integers(0, 2**63 - 1)),
        discontinuity=draw(st.booleans()),
        skipped_rows=draw(st.integers(0, 2**63 - 1)),
        cut_frames=draw(st.integers(0, 2**31 - 1)) if n == 1 else 0,
        conditions=draw(st.none() | st.binary(min_size=n, max_size=n).map(conditions_of)),
        **numbers,
    )


def conditions_of(flags):
    return np.frombuffer(flags, np.uint8)[:, np.newaxis]


def rows_of(some):
    """Return all fields of each row, with the gap before it."""
    for batch in some:
        for k in range(batch.n_frames):
            before = (batch.gap_samples, batch.discontinuity, batch.skipped_rows, batch.cut_frames)
            yield (
                batch.values[k].tobytes(),
                int(batch.sample_index[k]),
                int(batch.t_mono_ns[k]),
                int(batch.t_utc_ns[k]),
                batch.engine,
                0 if batch.conditions is None else int(batch.conditions[k, 0]),
                before if k == 0 else (0, False, 0, 0),
            )


@pytest.mark.slow
@given(st.lists(batches(), max_size=5).filter(lambda some: any(b.n_frames for b in some)))
def test_any_rows_come_back(tmp_path_factory, some):
    """Any rows survive export, with the bits of NaN and the largest gaps."""
    path = tmp_path_factory.mktemp("x") / "x.npz"
    writer = make_data(path, ABOUT, ExportOptions(compression=0))
    for batch in some:
        writer.write(batch)
    writer.finish()
    reader = open_recording(path)
    assert list(rows_of(reader.batches())) == list(rows_of(some))
    reader.close()
