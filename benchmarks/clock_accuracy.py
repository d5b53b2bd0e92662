"""How far the sample clock can be trusted: false alarms, losses found, rate and its interval.

``python benchmarks/clock_accuracy.py [--buckets N] [--trials N] [--json FILE]`` feeds
``SampleClock`` with simulated arrivals of several laws, at rates up to 100 ppm off that wander by
5 ppm, and prints for each law

- losses reported over N buckets (quarters of a second) in which none is: in streams of an hour;
- losses of 2, 3 and 10 blocks in 48 kHz, 10 ms blocks: found, how late, how wrong in size;
- error and interval of the rate after 1, 10, 60 minutes, and how often the interval holds it;
- how far ``place`` misses after a break.
"""

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
from _report import Report, new_report, write_report

from spectrod.source.soundcard.sample_clock import SampleClock

FS = 48_000.0
HOUR = 3600.0
WANDER_PPM, WANDER_S = 5.0, 1800.0
Law = Callable[[np.random.Generator, np.ndarray, float], np.ndarray]


def uniform(rng: np.random.Generator, due: np.ndarray, block_s: float) -> np.ndarray:
    """Anywhere within a block."""
    return due + rng.uniform(0, block_s, len(due))


def exponential(rng: np.random.Generator, due: np.ndarray, block_s: float) -> np.ndarray:
    """Half a block at the mean."""
    return due + rng.exponential(block_s / 2, len(due))


def heavy(rng: np.random.Generator, due: np.ndarray, block_s: float) -> np.ndarray:
    """Pareto's law with an exponent of 1.5: finite mean, infinite variance."""
    return due + np.minimum(rng.pareto(1.5, len(due)) * block_s / 4, 0.9)


def bursts(rng: np.random.Generator, due: np.ndarray, block_s: float) -> np.ndarray:
    """All that is due, every 2 s."""
    return np.ceil(due / 2.0) * 2.0 + rng.uniform(0, block_s / 4, len(due))


def stalls(rng: np.random.Generator, due: np.ndarray, block_s: float) -> np.ndarray:
    """Nothing for up to 0.9 s, every 3 s at the mean, then all at once; else uniform."""
    start = np.cumsum(rng.exponential(3.0, int(due[-1]) + 10))
    end = start + rng.uniform(0, 0.9, len(start))
    late = due + rng.uniform(0, block_s, len(due))
    stall = np.searchsorted(start, late) - 1
    return np.where(stall >= 0, np.maximum(late, end[stall]), late)


def polled(_rng: np.random.Generator, due: np.ndarray, block_s: float) -> np.ndarray:
    """Fetch by a timer whose period is 50 ppm short of a block: delays are a slow saw tooth."""
    period = block_s * (1 - 50e-6)
    return np.ceil(due / period) * period


def rephased(rng: np.random.Generator, due: np.ndarray, block_s: float) -> np.ndarray:
    """Come at another phase of the block every minute at the mean, as after a stall."""
    start = np.concatenate([[0.0], np.cumsum(rng.exponential(60.0, int(due[-1] / 20) + 10))])
    phase = rng.uniform(0, block_s, len(start))
    return due + phase[np.searchsorted(start, due) - 1] + rng.exponential(1e-4, len(due))


def usb(rng: np.random.Generator, due: np.ndarray, _block_s: float) -> np.ndarray:
    """Come with the next of the bus's frames of 1 ms, whose clock is another one."""
    return np.ceil(due / 1e-3) * 1e-3 + rng.exponential(5e-5, len(due))


LAWS: dict[str, Law] = {
    law.__name__: law
    for law in (uniform, exponential, heavy, bursts, stalls, polled, rephased, usb)
}


