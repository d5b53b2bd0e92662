"""Fuzz a decoder of bytes from outside, guided by coverage, or run given inputs through it.

    python tests/fuzz/run.py TARGET [--runs N] [--seconds S] [--corpus DIR] [-- LIBFUZZER-OPTION...]
    python tests/fuzz/run.py TARGET FILE...        each input once, with its time and memory
    python tests/fuzz/run.py TARGET --large        inputs of 1 MB made of the seeds
    python tests/fuzz/run.py TARGET --add FILE...  into the committed corpus
    python tests/fuzz/run.py --list
    python tests/fuzz/run.py --serve               command lines of standard input

The search needs Atheris (``pip install --group fuzz``) and begins with the seeds, the committed
corpus, and what is in DIR, where it keeps what reaches something new. A defect ends it with a
traceback; the input is kept in ``--findings``. With ``--keep-going`` the search goes on after a
defect and keeps the first input of each kind. See CONTRIBUTING.md.
"""

import argparse
import hashlib
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
if not any((Path(folder) / "spectrod").is_dir() for folder in sys.path[1:]):
    sys.path.append(str(HERE.parents[1]))

import fuzzing
from fuzzing import MODULES, LimitError, Limits, Target, corpus_of, large_inputs

_MUTATED_BY_FORMAT = 0.6
_FROM_A_SEED = 0.2


def main(arguments: Sequence[str]) -> int:
    """Run the command of the arguments; the exit code is 0 if no defect was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", nargs="?", choices=MODULES, metavar="TARGET")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="print the targets")
    parser.add_argument("--serve", action="store_true", help="run command lines of standard input")
    parser.add_argument("--add", action="store_true", help="add FILEs to the committed corpus")
    parser.add_argument("--large", action="store_true", help="try inputs of 1 MB")
    parser.add_argument("--runs", type=int, default=-1, help="executions; -1: no limit")
    parser.add_argument("--seconds", type=int, default=0, help="time; 0: no limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", metavar="DIR", type=Path, help="kept; else a temporary folder")
    parser.add_argument("--findings", metavar="DIR", type=Path, default=Path())
    parser.add_argument("--keep-going", action="store_true", help="after a defect")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    args = parser.parse_intermixed_args(arguments[:at])
    if args.serve:
        return _serve()
    if args.list or args.target is None:
        print("\n".join(MODULES))
        return 0
    if "TMPDIR" not in os.environ:
        return _in_own_folder()
    logging.disable(logging.CRITICAL)
    if args.add:
        _add(args.target, args.files)
        return 0
    if args.files or args.large:
        return _replay(args)
    return _search(args, arguments[at + 1 :])


def _serve() -> int:
    """Run each command line, a JSON list behind a file for its output, in a process of its own.

    They share the imports, which take most of the time of a short search: Atheris instruments a
    module in 30 ms. The answer to a command line is its exit code. All of them are searches, or
    none is: instrumented code is slower.
    """
    for line in sys.stdin:
        output, name, *arguments = json.loads(line)
        _load(name, is_searched="--runs" in arguments)
        if pid := os.fork():
            _, status = os.waitpid(pid, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        else:
            _end_as_forked(output, [name, *arguments])
    return 0


def _end_as_forked(output: str, arguments: Sequence[str]) -> None:
    """Run a command line with its output in a file, and end this process."""
    code = 1
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for stream in (1, 2):
            os.dup2(file, stream)
        code = main(arguments)
    except BaseException:  # noqa: BLE001 - what would be the parent's must end here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _load(name: str, *, is_searched: bool) -> Target:
    """Import a target, instrumented for a search."""
    if not is_searched:
        return fuzzing.load(name)
    import atheris  # noqa: PLC0415 - nothing else needs it

    with atheris.instrument_imports(include=list(MODULES[name][1])):
        return fuzzing.load(name)


def _in_own_folder() -> int:
    """Run the program again with a temporary folder in memory, which is removed at the end.

    libFuzzer ends its process without any of Python's clean-up.
    """
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
    with tempfile.TemporaryDirectory(
        prefix="spectrod-fuzz-", dir=memory if memory.is_dir() else None
    ) as folder:
        environment = {**os.environ, "TMPDIR": folder}
        return subprocess.run([sys.executable, *sys.argv], check=False, env=environment).returncode


def _replay(args: argparse.Namespace) -> int:
    """Run inputs without Atheris, and print the time and memory of each; 1 if any is a defect."""
    target = fuzzing.load(args.target)
    limits = Limits()
    for seed in target.seeds():  # imports and one-time work do not count for an input
        limits.run(target.check, seed)
    inputs = (
        large_inputs(target, target.seeds())
        if args.large
        else (path.read_bytes() for path in args.files)
    )
    n_inputs, failed = 0, False
    for data in inputs:
        n_inputs += 1
        try:
            limits.run(target.check, data)
        except (Exception, LimitError):  # noqa: BLE001 - any is a defect, and printed
            failed = True
            traceback.print_exc()
            print(f"input {n_inputs} of {len(data)} bytes: {_kept(args.findings, data)}")
    limits.close()  # or its timer ends the process, once Python has restored its handlers
    print(
        f"{args.target}: {n_inputs} inputs, slowest {limits.slowest_s:.3f} s, "
        f"largest {limits.largest_bytes / 1e6:.1f} MB"
    )
    return int(failed)


def _add(name: str, files: Sequence[Path]) -> None:
    """Write inputs into a target's corpus, under the names of their files."""
    known = corpus_of(name)
    with (fuzzing.CORPUS / f"{name}.txt").open("a") as corpus:
        for path in files:
            data = path.read_bytes()
            if path.name not in known and data not in known.values():
                corpus.write(fuzzing.corpus_line(path.name, data) + "\n")


