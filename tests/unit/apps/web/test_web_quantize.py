"""Levels as integers: their error, missing values, and the range of bytes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from spectrod.apps.web.quantize import (
    BYTE_STEP_DB,
    CODE_STEP_DB,
    ByteRange,
    code_levels,
    to_bytes,
    to_codes,
    wire_bytes,
)

FLOAT32_DB = 1e-4  # rounding of float32 near 65535 steps and 327 dB
LEVELS = arrays.arrays(
    np.float32,
    st.integers(1, 40),
    elements=st.floats(-320.0, 320.0, width=32) | st.just(math.nan),
)


@settings(max_examples=40)
@given(LEVELS)
def test_codes_are_within_half_a_step(levels):
    """A level and its code differ by at most half a step, and no data stays no data."""
    back = code_levels(to_codes(levels))
    assert np.array_equal(np.isnan(back), np.isnan(levels))
    error = np.nan_to_num(np.abs(back.astype(np.float64) - levels))
    assert np.all(error <= CODE_STEP_DB / 2 + 40 * FLOAT32_DB)


@settings(max_examples=40)
@given(LEVELS, st.integers(-60, 0))
def test_bytes_are_within_half_a_step_in_their_range(levels, lo_steps):
    """A byte is within half a step of a level in its range; those beyond are at its ends."""
    lo_db = 5.0 * lo_steps
    bytes_ = to_bytes(levels, lo_db)
    assert np.array_equal(bytes_ == 0, np.isnan(levels))
    back = lo_db + (bytes_[bytes_ > 0] - 1.0) * BYTE_STEP_DB
    nearest = np.clip(levels[bytes_ > 0].astype(np.float64), lo_db, lo_db + 127.0)
    assert np.all(np.abs(back - nearest) <= BYTE_STEP_DB / 2 + FLOAT32_DB)


def test_infinite_levels_are_at_the_ends():
    """Digital silence is the lowest code and byte, an infinite level the highest."""
    levels = np.array([-np.inf, np.inf, -1e30, 1e30], np.float32)
    assert to_codes(levels).tolist() == [1, 65535, 1, 65535]
    assert to_bytes(levels, -120.0).tolist() == [1, 255, 1, 255]


def test_the_wire_has_no_data_as_the_protocol_says():
    """65535 of u16, 0 of u8; the level of q is -327.67 + 0.01 q dB."""
    codes = to_codes(np.array([np.nan, -327.67, -20.0], np.float32))
    assert np.frombuffer(wire_bytes(codes), "<u2").tolist() == [65535, 0, 30767]
    some = to_bytes(np.array([np.nan, -120.0, -20.0], np.float32), -120.0)
    assert list(wire_bytes(some)) == [0, 1, 201]


@settings(max_examples=40)
@given(LEVELS, LEVELS)
def test_a_maximum_may_be_taken_of_integers(one, other):
    """The integers of the greater levels are the greater integers, missing ones the least."""
    n = min(len(one), len(other))
    one, other = one[:n], other[:n]
    greater = np.fmax(one, other)
    assert np.array_equal(to_codes(greater), np.maximum(to_codes(one), to_codes(other)))
    of_bytes = np.maximum(to_bytes(one, -120.0), to_bytes(other, -120.0))
    assert np.array_equal(to_bytes(greater, -120.0), of_bytes)


def codes(*levels):
    return to_codes(np.array(levels, np.float32))


@settings(max_examples=40)
@given(st.lists(st.floats(-200.0, 200.0, width=32), min_size=1, max_size=100))
def test_the_range_always_contains_the_highest_level(highest):
    """In any order of rows, no row's highest level is above the range that it is in."""
    byte_range = ByteRange()
    for level in highest:
        byte_range.include(codes(level, -327.0, math.nan))
        assert level <= byte_range.lo_db + 127.0 + CODE_STEP_DB
        assert byte_range.lo_db % 1.0 == 0.0


def test_the_range_moves_down_after_64_rows_in_its_lower_half():
    """A tone that ends does not move it at once, and one that comes back in time not at all."""
    byte_range = ByteRange()
    byte_range.include(codes(0.0))
    first = byte_range.lo_db
    for _ in range(63):
        byte_range.include(codes(-90.0))
    byte_range.include(codes(0.0))
    assert byte_range.lo_db == first
    for k in range(64):
        assert byte_range.lo_db == first, k
        byte_range.include(codes(-90.0))
    assert byte_range.lo_db == -70.0 - 127.0


def test_rows_without_data_leave_the_range():
    """There is none before the first data, and later rows without any do not move it."""
    byte_range = ByteRange()
    byte_range.include(codes(math.nan))
    assert math.isnan(byte_range.lo_db)
    byte_range.include(codes(-30.0))
    byte_range.include(codes(math.nan))
    assert byte_range.lo_db == -10.0 - 127.0


def test_the_range_ends_where_a_unit_does():
    """A level in dBFS leaves no room above 10 dB that only the noise floor could use."""
    byte_range = ByteRange(top_max_db=10.0)
    byte_range.include(codes(0.0))
    assert byte_range.lo_db == pytest.approx(10.0 - 127.0)
