"""Messages of the server: their bytes, and that the page's golden ones are up to date."""

import importlib.util
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from spectrod.apps.web.messages import RowsBlock, StreamRow, encode_rows, encode_text

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_pages import decode

PAGE_TESTS = Path(__file__).parents[3] / "page"


def golden():
    path = PAGE_TESTS / "make_golden.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_golden_messages_are_those_of_the_server():
    """The files that the page's tests read are what the server sends now."""
    module = golden()
    made = module.make_all()
    there = {path.name: path.read_bytes() for path in module.FOLDER.iterdir()}
    assert sorted(there) == sorted(made)
    assert there == made, "run python tests/page/make_golden.py"


def test_bytes_of_a_message_are_as_the_protocol_says():
    """Every field has its place and width; values are padded to four bytes."""
    row = StreamRow(2**32 + 1, 2, 3, 9, 1.5, 7, b"abc")
    message = encode_rows(5, [RowsBlock(4, 70000, 3, 8, [row])], 6)
    assert message[:8] == bytes([1, 1, 1, 0, 5, 0, 0, 0])
    assert message[8:24] == bytes([4, 0, 70000 % 256, 70000 // 256 % 256]) + bytes(
        [1, 0, 8, 0, 3, 0, 0, 0, 6, 0, 0, 0]
    )
    assert message[24:40] == bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 9, 0, 0, 0, 0, 0])
    assert np.frombuffer(message[40:56], "<f8").tolist() == [1.5, 7.0]
    assert message[56:] == b"abc\0"


@pytest.mark.parametrize("n_values", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("bits", [8, 16])
def test_blocks_follow_each_other_at_four_bytes(bits, n_values):
    """Rows of any length in two blocks are read as they were."""
    values = np.arange(3 * n_values, dtype=f"<u{bits // 8}").reshape(3, n_values)
    rows = [StreamRow(k, 0, 1, 0, float(k), 0, values[k].tobytes()) for k in range(3)]
    blocks = [RowsBlock(1, 1, n_values, bits, rows), RowsBlock(2, 1, n_values, bits, rows[:1])]
    number, found = decode(encode_rows(2**32 + 3, blocks, 0))
    assert number == 3
    assert [row["stream"] for row in found] == [1, 1, 1, 2]
    assert np.array_equal([row["values"] for row in found[:3]], values)


def test_counts_that_do_not_fit_are_at_their_greatest():
    """More losses than 32 bits hold are 2^32 - 1, not a small number."""
    row = StreamRow(0, 2**40, 2**20, 0, 0.0, 0, b"")
    _, (found,) = decode(encode_rows(1, [RowsBlock(1, 1, 0, 8, [row])], 2**40))
    assert (found["missed"], found["merged"]) == (2**32 - 1, 2**16 - 1)
    assert found["client_dropped"] == 2**32 - 1


def test_texts_are_json_without_nan():
    """What is not finite is null, which every browser reads."""
    text = encode_text("values", values=[1.5, math.nan, math.inf])
    assert json.loads(text) == {"op": "values", "values": [1.5, None, None]}
