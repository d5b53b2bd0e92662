"""A source's messages, without a socket: topics, counts, states."""

import numpy as np
import pytest

from spectrod.errors import ConfigError
from spectrod.stats import CaptureStats, Stats
from spectrod.types import SpectrumBatch, SpectrumSpec
from spectrod.wire.feed import Feed, Outgoing
from spectrod.wire.schema import Frame, Meta, decode

SPEC = SpectrumSpec(fs=48000.0, channels=2, win_length=64, hop=32, scaling="dbfs")


def make_batch(n_frames=1, spec=SPEC):
    index = np.arange(n_frames) * spec.hop
    values = np.zeros((n_frames, spec.n_signals, spec.n_bins), np.float32)
    return SpectrumBatch(values, index, index, index, spec, "numpy")


def make_stats(state="running", *, overflows=0, **fields):
    counts = (0, 0, 0, overflows, 0, 0, 0, 0, 0.0)
    return Stats(state, "test signal", "numpy", 48000.0, 2, *counts, **fields)


def make_feed(stats=make_stats, *, queue_frames=8, channel_names=(), wake=lambda: None):
    return Feed(
        "mic", stats, epoch=7, wake=wake, queue_frames=queue_frames, channel_names=channel_names
    )


def messages(feed):
    return [decode(parts_of(message)) for message in feed.queued()]


def parts_of(message):
    return message.parts if isinstance(message, Outgoing) else message


def test_losses_are_those_when_the_frame_came():
    """Headers carry what was flagged and what was suspected, not what comes later."""
    counts = iter([(42, 3), (43, 4)])

    def stats():
        overflows, suspected = next(counts)
        return make_stats(overflows=overflows, capture=CaptureStats(suspected=suspected))

    feed = make_feed(stats)
    feed.submit(make_batch(2))
    feed.submit(make_batch())
    counts = iter([(99, 99)] * 9)
    seen = [m.header for m in messages(feed) if isinstance(m, Frame) and m.channel == "0"]
    assert [(h.overflows, h.suspected) for h in seen] == [(42, 3), (42, 3), (43, 4)]


def test_channels_have_their_names_in_topics_and_descriptions():
    """Each named channel has topics of its own, and each description lists all."""
    feed = make_feed(channel_names=("north", "south"))
    feed.submit(make_batch())
    seen = messages(feed)
    assert [m.topic for m in seen] == [
        "meta/mic/north/dbfs/",
        "meta/mic/south/dbfs/",
        "spec/mic/north/dbfs/",
        "spec/mic/south/dbfs/",
    ]
    assert {m.header.channel_names for m in seen[:2]} == {("north", "south")}
    assert [m.channel for m in seen[2:]] == ["north", "south"]


@pytest.mark.parametrize("nfft", [64, 75])
def test_a_signal_of_i_and_q_is_one_channel_with_both_sides(nfft):
    """Two channels make one topic, whose axis is the analysis's, in meta and in frames."""
    spec = SpectrumSpec(48000.0, 2, win_length=64, hop=32, nfft=nfft, scaling="dbfs", iq=True)
    feed = make_feed(channel_names=("radio",))
    feed.submit(make_batch(spec=spec))
    meta, frame = messages(feed)
    assert isinstance(meta, Meta)
    assert frame.topic == "spec/mic/radio/dbfs/"
    assert (frame.header.shape, frame.header.first_bin) == ((nfft,), -(nfft // 2))
    assert (meta.header.shape, meta.header.first_bin) == ((nfft,), -(nfft // 2))
    np.testing.assert_array_equal(meta.f, spec.frequencies)
    np.testing.assert_allclose(frame.f, spec.frequencies, rtol=1e-15)


def test_a_heartbeat_tells_how_samples_arrive():
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
def test_the_last_heartbeat_tells_how_it_ended(state, last):
    """What was still going on has been stopped; what had ended stays as it was."""
    feed = make_feed(lambda: make_stats(state))
    beats = [decode(feed.heartbeat()).header, decode(feed.heartbeat(is_last=True)).header]
    assert [(beat.state, beat.seq) for beat in beats] == [(state, 0), (last, 1)]
    assert feed.heartbeats == 2


def test_a_turn_sends_no_more_than_a_queue_holds():
    """Frames that come while others are sent wait for the next turn, for which it wakes."""
    wakes = []
    feed = make_feed(queue_frames=2, wake=lambda: wakes.append("up"))
    feed.submit(make_batch(2))
    sent = 0
    for message in feed.queued():
        if parts_of(message)[0].startswith(b"spec/mic/0/"):
            sent += 1
            feed.submit(make_batch())
    assert (sent, feed.dropped) == (2, 0)
    assert len(wakes) == 5  # three batches, the first description, and the frames that are left
    assert len([m for m in messages(feed) if isinstance(m, Frame)]) == 4


def test_changes_are_told_once():
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
    feed.submit(make_batch())
    messages(feed)
    assert feed.take_change()
    feed.submit(make_batch())
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
    """The value and the rule are told."""
    with pytest.raises(ConfigError, match=message):
        Feed(
            name,
            make_stats,
            epoch=1,
            wake=lambda: None,
            queue_frames=1,
            channel_names=channel_names,
        )
