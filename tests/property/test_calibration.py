"""Calibration files of any content: read exactly, or refused in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spectrod.dsp.calibration.file import load_calibration
from spectrod.dsp.calibration.response_text import parse_response
from spectrod.lib.errors import ConfigError

levels = st.floats(-99.0, 99.0).map(lambda value: round(value, 4))
frequencies = st.lists(
    st.floats(0.01, 1e6).map(lambda value: round(value, 2)), min_size=1, max_size=30, unique=True
).map(sorted)


def outcome(read: Callable[[Any], Any], given: Any) -> tuple[Any, str]:
    """Return what is read, or None and the text of the error."""
    try:
        return read(given), ""
    except ConfigError as error:
        return None, str(error)


@given(
    frequencies,
    st.data(),
    st.sampled_from(["\t", " ", "  ", ";"]),
    st.sampled_from(".,"),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_rows_are_read_as_they_are_written(hz, data, separator, point, end, has_phase) -> None:
    """Numbers keep value and sign in every dialect."""
    rows = [(f, data.draw(levels)) for f in hz]
    lines = [
        separator.join([repr(f), repr(db), *(["12.5"] if has_phase else [])]).replace(".", point)
        for f, db in rows
    ]
    assert parse_response(end.join(["* comment", *lines]).encode()) == rows


@given(st.binary(max_size=200) | st.text("0123456789.,;- \t\r\n#e+", max_size=200).map(str.encode))
def test_any_text_is_read_or_refused(content) -> None:
    """No content fails otherwise than by a ConfigError of one line."""
    rows, message = outcome(parse_response, content)
    assert "\n" not in message
    assert all(len(row) == 2 for row in rows or [])


@given(
    st.dictionaries(
        st.sampled_from(
            ["reference", "sensitivity", "gain_db", "full_scale_v", "full_scale_db", "full_scale"]
        ),
        st.sampled_from(
            [
                '"20 uPa"',
                '"1 V"',
                '"50 mV/Pa"',
                '"rms"',
                "1.0",
                "-1e300",
                "nan",
                "inf",
                "true",
                "[]",
            ]
        ),
    )
)
def test_any_keys_are_read_or_refused(tmp_path_factory, keys) -> None:
    """A level of full scale is finite and within its bounds, or the file is refused."""
    path = Path(tmp_path_factory.getbasetemp()) / "any.toml"
    path.write_text("\n".join(f"{key} = {value}" for key, value in keys.items()))
    found, message = outcome(load_calibration, path)
    if found is None:
        assert message.startswith(str(path))
        assert "\n" not in message
    else:
        assert found.base is not None
        assert -200.0 <= found.base.full_scale_db <= 300.0