def _kept(folder: Path, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"crash-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    return path


def _search(args: argparse.Namespace, options: Sequence[str]) -> int:
    import atheris  # noqa: PLC0415 - what is above needs none

    target = _load(args.target, is_searched=True)
    seeds = [*target.seeds(), *corpus_of(args.target).values()]
    limits = Limits()
    args.findings.mkdir(parents=True, exist_ok=True)
    check = _within(limits, target.check)
    if args.keep_going:
        check = _collecting(check, args.findings)
    for seed in seeds:
        check(seed)
    fuzzing.limit_address_space()
    corpus = args.corpus or Path(tempfile.mkdtemp())
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (corpus / hashlib.sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)
    own = [
        f"-runs={args.runs}",
        f"-max_total_time={args.seconds}",
        f"-seed={args.seed}",
        f"-max_len={max([target.max_bytes, *map(len, seeds)])}",
        f"-artifact_prefix={args.findings}/",
        "-timeout=60",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        "-verbosity=1",
    ]

    def change_bytes(data: bytes, max_size: int) -> bytes:
        return bytes(atheris.Mutate(data, max_size))  # replaced by Fuzz()

    argv = [sys.argv[0], *own, *options, str(corpus)]
    atheris.Setup(argv, check, custom_mutator=_mutator(change_bytes, target, seeds))
    atheris.Fuzz()
    return 0


def _within(limits: Limits, check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Run a check within the limits, whose error no handler of Atheris catches."""

    def run(data: bytes) -> None:
        try:
            limits.run(check, data)
        except LimitError as error:
            raise AssertionError(str(error)) from error

    return run


def _collecting(check: Callable[[bytes], None], folder: Path) -> Callable[[bytes], None]:
    """Keep the first input of each kind of defect, and raise nothing."""

    def run(data: bytes) -> None:
        try:
            check(data)
        except Exception as error:  # noqa: BLE001 - any is a defect, and kept
            name = _kind(error)
            path = folder / name
            if not path.exists():
                path.write_bytes(data)
                text = "".join(traceback.format_exception(error))
                path.with_name(f"{name}.txt").write_text(f"{time.ctime()}\n{text}")

    return run


def _kind(error: BaseException) -> str:
    """Name a defect by the innermost line of spectrod, or else of the target."""
    cause = error.__cause__ if isinstance(error.__cause__, LimitError) else error
    frames = traceback.extract_tb(cause.__traceback__)
    own = [frame for frame in frames if "/spectrod/" in frame.filename] or list(frames)
    return f"{type(cause).__name__}-{Path(own[-1].filename).stem}-{own[-1].lineno}"


def _mutator(
    change_bytes: Callable[[bytes, int], bytes], target: Target, seeds: Sequence[bytes]
) -> Callable[[bytes, int, int], bytes]:
    """Return a mutator for Atheris: by the format, or libFuzzer's with corrected checksums.

    The corpus knows only Python's coverage and drops inputs that differ in C libraries, so some
    mutations start with a seed instead.
    """

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)  # noqa: S311 - no secrets
        if rng.random() < _FROM_A_SEED:
            data = rng.choice(seeds)
        if rng.random() < _MUTATED_BY_FORMAT:
            changed = target.mutate(data, rng)
        else:
            changed = change_bytes(data, max_size)
            if rng.random() < 0.5:
                changed = target.repair(changed)
        return changed[:max_size]

    return mutate


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