def arrivals(
    rng: np.random.Generator, law: Law, block: int, seconds: float, wander: float = WANDER_PPM
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make indices after each block; when the block is due; when it comes [s]."""
    index = np.arange(1, int(seconds * FS / block) + 1) * block
    ppm, phase = rng.uniform(-100, 100), rng.uniform(0, 2 * np.pi)
    t = index / FS
    angle = 2 * np.pi * t / WANDER_S + phase
    wandered = wander * WANDER_S / (2 * np.pi) * (np.cos(phase) - np.cos(angle))
    due = t - 1e-6 * (ppm * t + wandered)
    return index, due, np.maximum.accumulate(law(rng, due, block / FS))


def feed(
    clock: SampleClock, index: np.ndarray, t: np.ndarray, shift: int = 0
) -> Iterator[tuple[float, int]]:
    """Add all callbacks; yields time and size of each loss that is reported."""
    for end, t_ns in zip(index.tolist(), (t * 1e9).astype(np.int64).tolist(), strict=True):
        if lost := clock.add(end + shift, t_ns):
            shift += lost
            yield t_ns * 1e-9, lost


def started(index: np.ndarray, t: np.ndarray, block: int) -> SampleClock:
    """Make a clock that has placed a stream by its first quarter of a second."""
    clock = SampleClock(FS, block)
    n = max(1, int(0.25 * FS / block))
    clock.place([(int(i), round(s * 1e9)) for i, s in zip(index[:n], t[:n], strict=True)])
    return clock


def false_alarms(law: Law, n_buckets: int, seed: int) -> Report:
    """Count losses reported where there are none; blocks are large, so that few save a bucket."""
    rng = np.random.default_rng(seed)
    block = 3000
    n_streams = -(-n_buckets // int(4 * HOUR))
    alarms: list[tuple[float, int]] = []
    for _ in range(n_streams):
        index, _, t = arrivals(rng, law, block, HOUR)
        alarms += feed(started(index, t, block), index, t)
    return {"buckets": n_streams * int(4 * HOUR), "alarms": len(alarms)}


def losses(law: Law, blocks: int, trials: int, seed: int) -> Report:
    """Lose some blocks once a trial, after 20 to 40 s."""
    rng = np.random.default_rng(seed)
    late, wrong, others = [], [], 0
    for _ in range(trials):
        index, due, t = arrivals(rng, law, 480, 60.0)
        at = rng.uniform(20, 40)
        kept = ~((due > at) & (due <= at + blocks * 0.01))
        found = list(feed(started(index, t, 480), index[: kept.sum()], t[kept]))
        late += [s - at for s, _ in found[:1]]
        wrong += [abs(lost / 480 - blocks) for _, lost in found[:1]]
        others += max(0, len(found) - 1)
    return {
        "blocks": blocks,
        "found": len(late) / trials,
        "late_s": _worst(late),
        "size_error_blocks": _worst(wrong),
        "other_reports": others,
    }


def rates(law: Law, minutes: int, trials: int, seed: int) -> Report:
    """Rate error and interval against the mean rate since the start; the rate is constant."""
    rng = np.random.default_rng(seed)
    errors, widths = [], []
    for _ in range(trials):
        index, due, t = arrivals(rng, law, 480, 60.0 * minutes, wander=0.0)
        clock = started(index, t, 480)
        for _ in feed(clock, index, t):
            pass
        true_ppm = (index[-1] / FS / due[-1] - 1) * 1e6
        errors.append(abs((clock.rate_error_ppm or 0.0) - true_ppm))
        widths.append(clock.rate_uncertainty_ppm or 0.0)
    covered = np.mean(np.array(errors) <= widths)
    return {
        "minutes": minutes,
        "error_ppm_median": float(np.median(errors)),
        "error_ppm_worst": float(max(errors)),
        "interval_ppm_median": float(np.median(widths)),
        "coverage": float(covered),
    }


def placing(law: Law, trials: int, seed: int) -> Report:
    """Break a stream after 60 s for 1 to 30 s; how far the next one is misplaced."""
    rng = np.random.default_rng(seed)
    wrong = []
    for _ in range(trials):
        index, _, t = arrivals(rng, law, 480, 120.0)
        clock = started(index, t, 480)
        n = 6000
        for _ in feed(clock, index[:n], t[:n]):
            pass
        again = n + int(rng.uniform(100, 3000))
        first = slice(again, again + 25)
        truth = int(index[again - 1])
        stream = zip((index[first] - truth).tolist(), t[first].tolist(), strict=True)
        wrong.append(abs(clock.place([(i, round(s * 1e9)) for i, s in stream]) - truth) / 480)
    return {"misplaced_blocks_median": float(np.median(wrong)), "misplaced_blocks": max(wrong)}


def add_cost() -> float:
    """Mean processor time of ``add`` at 10 ms blocks, fits included [us]."""
    rng = np.random.default_rng(0)
    index, _, t = arrivals(rng, uniform, 480, 600.0)
    clock = started(index, t, 480)
    start_s = time.process_time()
    for _ in feed(clock, index, t):
        pass
    return (time.process_time() - start_s) / len(index) * 1e6


def _worst(values: list[float]) -> float | None:
    return max(values, default=None)


def main() -> None:
    """Simulate, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buckets", type=int, default=100_000, help="for each law")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--law", choices=LAWS, action="append", help="these only")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("clock") | {"add_us": add_cost()}
    print(f"add: {report['add_us']:.2f} us")
    for name in args.law or LAWS:
        law = LAWS[name]
        rows = [false_alarms(law, args.buckets, 1)]
        rows += [losses(law, blocks, args.trials, 2) for blocks in (2, 3, 10)]
        rows += [rates(law, minutes, args.trials, 3) for minutes in (1, 10, 60)]
        rows += [placing(law, args.trials, 4)]
        for row in rows:
            print(name, row, flush=True)
            report["results"].append({"law": name} | row)
    if args.json:
        write_report(report, args.json)


if __name__ == "__main__":
    main()
