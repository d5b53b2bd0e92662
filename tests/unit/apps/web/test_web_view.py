"""Texts of pages: what is accepted, and each refusal with its rule."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.apps.web.limits import Limits
from spectrod.apps.web.page_view import Acknowledgement, HoldReset, View, parse_text
from spectrod.lib.errors import ConfigError

STREAM = {"id": 1, "topic_id": 2, "f0": 0, "f1": 24000, "px": 1200}


def view(*streams, **fields):
    text = {"op": "view", "generation": 3, "streams": streams, **fields}
    return json.dumps(text, separators=(",", ":"))


def test_what_a_page_leaves_out_has_its_default():
    """A stream without wishes is the maximum of rows, in bytes, on a linear axis."""
    parsed = parse_text(view(STREAM), Limits())
    assert isinstance(parsed, View)
    assert (parsed.generation, parsed.visible, parsed.values) == (3, True, None)
    (wish,) = parsed.streams
    assert (wish.axis, wish.of, wish.stat, wish.bits, wish.measure) == (
        *("linear", "rows", "max", 8),
        None,
    )


def test_other_texts_are_told_apart_by_op():
    """Acknowledgements and resets are what they say."""
    assert parse_text('{"op": "ack", "message": 7}', Limits()) == Acknowledgement(7)
    assert parse_text('{"op": "reset", "topic_id": 7}', Limits()) == HoldReset(7)


def test_fields_of_later_versions_are_left_out():
    """A page that knows more than the server is served what both know."""
    parsed = parse_text(view(STREAM | {"glow": 3}, mood="blue"), Limits())
    assert len(parsed.streams) == 1


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`"),
        ('{"op": "dance"}', "Invalid value 'dance'"),
        ('{"op": "view"}', "missing required field `generation`"),
        ('{"op": "view", "generation": -1}', "`int` >= 0"),
        (view(STREAM | {"id": 256}), "`int` <= 255"),
        (view(STREAM | {"px": 0}), "`int` >= 1"),
        (view(STREAM | {"px": 4097}), "`int` <= 4096"),
        (view(STREAM | {"f0": 1e300}), "`float` <= 2000000000000.0"),
        (view(STREAM | {"f0": 24000}), "stream 1: f0=24000, f1=24000: f0 must be below f1"),
        (view(STREAM | {"rows_s": 0}), "`float` >= 0.01"),
        (view(STREAM | {"bits": 12}), "Invalid enum value 12"),
        (view(STREAM | {"axis": "bark"}), "Invalid enum value 'bark'"),
        (view(STREAM | {"of": "median"}), "Invalid enum value 'median'"),
        (view(STREAM | {"decay_db_s": 1001}), "`float` <= 1000.0"),
        (view(STREAM | {"hold_s": -1}), "`float` >= 0.0"),
        (view(STREAM | {"time_constant_s": 3601}), "`float` <= 3600.0"),
        (view(STREAM | {"measure": {"peaks": 51}}), "`int` <= 50"),
        (view(STREAM | {"measure": {"cursors": [1] * 9}}), "length <= 8"),
        (view(STREAM | {"measure": {"bands": [[1, 2]] * 9}}), "length <= 8"),
        (view(STREAM | {"measure": {"bands": [[2, 1]]}}), "f0=2, f1=1: f0 must be below f1"),
        (view(STREAM, STREAM), "streams: ids [1, 1] must differ"),
        (view(*[STREAM | {"id": k} for k in range(41)]), "41 streams: must be at most 40"),
        (view(values=[1] * 4097), "length <= 4096"),
        ('{"op": "ack", "message": 4294967296}', "`int` <= 4294967295"),
        ('{"op": "ack", "message": 1.5}', "Expected `int`"),
        (view(STREAM | {"f0": float("nan")}), "JSON is malformed"),
        ("[" * 10000, "text: "),
        ("x" * 16385, "text of 16385 bytes: must have at most 16384"),
        ('{"op": "view", "generation": 1, "\ud800": 1}', "text: "),
    ],
)
def test_each_rule_is_named(text, rule):
    """A text that breaks a rule is refused with the value and the rule."""
    with pytest.raises(ConfigError) as error:
        parse_text(text, Limits())
    assert rule in str(error.value)
    assert len(str(error.value)) <= 300


ANYTHING = st.sampled_from(
    [None, True, -1, 0, 2**64, 1e308, -0.5, "", "log", [], [[]], {}, [1, 2], [[2, 1]], {"peaks": 3}]
)


@settings(max_examples=100)
@given(st.sampled_from([*STREAM, "axis", "of", "stat", "rows_s", "bits", "measure"]), ANYTHING)
def test_no_value_of_a_field_does_harm(name, value):
    """Whatever stands in a field, the text is a view within the bounds, or refused."""
    try:
        parsed = parse_text(view(STREAM | {name: value}), Limits())
    except ConfigError as error:
        assert str(error)  # noqa: PT017 - either outcome is right
        return
    (wish,) = parsed.streams
    assert wish.f0 < wish.f1
    assert 1 <= wish.px <= 4096
    assert wish.rows_s >= 0.01


@settings(max_examples=100)
@given(st.binary(max_size=100))
def test_bytes_that_are_no_text_are_refused(data):
    """Nothing but JSON is a text."""
    with pytest.raises(ConfigError, match="text: "):
        parse_text(b"\xff" + data, Limits())
