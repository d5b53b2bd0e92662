import pytest

from spectrod.apps.view.keyboard import KeyParser


def keys_of(*inputs):
    parser, keys = KeyParser(), []
    for data in inputs:
        parser.feed(data)
        keys += iter(parser.next, "")
    return keys, list(parser.replies)


@pytest.mark.parametrize(
    ("inputs", "keys", "replies"),
    [
        ([b"ab"], ["a", "b"], []),
        ([b"\x1b[A\x1bOB", b"q"], ["up", "down", "q"], []),
        ([b"\x1b", b"[", b"C"], ["right"], []),
        ([b"\x1b[?62;4c5"], ["5"], [b"\x1b[?62;4c"]),
        ([b"\x1b_Gi=31;OK\x1b\\x"], ["x"], [b"\x1b_Gi=31;OK\x1b\\"]),
        ([b"\x1b_Gi=31;", b"OK\x1b\\"], [], [b"\x1b_Gi=31;OK\x1b\\"]),
        ([b"\x1bx", b"y"], ["y"], [b"\x1bx"]),
        ([b"\xff"], ["\ufffd"], []),
        ([b"\x1b]0;" + b"x" * 300, b"q"], ["q"], []),
    ],
)
def test_keys_and_replies_are_told_apart(inputs, keys, replies):
    """Sequences, also in pieces, are arrows or replies, and never keys of their characters."""
    assert keys_of(*inputs) == (keys, replies)


def test_a_sequence_without_end_is_dropped():
    """A sequence whose rest does not come in time swallows no later key."""
    parser = KeyParser()
    parser.feed(b"\x1b[")
    parser.expire()
    parser.feed(b"q")
    assert parser.next() == "q"


def test_replies_are_bounded():
    """A flood of replies keeps the newest."""
    _, replies = keys_of(b"\x1b[1n" * 1000 + b"\x1b[2n")
    assert len(replies) == 16
    assert replies[-1] == b"\x1b[2n"
