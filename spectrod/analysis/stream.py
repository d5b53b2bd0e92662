"""Blocks of any size in, every frame exactly once out: framing, batching, gaps, failures."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.cursor import Timing
from spectrod.analysis.engine import IN_FLIGHT_MAX, Engine, stand_in
from spectrod.analysis.samples import is_finite, require_finite
from spectrod.analysis.track import Track
from spectrod.errors import ConfigError, DeviceError
from spectrod.sample_layout import SampleLayout
from spectrod.types import Block, SampleFormat, SpectrumBatch, SpectrumSpec

if TYPE_CHECKING:
    from spectrod.analysis.window import SampleWindow

_BATCH_FRAMES_MAX = 1 << 16
_REACH_BYTES_MIN = 1 << 16
_FOREVER = float("inf")


class FrameStream:
    """Frames out of blocks, of one spec or several at once, by a given engine.

    A frame starts every ``spec.hop`` samples. One that would span a gap is not computed: behind a
    gap frames and averages start anew, and the next batch of each spec carries the gap's size.
    Samples are copied once, to the end of a window in which all frames are read in place.

    An average that a gap or ``finish`` cuts off makes a shorter row, in a batch of its own whose
    ``cut_frames`` is the number of frames in it.

    Specs that nobody wants can be left out for a while, see ``want``: then only the samples that
    the next frame needs are kept.

    If the engine fails and has a fallback, that goes on: the samples of all frames that were not
    delivered are still there. An average under way begins anew with the first of these frames,
    and the next batch is marked as not following on the one before.

    Parameters
    ----------
    specs : SpectrumSpec or sequence of them
        What to compute; of one rate and number of channels.
    engine : Engine
        What computes it; stays the caller's to close.
    on_nonfinite : {"raise", "gap"}
        What a NaN or an infinity among the samples is: an InputError, or a loss of its block.
    sample_format : {"float32", "int16", "int24", "int32"}
        Of the blocks; int24 is (channels, n, 3) uint8, little-endian.
    interleaved : bool
        How samples lie in the window; blocks of the same order are copied fastest.
    max_latency_s : float
        How long complete frames may wait for a batch to fill, by the samples' time [s]; infinity
        for as long as that takes.
    batch_frames : int, optional
        Frames of a full batch; by default what suits the engine.

    Attributes
    ----------
    specs : tuple of SpectrumSpec
        As given.
    engine : Engine
        What computes now.
    tracks : list of Track
        One a spec, in their order.
    gaps, gap_samples : int
        Interruptions, and the samples missing in them.
    cut_frames : int
        Frames of averages that made no row: a failure, a reset, or the end of demand cut them off.
    engine_failures : int
        How often an engine failed and another went on.

    Raises
    ------
    ConfigError
        If the specs do not fit each other, or a setting breaks a rule.
    DeviceError
        If the engine cannot do it, and has no fallback.

    Notes
    -----
    Not thread-safe. Results are the same, bit for bit, however the stream is cut into blocks and
    batches, and whatever else is computed beside.
    """

    def __init__(  # noqa: PLR0913 - a stream has these settings
        self,
        specs: SpectrumSpec | Sequence[SpectrumSpec],
        engine: Engine,
        on_nonfinite: Literal["raise", "gap"] = "raise",
        *,
        sample_format: SampleFormat = "float32",
        interleaved: bool = False,
        max_latency_s: float = 0.0,
        batch_frames: int | None = None,
    ) -> None:
        self.specs = _checked_specs(specs)
        _check_batching(max_latency_s, batch_frames)
        self.engine = engine
        self.gaps = self.gap_samples = self.cut_frames = self.engine_failures = 0
        self._raises = on_nonfinite == "raise"
        self._layout = SampleLayout(sample_format, self.spec.channels, interleaved)
        self._wait_samples = max_latency_s * self.spec.fs
        # Absolute index of a sample is its position in the window plus this.
        self._offset: int | None = None
        self._clock: Block | None = None
        self._window: SampleWindow
        self.tracks: list[Track] = []
        try:
            self._open(batch_frames)
        except DeviceError as error:
            self.engine = stand_in(engine, error)
            self.engine_failures += 1
            self._open(batch_frames)

    def _open(self, batch_frames: int | None) -> None:
        layout, engine = self._layout, self.engine
        sized = [(s, batch_frames or _batch_frames(s, layout, engine)) for s in self.specs]
        reach = max(_reach(spec, count, layout) for spec, count in sized)
        if any(spec.averaging_frames > 1 for spec in self.specs):  # a frame waits for the next one
            reach += max(spec.hop for spec in self.specs)
        self._window = engine.window(layout, 2 * reach)
        self.tracks = [Track(spec, engine, self._window, count) for spec, count in sized]

    @property
    def layout(self) -> SampleLayout:
        """Of the samples."""
        return self._layout

    @property
    def spec(self) -> SpectrumSpec:
        """The first of the specs."""
        return self.specs[0]

    @property
    def wanted(self) -> tuple[str, ...]:
        """Products that are computed."""
        return tuple(track.spec.product for track in self.tracks if track.is_wanted)

    @property
    def next_index(self) -> int | None:
        """Index of the sample expected next; None before the first."""
        return None if self._offset is None else self._offset + self._window.end

    @property
    def gap_pending(self) -> int | None:
        """Samples of gaps that no batch of the first spec has reported yet; None without a gap."""
        return self.tracks[0].gap_pending

    def left_out_samples(self) -> list[int]:
        """Count the samples that are in no row because they do not fill a frame, of each spec.

        They are those before each gap and, by now, at the end. Samples that a hop longer than the
        window passes over do not count.
        """
        return [track.left_out_samples for track in self.tracks]

    def remainder(self) -> list[tuple[int, int]]:
        """Say what no row has yet, of each spec.

        Returns
        -------
        remainder : list of (int, int)
            Samples from the first of the next frame on, and frames of an unfinished average.
        """
        return [track.remainder() for track in self.tracks]

    def take_over(self, earlier: "FrameStream") -> None:
        """Carry on the counters of the stream before, and what it has not reported yet.

        That is for each spec of the same product; to others the gap of the first one is reported.
        """
        self.gaps, self.gap_samples = earlier.gaps, earlier.gap_samples
        self.cut_frames += earlier.cut_frames
        self.engine_failures += earlier.engine_failures
        tracks = {track.spec.product: track for track in earlier.tracks}
        for track in self.tracks:
            if before := tracks.get(track.spec.product):
                track.take_over(before)
            else:
                track.unreported = earlier.gap_pending

    def want(self, products: frozenset[str] | None) -> list[SpectrumBatch]:
        """Say which products are to be computed from the next samples on; None: all.

        Of the others frames are passed over: nothing is computed, and the next batch carries in
        ``skipped_rows`` how many rows that were, and all gaps met meanwhile. A row that is wanted
        only after its first frame is passed over as a whole, so that rows are the same as without
        any of this, but for exponential averages, which begin anew.

        Returns what was complete before, of all products, in order; raises as ``flush``.
        """
        out = self.flush()
        for track in self.tracks:
            is_wanted = products is None or track.spec.product in products
            if is_wanted != track.is_wanted:
                self.cut_frames += track.want(is_wanted=is_wanted)
        return out

    def reset(self, product: str = "") -> list[SpectrumBatch]:
        """Begin averages and holds anew with the next frame, of one product or of all.

        Returns what was complete before, in order; raises as ``flush``.
        """
        out = self.flush()
        for track in self.tracks:
            if product in ("", track.spec.product):
                self.cut_frames += track.reset()
        return out

    def push(self, block: Block) -> list[SpectrumBatch]:
        """Take samples in; return what they complete, or what has waited long enough, in order.

        Raises
        ------
        InputError
            For samples that are not finite, unless they are a gap.
        DeviceError
            If the engine fails and has no fallback.
        """
        out: list[SpectrumBatch] = []
        if self._admit(block, out):
            self._clock = block
            self._append(block.samples, out)
        self._advance(self._wait_samples, out)
        return out

    def flush(self) -> list[SpectrumBatch]:
        """Return all complete frames that are held back; the stream may go on afterwards."""
        out: list[SpectrumBatch] = []
        self._advance(0.0, out)
        return out

    def finish(self) -> list[SpectrumBatch]:
        """Return what ``flush`` does, and unfinished averages as shorter rows.

        Averages start again with what is pushed afterwards.
        """
        out: list[SpectrumBatch] = []
        for track in self.tracks:
            self._submit_rest(track, out)
            track.end()
        return out + self.flush()

    # ---- gaps

    def _admit(self, block: Block, out: list[SpectrumBatch]) -> bool:
        """Whether the block's samples count; what is lost before it or with it is counted."""
        lost_samples = self._lost_before(block)
        if self._layout.sample_format == "float32" and not is_finite(block.samples):
            if self._raises:
                require_finite(block.samples, block.sample_index)
            self._lose(lost_samples + block.n_samples, out)
            self._offset = block.sample_index + block.n_samples - self._window.end
            return False
        if block.discontinuity or self.next_index not in (None, block.sample_index):
            self._lose(lost_samples, out)
        self._offset = block.sample_index - self._window.end
        return True

    def _lost_before(self, block: Block) -> int:
        """Count the samples missing before a block: no fewer than its index leaves out."""
        skipped = 0 if self.next_index is None else block.sample_index - self.next_index
        return max(block.lost_samples, skipped)

    def _lose(self, lost_samples: int, out: list[SpectrumBatch]) -> None:
        self.gaps += 1
        self.gap_samples += lost_samples
        for track in self.tracks:
            self._submit_rest(track, out)
            self.cut_frames += track.interrupt(lost_samples)

    def _submit_rest(self, track: Track, out: list[SpectrumBatch]) -> None:
        self._align(track)
        track.pass_over()
        for n_frames, is_cut in track.rest():
            self._submit(track, n_frames, out, is_cut=is_cut)

    # ---- samples

    def reserve(self, n_max: int) -> NDArray[Any] | None:
        """Memory that the next samples may be put into, so that ``push`` need not copy them.

        Parameters
        ----------
        n_max : int
            Most samples of a channel.

        Returns
        -------
        memory : (channels, n) or (channels, n, 3) array, optional
            Of the layout's, 1 to n_max samples; it holds until the next call of any method. None
            where room must be made first, which ``push`` does.
        """
        window = self._window
        half = window.capacity // 2
        if window.fill in (half, window.capacity):
            return None
        room = (half if window.fill < half else window.capacity) - window.fill
        return window.data[:, window.fill : window.fill + min(room, n_max)]

    def _append(self, samples: NDArray[Any], out: list[SpectrumBatch]) -> None:
        first, n = 0, samples.shape[1]
        while first < n:
            first += self._skip(n - first)
            part = samples[:, first : first + self._room(out)]
            self._window.append(part)
            first += part.shape[1]
            self._advance(_FOREVER, out)

    def _skip(self, n: int) -> int:
        """Pass over samples that a hop longer than the window leaves; return how many."""
        skipped = min(n, max(0, self._needs - self._window.end))
        if skipped:
            assert self._offset is not None
            self._offset += skipped
            for track in self.tracks:
                track.shift(skipped)
        return skipped

    @property
    def _needs(self) -> int:
        return min(track.needs for track in self.tracks)

    def _room(self, out: list[SpectrumBatch]) -> int:
        """Make room, and return how many samples may be appended.

        The window has two halves. Frames in flight and those to come all begin in the second one
        when it is full. What the latter need moves to the front; the others go on reading where
        they are, and are waited for before new samples come there, which costs nothing by then.
        """
        window = self._window
        half = window.capacity // 2
        if window.fill == window.capacity:
            while window.end - self._needs > half:
                self._deliver(min(self.tracks, key=lambda track: track.needs), out)
            window.move(min(window.end, *(track.next for track in self.tracks)))
        if window.fill == half:
            self._settle()
        return (half if window.fill < half else window.capacity) - window.fill

    def _settle(self) -> None:
        try:
            for track in self.tracks:
                track.settle()
        except DeviceError as error:
            self._fall_back(error)

    # ---- frames

    def _advance(self, wait_samples: float, out: list[SpectrumBatch]) -> None:
        """Submit full batches and frames that have waited so long; deliver those."""
        for track in self.tracks:
            self._align(track)
            track.pass_over()
            for n_frames in _batches(track, wait_samples):
                is_cut = track.finishes_lead(n_frames)
                self._submit(track, n_frames, out, is_cut=is_cut)
                self._align(track)
        for track in self.tracks:
            while track.in_flight and track.waited(track.in_flight[0].first) >= wait_samples:
                self._deliver(track, out)

    def _align(self, track: Track) -> None:
        if track.spec.align != "start" and self._offset is not None and self._clock is not None:
            track.align(Timing(self._offset, self._clock))

    def _submit(
        self, track: Track, n_frames: int, out: list[SpectrumBatch], *, is_cut: bool = False
    ) -> None:
        if len(track.in_flight) >= IN_FLIGHT_MAX:
            self._deliver(track, out)
        assert self._offset is not None
        assert self._clock is not None
        try:
            track.submit(n_frames, self._offset + track.next, self._clock, is_cut=is_cut)
        except DeviceError as error:
            self._fall_back(error)

    def _deliver(self, track: Track, out: list[SpectrumBatch]) -> None:
        try:
            batch = track.deliver()
        except DeviceError as error:
            self._fall_back(error)
            batch = track.deliver()
        if batch is not None:
            out.append(batch)

    def _fall_back(self, error: DeviceError) -> None:
        """Have what is in flight computed anew by the engine's fallback, and all that follows."""
        self.engine = stand_in(self.engine, error)
        self.engine_failures += 1
        for track in self.tracks:
            self.cut_frames += track.replay(self.engine)


