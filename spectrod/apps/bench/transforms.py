"""Speed and error of batches of transforms on one device: spectrod, its variants and peers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spectrod.apps.bench import peers
from spectrod.apps.bench.inplace import INPLACE
from spectrod.apps.bench.peers import PreparedRun
from spectrod.apps.bench.radix2 import RADIX2, TWIDDLE_MODES, Radix2Params
from spectrod.apps.bench.waiting_threads import cores_after
from spectrod.apps.bench.work import Work, require_right
from spectrod.fft import reference
from spectrod.fft.arena import Arena
from spectrod.fft.choice import untuned
from spectrod.fft.select import families, make_stage
from spectrod.fft.stage import Params, Stage, TransformFamily, TransformSpec
from spectrod.fft.timing import median_seconds
from spectrod.lib.errors import ConfigError, DeviceError, UnavailableError
from spectrod.opencl.devices import DeviceInfo

Row = dict[str, Any]
"""Names and values: a line of a table, an object of a JSON report."""

OWN = "spectrod"

_ROUNDS, _ROUNDS_S = 25, 1.0
_GPU_POINTS, _CPU_POINTS = (1 << 26,), (1 << 16, 1 << 22)
# A peer in float32 may be less accurate than spectrod; a wrong one exceeds this by far.
_PEER_FACTOR = 30.0
# The driver chooses the error of native sines; a wrong kernel exceeds this by far.
_VARIANT_LIMIT = 1e-3


def default_points(device: DeviceInfo) -> tuple[int, ...]:
    """Return points per batch: beyond a GPU's caches; otherwise one batch in cache, one not."""
    return _GPU_POINTS if device.kind == "gpu" else _CPU_POINTS


def compare(arena: Arena, spec: TransformSpec, names: Sequence[str]) -> Iterator[Row]:
    """Measure spectrod and peers in turns.

    Parameters
    ----------
    arena : Arena
        Device, precision and size of the batch.
    spec : TransformSpec
        Transform to measure.
    names : sequence of str
        Names of the peers, see ``spectrod.apps.bench.peers.PEERS``.

    Yields
    ------
    row : Row
        For spectrod, then for each peer; a failed peer has only ``what`` and ``failed``.

    Raises
    ------
    InternalError
        If spectrod's result is wrong.
    """
    work = work_of(arena, spec)
    own = prepare_stage(arena, make_stage(arena.context, spec))
    error = work.error(own.result())
    require_right(OWN, spec, error, reference.error_limit(spec))
    strict = work.strict()
    prepared, failed = {OWN: (own, error)}, []
    for name in names:
        if spec.kind not in peers.PEERS[name].kinds:
            continue
        try:
            prepared[name] = prepare_peer(name, strict, arena.context.device)
        except UnavailableError as reason:
            failed.append({"what": name, "failed": str(reason)})
    yield from measure(arena, work, prepared)
    yield from ({**_place(work), **row} for row in failed)


def variants(arena: Arena, spec: TransformSpec) -> Iterator[Row]:
    """Measure every family's untuned choice, and the baseline's four sources of twiddles."""
    work = work_of(arena, spec)
    prepared, failed = {}, []
    for name, family, params in _variants(spec, arena.context.device):
        try:
            run = prepare_stage(arena, family.build(arena.context, spec, params))
            error = work.error(run.result())
        except (ConfigError, DeviceError) as reason:
            failed.append({"what": name, "failed": str(reason).splitlines()[0]})
            continue
        require_right(name, spec, error, _VARIANT_LIMIT)
        prepared[name] = run, error
    yield from measure(arena, work, prepared)
    yield from ({**_place(work), **row} for row in failed)


def work_of(arena: Arena, spec: TransformSpec) -> Work:
    """Return the work of a whole batch of values."""
    return Work(spec, arena.lines(spec, arena.batch(spec)))


def prepare_stage(arena: Arena, stage: Stage) -> PreparedRun:
    """Prepare one of spectrod's stages; timed on CPUs by the wall clock, like its peers.

    On other devices by the device's clock: from the first kernel's start to the last one's end.
    """
    is_cpu = arena.context.device.kind == "cpu"
    clock = arena.wall_seconds if is_cpu else arena.device_seconds
    return PreparedRun(lambda: clock(stage), lambda: arena.result(stage, arena.batch(stage.spec)))


def measure(
    arena: Arena, work: Work, prepared: Mapping[str, tuple[PreparedRun, float]]
) -> Iterator[Row]:
    """Time runs in turns with each other and with a copy on the device.

    Parameters
    ----------
    arena : Arena
        Arena of spectrod's stages.
    work : Work
        Work of all runs.
    prepared : mapping of str to (PreparedRun, float)
        Warmed-up, correct runs with their errors, by name; the first is the reference.

    Yields
    ------
    row : Row
        See ``spectrod.apps.bench.tables.TRANSFORMS``.
    """
    timers = [arena.copy_seconds, *(run.seconds for run, _ in prepared.values())]
    copy_seconds, *times = median_seconds(timers, _ROUNDS, _ROUNDS_S)
    copy_rate = arena.copy_bytes / copy_seconds
    for (name, (run, error)), seconds in zip(prepared.items(), times, strict=True):
        rate = work.n_bytes / seconds
        yield {
            **_place(work),
            "what": name,
            "seconds": seconds,
            "gflop_per_s": work.flops / seconds / 1e9,
            "gb_per_s": rate / 1e9,
            "copy_share": rate / copy_rate,
            "relative_l2": error,
            "speed": times[0] / seconds,
            "cores_after": cores_after(run.seconds),
        }


def _place(work: Work) -> Row:
    spec = work.spec
    return {"n": spec.n, "kind": spec.kind, "precision": spec.precision, "batch": work.batch}


def prepare_peer(name: str, work: Work, device: DeviceInfo) -> tuple[PreparedRun, float]:
    """Prepare a peer and check its result; like ``spectrod.apps.bench.peers.prepare``."""
    run, error = peers.prepare(name, work, device)
    if not error <= _PEER_FACTOR * reference.error_limit(work.spec):
        raise UnavailableError(f"wrong: relative L2 error {error:.1e}")
    return run, error


def _variants(
    spec: TransformSpec, device: DeviceInfo
) -> Iterator[tuple[str, TransformFamily, Params]]:
    """Yield name, family and parameters of all variants for this transform and device."""
    for name, family in (families(device) | {INPLACE.name: INPLACE}).items():
        if family.supports(spec, device) and family is not RADIX2:
            yield name, family, untuned(family, spec, device)
    if RADIX2.supports(spec, device):
        for mode in TWIDDLE_MODES:
            yield f"{RADIX2.name} {mode}", RADIX2, Radix2Params(mode)
