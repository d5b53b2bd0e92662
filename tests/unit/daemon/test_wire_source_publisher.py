"""A source's messages, without a socket: topics, counts, states."""

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from spectrod.daemon.publisher import source_publisher, topic_encoder
from spectrod.daemon.publisher.source_publisher import Outgoing, SourcePublisher
from spectrod.daemon.publisher.topic_encoder import StatedFacts
from spectrod.dsp.conditions import Condition
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError
from spectrod.lib.stats import CaptureStats, Stats
from spectrod.wire.schema import BandFrame, Frame, Meta, decode

SPEC = SpectrumSpec(fs=48000.0, channels=2, win_length=64, hop=32, scaling="dbfs")


def make_batch(n_frames=1, spec=SPEC, **counts):
    index = np.arange(n_frames) * spec.hop
    values = np.zeros((n_frames, spec.n_signals, spec.n_bins), np.float32)
    return SpectrumBatch(values, index, index, index, spec, "numpy", **counts)


def make_stats(state="running", **fields):
    return Stats(state, "test signal", "numpy", 48000.0, 2, **fields)


def make_feed(stats=make_stats, *, wake=lambda: None, queue_frames=8, **settings):
    return SourcePublisher("mic", stats, epoch=7, wake=wake, queue_frames=queue_frames, **settings)


def messages(feed):
    return [decode(parts_of(message)) for message in feed.queued()]


def parts_of(message):
    return message.parts if isinstance(message, Outgoing) else message


def test_losses_are_those_when_the_frame_came():
    """Headers carry what was flagged and what was suspected, not what comes later."""
    feed = make_feed(lambda: make_stats(overflows=99, capture=CaptureStats(suspected=99)))
    feed.write(make_batch(2, overflows=42, suspected=3))
    feed.write(make_batch(overflows=43, suspected=4))
    seen = [m.header for m in messages(feed) if isinstance(m, Frame) and m.channel == "0"]
    assert [(h.overflows, h.suspected) for h in seen] == [(42, 3), (42, 3), (43, 4)]


def test_headers_have_the_conditions_of_their_channel():
    """Each channel's message has its own; nothing is said of samples that were not checked."""
    checked, clipping = Condition.CHECKED, Condition.CHECKED | Condition.CLIPPING
    feed = make_feed()
    conditions = np.array([[checked, clipping], [checked, checked], [0, Condition.GAP]], np.uint8)
    feed.write(make_batch(3, conditions=conditions))
    feed.write(make_batch())
    seen = [(m.channel, m.conditions) for m in messages(feed) if isinstance(m, Frame)]
    unknown = [("0", None), ("1", None)]
    assert seen == [
        ("0", checked), ("1", clipping), ("0", checked), ("1", checked), *unknown, *unknown,
    ]  # fmt: skip


def test_channels_have_their_names_in_topics_and_descriptions():
    """Each named channel has topics of its own, and each description lists all."""
    feed = make_feed(channel_names=("north", "south"))
    feed.write(make_batch())
    seen = messages(feed)
    assert [m.topic for m in seen] == [
        "meta/mic/north/dbfs/",
        "meta/mic/south/dbfs/",
        "spec/mic/north/dbfs/",
        "spec/mic/south/dbfs/",
    ]
    assert {m.header.channel_names for m in seen[:2]} == {("north", "south")}
    assert [m.channel for m in seen[2:]] == ["north", "south"]


def test_descriptions_have_the_attributes_and_the_time_zone_of_the_source():
    """Where the source is stands in its descriptions; without it the fields are absent."""
    feeds = [make_feed(stated=StatedFacts({"platform": "buoy"}, "Europe/Berlin")), make_feed()]
    for feed in feeds:
        feed.write(make_batch())
    stated, silent = (messages(feed)[0].header for feed in feeds)
    assert (stated.attributes, stated.time_zone) == ({"platform": "buoy"}, "Europe/Berlin")
    assert (silent.attributes, silent.time_zone) == (msgspec.UNSET, msgspec.UNSET)