def _batches(track: Track, wait_samples: float) -> Iterator[int]:
    """Sizes of the batches to be submitted, while they are: full ones, and what may not wait."""
    while (n_frames := track.n_due()) > 0:
        if n_frames >= track.batch_frames:
            yield track.batch_frames
        elif track.finishes_lead(n_frames) or track.waited(track.next) >= wait_samples:
            yield n_frames
        else:
            return


def _checked_specs(specs: SpectrumSpec | Sequence[SpectrumSpec]) -> tuple[SpectrumSpec, ...]:
    several = (specs,) if isinstance(specs, SpectrumSpec) else tuple(specs)
    if not several:
        raise ConfigError("specs: must be at least one")
    for name in ("fs", "channels"):
        values = {getattr(spec, name) for spec in several}
        if len(values) > 1:
            raise ConfigError(f"{name}: must be the same for all specs, not {sorted(values)}")
    return several


def _check_batching(max_latency_s: Any, batch_frames: Any) -> None:
    if not (isinstance(max_latency_s, (int, float, np.floating)) and max_latency_s >= 0.0):
        raise ConfigError(f"max_latency_s={max_latency_s!r}: must be 0 s or more")
    whole = isinstance(batch_frames, (int, np.integer))
    if batch_frames is not None and not (whole and batch_frames >= 1):
        raise ConfigError(f"batch_frames={batch_frames!r}: must be at least 1, a whole number")


