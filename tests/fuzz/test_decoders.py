"""No decoder of bytes from outside without a fuzz target: the seeds of one run each of them."""

import ast
import sys
from collections import defaultdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import fuzzing

import spectrod

ROOT = Path(spectrod.__file__).parent

DECODERS = {
    *("decode_json", "loads", "unpack", "unpack_from", "iter_unpack", "frombuffer", "fromstring"),
    *("from_bytes", "decompress", "decompressobj", "fromisoformat", "strptime"),
}
"""Names of functions that take bytes or texts apart, of any module."""
OF_MODULES = {("json", "decode"), ("toml", "decode"), ("decoder", "decode"), ("np", "load")}
"""The last two names of functions whose own name says too little."""

_CHILD = "from a process of our own, which runs the same program"
_KERNEL = "a structure of the kernel, or of libzmq about itself"
_SAMPLES = "samples: whatever the bytes are, they are values"
_TESTED = "from the daemon under test"
_USER = "text of the command line"
_OWN = "what this process has encoded itself"
_MUTATED = "reached by mutated inputs of a target, and not by its valid ones"

NOT_RUN = {
    "analysis/warm_up.py:_main": _CHILD,
    "apps/batch/decoder.py:samples": _CHILD,
    "apps/bench/fault_soak/control_faults.py:_invalid": _TESTED,
    "apps/bench/fault_soak/journal.py:_parsed": _TESTED,
    "apps/ctl/command.py:_value": _USER,
    "apps/ctl/ctl_replay.py:_header_text": "a header that the client has decoded before",
    "apps/doctor/opencl_finding.py:_read": _CHILD,
    "cli/record_worker.py:work": _CHILD,
    "apps/web/compressed.py:decompressed": _OWN,
    "apps/view/canvas.py:text": _OWN,
    "apps/view/graphics.py:window_cell_px": _KERNEL,
    "cli/times.py:parse_utc_ns": _USER,
    "config/toml_text.py:_plain_key": _MUTATED,
    "daemon/access/monitors.py:read": _KERNEL,
    "daemon/access/tcp_links.py:_received_bytes": _KERNEL,
    "daemon/access/tcp_links.py:traffic": _KERNEL,
    "daemon/control/changed_settings.py:": _OWN,
    "formats/export/confined/blosc.py:_decoded": "run in a process of its own, which is confined",
    "formats/export/confined/hdf5.py:_check_chunks": "run in a process of its own",
    "formats/picture/colormaps.py:_tables": "a file of the program, read once in a process",
    "formats/picture/encode.py:_exif": _OWN,
    "formats/picture/encode.py:_pgm": _OWN,
    "formats/picture/theme.py:ink_entries": _OWN,
    "formats/sound/flac_stream.py:_ends_in_first_block": _MUTATED,
    "formats/sound/flac_stream.py:stated_samples": _OWN,
    "formats/values/parquet_footer.py:sort_metadata": _OWN,
    "formats/values/value_parquet.py:_batches": _OWN,
    "opencl/binaries.py:has_program": "from the driver, or a cache of the user's own",
    "source/capture/capture_child.py:main": _CHILD,
    "source/files/codings.py:_expand_alaw": _SAMPLES,
    "source/files/fifo.py:_one_writer": _SAMPLES,
    "source/files/pcm.py:blocks": _SAMPLES,
    "source/files/rawfile.py:blocks": _SAMPLES,
    "source/shared_samples.py:_shared_memory": _CHILD,
    "source/soundcard/capture_process.py:_read_records": _CHILD,
    "source/soundcard/childprocess.py:take_line": _CHILD,
}
"""Functions with decoders that no seed runs: each with the reason."""


def decoders(path):
    """Yield the function, the first and the last line of each call of a decoder in a module."""
    functions = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):  # outer ones before inner ones
        for inner in ast.iter_child_nodes(node):
            is_function = isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
            functions[inner] = inner.name if is_function else functions.get(node, "")
        if isinstance(node, ast.Call):
            names = ast.unparse(node.func).replace("_decoder", "decoder").split(".")
            if names[-1] in DECODERS or tuple(names[-2:]) in OF_MODULES:
                place = f"{path.relative_to(ROOT)}:{functions[node]}"
                yield place, node.lineno, node.end_lineno


class Lines:
    """Lines of some modules that are executed while it is entered."""

    def __init__(self, paths):
        self.executed = defaultdict(set)
        self._names = {str(path) for path in paths}

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._call)

    def __exit__(self, *_):
        sys.settrace(self._before)

    def _call(self, frame, _event, _argument):
        return self._line if frame.f_code.co_filename in self._names else None

    def _line(self, frame, event, _argument):
        if event == "line":
            self.executed[frame.f_code.co_filename].add(frame.f_lineno)
        return self._line


@pytest.mark.slow
def test_each_decoder_is_run_by_the_seeds_of_a_target():
    """Each call of a decoder is run by valid inputs of a target, or listed with a reason."""
    calls = {path: found for path in ROOT.rglob("*.py") if (found := list(decoders(path)))}
    lines = Lines(calls)
    for name in fuzzing.MODULES:
        target = fuzzing.load(name)
        for seed in target.seeds():
            with lines:
                target.check(seed)
    run = {
        place
        for path, found in calls.items()
        for place, first, last in found
        if lines.executed[str(path)].intersection(range(first, last + 1))
    }
    every = {place for found in calls.values() for place, *_ in found}
    assert sorted(every - run - NOT_RUN.keys()) == []
    assert len(calls) > 40


def test_reasons_are_of_functions_with_decoders():
    """No reason stands for a function that is no more, or decodes nothing now."""
    found = {place for path in ROOT.rglob("*.py") for place, *_ in decoders(path)}
    assert sorted(NOT_RUN.keys() - found) == []