@pytest.mark.parametrize("nfft", [64, 75])
def test_a_signal_of_i_and_q_is_one_channel_with_both_sides(nfft):
    """Two channels make one topic, whose axis is the analysis's, in meta and in frames."""
    spec = SpectrumSpec(48000.0, 2, win_length=64, hop=32, nfft=nfft, scaling="dbfs", iq=True)
    feed = make_feed(channel_names=("radio",))
    feed.write(make_batch(spec=spec))
    meta, frame = messages(feed)
    assert isinstance(meta, Meta)
    assert frame.topic == "spec/mic/radio/dbfs/"
    assert (frame.header.shape, frame.header.first_bin) == ((nfft,), -(nfft // 2))
    assert (meta.header.shape, meta.header.first_bin) == ((nfft,), -(nfft // 2))
    np.testing.assert_array_equal(meta.f, spec.frequencies)
    np.testing.assert_allclose(frame.f, spec.frequencies, rtol=1e-15)


def test_a_heartbeat_has_the_state_of_the_capture():
    """Reason, counts, rate and checks are those of the counters."""
    capture = CaptureStats(
        waiting_for="no audio input",
        restarts=2,
        suspected=3,
        rate_error_ppm=-12.5,
        rate_uncertainty_ppm=0.5,
    )
    stats = make_stats(
        "waiting", overflows=1, capture=capture, checks=("silent: 0",), clipped_samples=4
    )
    header = decode(make_feed(lambda: stats).heartbeat()).header
    assert (header.state, header.waiting_for) == ("waiting", "no audio input")
    assert (header.restarts, header.suspected, header.overflows) == (2, 3, 1)
    assert (header.rate_error_ppm, header.rate_uncertainty_ppm) == (-12.5, 0.5)
    assert (header.checks, header.clipped_samples) == (("silent: 0",), 4)


@pytest.mark.parametrize(
    ("state", "last"),
    [
        ("running", "stopped"),
        ("waiting", "stopped"),
        ("finished", "finished"),
        ("failed", "failed"),
    ],
)
def test_the_last_heartbeat_has_the_final_state(state, last):
    """A running source becomes stopped; an ended one keeps its state."""
    feed = make_feed(lambda: make_stats(state))
    beats = [decode(feed.heartbeat()).header, decode(feed.heartbeat(is_last=True)).header]
    assert [(beat.state, beat.seq) for beat in beats] == [(state, 0), (last, 1)]
    assert feed.heartbeats == 2


def test_a_turn_sends_no_more_than_a_queue_holds():
    """Frames that come while others are sent wait for the next turn, for which it wakes."""
    wakes = []
    feed = make_feed(queue_frames=2, wake=lambda: wakes.append("up"))
    feed.write(make_batch(2))
    sent = 0
    for message in feed.queued():
        if parts_of(message)[0].startswith(b"spec/mic/0/"):
            sent += 1
            feed.write(make_batch())
    assert (sent, feed.dropped) == (2, 0)
    assert len(wakes) == 5  # three batches, the first description, and the frames that are left
    assert len([m for m in messages(feed) if isinstance(m, Frame)]) == 4


def test_changes_are_reported_once():
    """Several changes before a heartbeat are answered by it."""
    feed = make_feed()
    assert not feed.take_change()
    feed.changed()
    feed.changed()
    assert feed.take_change()
    assert not feed.take_change()


def test_the_first_spectrum_is_a_change():
    """From then on the source is running, which subscribers hear at once."""
    feed = make_feed()
    feed.write(make_batch())
    messages(feed)
    assert feed.take_change()
    feed.write(make_batch())
    messages(feed)
    assert not feed.take_change()


@pytest.mark.parametrize(
    ("name", "channel_names", "message"),
    [
        ("m ic", (), "source name='m ic': must be 1 to 64 of"),
        ("mic", ("a/b",), "channel_names='a/b': must be 1 to 64 of"),
        ("mic", ("a", "b", "a"), "channel_names='a': named 2 times, must be once"),
    ],
)
def test_names_that_topics_cannot_carry_are_refused(name, channel_names, message):
    """The error has the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        SourcePublisher(
            name,
            make_stats,
            epoch=1,
            wake=lambda: None,
            queue_frames=1,
            channel_names=channel_names,
        )


THIRDS = SpectrumSpec(
    fs=48000.0,
    channels=2,
    win_length=1024,
    hop=512,
    scaling="dbfs",
    bands="third-octave",
    weighting="A",
    averaging="mean",
    averaging_frames=4,
    product="thirds",
)


def covering(*covered):
    return lambda topics: any(topic in covered for topic in topics)


def test_on_demand_gets_the_products_in_demand_and_their_changes():
    """Once after each offer, even of nothing wanted, and then when it becomes another set."""
    reported = []
    feed = make_feed(on_demand=reported.append)
    feed.update_demand(covering(b"spec/mic/1/dbfs/"))
    assert reported == []
    feed.offer([SPEC, THIRDS])
    assert feed.take_offer()
    assert not feed.take_offer()
    for covered in [(), (), (b"spec/mic/1/dbfs/",), (b"spec/mic/1/dbfs/", b"bands/mic/0/thirds/")]:
        feed.update_demand(covering(*covered))
    assert reported == [frozenset(), {"dbfs"}, {"dbfs", "thirds"}]
    feed.offer([THIRDS])
    feed.update_demand(covering(b"spec/mic/1/dbfs/", b"bands/mic/0/thirds/"))
    feed.offer([THIRDS])
    feed.update_demand(covering(b"bands/mic/0/thirds/"))
    assert reported[3:] == [{"thirds"}, {"thirds"}]


def test_rows_that_nobody_wanted_are_not_for_subscribers():
    """Rows queued before their product was wanted, other than those of a new product."""

    def wanted():
        return [m.is_wanted for m in feed.queued() if isinstance(m, Outgoing)]

    feed = make_feed()
    feed.write(make_batch())
    assert all(wanted())  # nothing was offered
    feed.offer([SPEC])
    feed.write(make_batch())
    feed.update_demand(covering())
    assert not any(wanted())
    feed.write(make_batch())
    feed.update_demand(covering(b"spec/mic/1/dbfs/"))
    assert not any(wanted())
    feed.write(make_batch())
    feed.offer([SPEC])
    feed.update_demand(covering(b"spec/mic/1/dbfs/"))
    assert all(wanted())
    feed.offer([THIRDS])
    feed.update_demand(covering())
    feed.offer([SPEC, THIRDS])
    feed.write(make_batch())
    feed.update_demand(covering(b"spec/mic/1/dbfs/"))
    assert all(wanted())  # it was not offered before: its rows are computed from the offer on
    feed.update_demand(covering())
    feed.offer([replace(SPEC, bands="third-octave", averaging="mean", averaging_frames=4)])
    feed.update_demand(covering(b"spec/mic/1/dbfs/"))
    feed.offer([SPEC])
    feed.write(make_batch())
    assert all(wanted())  # of topics that the publisher does not know yet


def test_topics_are_offered_sorted_for_the_book():
    """Ten channels' topics are not in the order of their numbers."""
    spec = SpectrumSpec(fs=48000.0, channels=11, win_length=64, hop=32)
    feed = make_feed()
    feed.offer([spec])
    seen = []
    feed.update_demand(lambda topics: seen.append(topics) is None)
    assert seen == [tuple(sorted(b"spec/mic/%d/density/" % k for k in range(11)))]


def test_two_products_of_one_name_are_refused():
    """Their topics would be the same."""
    with pytest.raises(ConfigError, match="product='dbfs': named 2 times, must be once"):
        make_feed().offer([SPEC, SPEC])


def test_bands_have_topics_and_a_description_of_their_own():
    """Values a band, centres and edges described, hop from message to message."""
    feed = make_feed()
    values = np.arange(2 * THIRDS.n_values, dtype=np.float32).reshape(1, 2, -1)
    index = np.arange(1)
    feed.write(SpectrumBatch(values, index, index, index, THIRDS, "numpy"))
    meta, _, frame, _ = messages(feed)
    assert (meta.topic, frame.topic) == ("meta/mic/0/thirds/", "bands/mic/0/thirds/")
    assert isinstance(frame, BandFrame)
    np.testing.assert_array_equal(frame.values, values[0, 0])
    for header in (meta.header, frame.header):
        assert (header.hop, header.frame_hop, header.averaging_frames) == (2048, 512, 4)
        assert (header.averaging, header.averaging_s) == ("mean", None)
        assert (header.bands, header.weighting) == ("third-octave", "A")
    assert frame.header.n_bands == THIRDS.n_values
    table = THIRDS.band_table
    np.testing.assert_array_equal(meta.f, table.centre)
    np.testing.assert_array_equal(meta.edges, [table.lower, table.upper])


def test_an_exponential_average_has_its_time_constant():
    """Others have none."""
    spec = SpectrumSpec(fs=48000.0, win_length=64, hop=32, averaging="exponential")
    feed = make_feed()
    feed.write(make_batch(spec=spec))
    meta, frame = messages(feed)
    assert (meta.header.averaging_s, frame.header.averaging_s) == (0.125, 0.125)
    assert meta.edges is None


def test_products_that_are_no_more_are_described_no_more():
    """Others are, also where nothing was ever offered."""
    feed = make_feed()
    feed.write(make_batch())
    feed.write(make_batch(spec=SpectrumSpec(48000.0, 2, win_length=64, hop=32)))
    messages(feed)

    def described():
        return {decode(parts).topic for parts in feed.described()}

    both = {f"meta/mic/{k}/{product}/" for k in (0, 1) for product in ("dbfs", "density")}
    assert described() == both
    feed.offer([SPEC])
    assert described() == {"meta/mic/0/dbfs/", "meta/mic/1/dbfs/"}


def test_a_sent_message_does_not_keep_its_batch():
    """History would otherwise hold whole batches for the sake of one row."""
    feed = make_feed()
    batch = make_batch(3)
    feed.write(batch)
    sent = [message for message in feed.queued() if isinstance(message, Outgoing)]
    assert {type(part) for message in sent for part in message.parts} == {bytes}
    assert [message.seq for message in sent] == [0, 0, 1, 1, 2, 2]


def test_a_new_counter_of_a_header_is_taken_over_by_its_name(monkeypatch):
    """Headers take each counter of a batch or of the statistics for which they have a field."""

    class Beat(source_publisher.HeartbeatHeader, frozen=True, kw_only=True):
        overruns: int = 0
        attempts: int = 0

    class Row(topic_encoder.SpectrumHeader, frozen=True, kw_only=True):
        skipped_rows: int = 0

    monkeypatch.setattr(source_publisher, "HeartbeatHeader", Beat)
    monkeypatch.setattr(topic_encoder, "SpectrumHeader", Row)
    stats = replace(make_stats(), overruns=5, capture=CaptureStats(attempts=6))
    feed = make_feed(lambda: stats)
    feed.write(make_batch(skipped_rows=7, suspected=8))
    frame = json.loads([parts_of(message) for message in feed.queued()][-1][1])
    beat = json.loads(feed.heartbeat()[1])
    assert (frame["skipped_rows"], frame["suspected"], frame["seq"]) == (7, 8, 7)
    assert (beat["overruns"], beat["attempts"]) == (5, 6)