def _beyond(spec: SpectrumSpec) -> int:
    """How much further the next row may be than frames are at the mean [samples]."""
    if spec.grid.is_even or spec.averaging == "none":
        return 0
    return max(0, ceil(spec.row_step) - (spec.averaging_frames - 1) * spec.hop)


def _batch_frames(spec: SpectrumSpec, layout: SampleLayout, engine: Engine) -> int:
    """Frames whose samples or results, whichever are more, are as many as suit the engine."""
    value_bytes = 8 if spec.output == "complex" else 4
    row_bytes = spec.n_signals * spec.n_computed * value_bytes
    frame_bytes = max(spec.hop * layout.step_bytes, row_bytes // spec.averaging_frames, 1)
    return max(1, min(_BATCH_FRAMES_MAX, engine.batch_bytes // frame_bytes))


def _reach(spec: SpectrumSpec, batch_frames: int, layout: SampleLayout) -> int:
    """Count the samples needed at once: of batches in flight, and of one that fills."""
    between = ceil(spec.row_step / spec.averaging_frames)  # frames, at the mean
    advance = batch_frames * between if batch_frames > 1 else min(between, spec.win_length)
    reach = spec.win_length + (IN_FLIGHT_MAX + 1) * advance + _beyond(spec)
    return max(reach, _REACH_BYTES_MIN // layout.step_bytes)
