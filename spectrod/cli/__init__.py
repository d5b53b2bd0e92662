"""The ``spectrod`` command: arguments -> call -> exit code, one module per subcommand.

Exit codes: 0 done, 2 usage or configuration, 65 done, but input files were skipped or read in part,
69 a missing device or service, 70 a defect of spectrod, 74 storage, 75 try again, 130 interrupted.
"""

import argparse
import contextlib
import errno
import gc
import os
import re
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn

import spectrod
from spectrod.lib.errors import ConfigError, InputError, SpectrodError, StorageError, bug_error
from spectrod.lib.suggestions import did_you_mean
from spectrod.lib.text import printable

# Import only the module of the given command: --help must not load NumPy, PortAudio or OpenCL.
_COMMANDS = {
    "run": "the daemon, in the foreground: analyse a source and publish its spectra",
    "record": "turn sound or stored spectra into pictures, data files and sound files",
    "info": "say what a file is, what times it has, and what is odd about it",
    "levels": "measure sound levels, loudness and peaks of intervals",
    "features": "measure spectral features and acoustic indices of intervals",
    "detect": "find events in recordings: tables, selections, labels and clips",
    "batch": "compute an archive of many recordings, in units of a day or an hour",
    "convert": "turn a recording of spectra into other formats and pictures",
    "view": "watch a running daemon's spectrum and waterfall in the terminal",
    "web": "serve a page with live spectra, waterfalls and levels to browsers",
    "ctl": "query or change a running daemon",
    "keys": "make and check the keys of network clients",
    "tones": "find the tones of a source, and measure distortion, noise and bandwidth",
    "transfer": "measure the transfer function, coherence and delay between two channels",
    "calibrate": "measure the tone of a calibrator, and write a calibration file",
    "mqtt": "publish the levels, states and events of a daemon to an MQTT broker",
    "upload": "send the files of a folder of recordings to a bucket, once or as a service",
    "devices": "list audio inputs and OpenCL devices, and mark those in use by default",
    "config": "print, merge or check configuration",
    "doctor": "find what is wrong with this machine, and the command that mends it",
    "tune": "search this machine's device for the fastest FFT kernels, save the result",
    "bench": "measure transforms, spectra and the running pipeline, and their peers",
    "image": "filter pictures in the frequency domain, and draw their spectra",
    "selftest": "check the numerical results of this machine's device",
    "completion": "print a shell's completion script",
}

_MODULES = {
    "record": "cli.record",
    "run": "cli.run",
    "selftest": "apps.doctor.selftest_command",
    **dict.fromkeys(("levels", "features"), "apps.measurements.intervals"),
    **{name: f"apps.measurements.{name}" for name in ("calibrate", "info", "tones", "transfer")},
    **{name: f"apps.setup.{name}" for name in ("completion", "config", "devices", "keys")},
}
"""Modules of commands; those of the others are ``apps/NAME/command.py``."""

_GARBAGE_THRESHOLD = 200_000
"""New objects before a garbage collection: more than the 90 000 that the imports of a command and
an hour's picture make; Python's default is 700."""
_LONG_GARBAGE_THRESHOLD = 20_000
"""The same of the commands that run for months, which free what they do not use any more."""
_LONG_COMMANDS = {"run", "view", "web", "mqtt", "upload"}

_IN_OUT = "spectrod IN OUT"
_NEGATIVE_VALUE = re.compile(r"-\.?\d")
_INTERRUPTED = 130
_WORDS_OF_OTHERS = {
    "--end": "--stop",
    "--fft-size": "--nfft",
    "--log": "--f-scale",
    "--n-fft": "--nfft",
    "--noverlap": "--hop",
    "--nperseg": "--win-length",
    "--overlap": "--hop",
}
"""Options that other programs have for the same, which are not similar to ours."""
_OF_FIGURES = ("--size", "--dpi")
"""Options of figures of measurements, which have a size on paper; pictures have pixels."""


def _hint(name: str, options: Collection[str]) -> str:
    """Return what an unknown option probably means, to append to an error."""
    if name in _OF_FIGURES:
        has_width = "--width" in options
        return "; did you mean --width and --height, the pixels of each plot?" if has_width else ""
    if (ours := _WORDS_OF_OTHERS.get(name)) is not None and ours in options:
        return f"; did you mean {ours}?"
    return did_you_mean(name, options)


class _Parser(argparse.ArgumentParser):
    """Reports argument errors in one line, like all other errors.

    Attributes
    ----------
    common : frozenset of str
        Options that ``--help`` shows, of a parser that has ``--help-all`` as well; empty: all.
    examples : str
        Lines that both show.
    """

    common: frozenset[str] = frozenset()
    examples = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # "--for" is no "--format": a wrong option is named, not the value that it did not mean.
        super().__init__(*args, **{"allow_abbrev": False} | kwargs)
        # No option starts with a digit: "-100,-20", "-1:30" and "-90s" are values, like "-5".
        self._negative_number_matcher = _NEGATIVE_VALUE

    def parse_known_args(  # type: ignore[override]  # one of the overloads is used
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments; an unknown one is an error of the command that it was given to."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            # The value of a flag follows it.
            flag = next((text for text in unknown if text.startswith("--")), None)
            options = self._option_string_actions
            if flag is None:
                hint = ""
                if "--source" in options:
                    hint = "; a source is given by --source"
                elif "-o" in options:
                    hint = f"; a file to write is given by -o {unknown[-1]}"
                self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
            name = flag.partition("=")[0]
            self.error(f"{name}: no such option{_hint(name, options)}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if action.dest == "time_axis" and (value == "local" or "/" in str(value)):
                error.message += f"; did you mean --time-zone {value}?"
            else:
                error.message += did_you_mean(str(value), map(str, action.choices or ()))
            raise

    def format_help(self) -> str:
        """Return the help text, of a command with many options with those that people use."""
        if not self.common:
            return super().format_help()
        return self._help_of(
            [
                action
                for action in self._actions
                if not action.option_strings or self.common & set(action.option_strings)
            ]
        )

    def format_help_all(self) -> str:
        """Return the help text with all options."""
        return self._help_of(self._actions)

    def _help_of(self, actions: Sequence[argparse.Action]) -> str:
        head, body = self._get_formatter(), self._get_formatter()
        head.add_usage(self.usage, actions, [])
        head.add_text(self.description)
        for group in self._action_groups:
            own = group._group_actions  # noqa: SLF001 - as argparse's own format_help
            shown = [action for action in own if action in actions]
            body.start_section(group.title)
            body.add_text(group.description)
            body.add_arguments(shown)
            body.end_section()
        return f"{head.format_help()}\n{self.examples}\n{body.format_help()}"

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError."""
        if message.endswith("required: -o/--output"):
            message += f"; {_IN_OUT} needs none"
        raise ConfigError(f"{message} (see {self.prog} --help)")


class _HelpAll(argparse.Action):
    """Prints the help text with all options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        assert isinstance(parser, _Parser)
        print(parser.format_help_all(), end="")
        parser.exit()


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with the arguments of all commands, which imports all their modules."""
    return _parser(*_COMMANDS)


def _parser(*commands: str | None) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="spectrod",
        description="Streaming audio spectrum analyzer: sound in, spectra out over ZeroMQ.",
        epilog=f"{_IN_OUT} makes a picture, data or sound of a recording, as OUT's suffix says; "
        "spectrod FILE says what it is. spectrod COMMAND --help describes a command.",
    )
    parser.add_argument("--version", action="version", version=f"spectrod {spectrod.__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in _COMMANDS.items():
        subparser = subparsers.add_parser(
            name, help=summary, description=f"{summary.capitalize()}."
        )
        if name in commands:
            module = import_module(f"spectrod.{_MODULES.get(name, f'apps.{name}.command')}")
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
            _shorten_help(name, subparser)
    return parser


def _shorten_help(name: str, parser: _Parser) -> None:
    """Let --help show examples and the options that people use, and --help-all the rest."""
    from spectrod.cli.help_texts import COMMAND_HELP  # noqa: PLC0415 - of one command

    if (found := COMMAND_HELP.get(name)) is None:
        return
    parser.add_argument(
        "--help-all", action=_HelpAll, nargs=0, default=argparse.SUPPRESS, help="show all options"
    )
    lines = (
        f"  spectrod {name} {text}".rstrip() + f"\n      {what}" for text, what in found.examples
    )
    parser.examples = "\n".join(["examples:", *lines, ""])
    shown = ("help", "help-all", *found.options.split())
    parser.common = frozenset(f"--{option}" for option in shown)


def command() -> int:
    """Run the command of this process; see ``main``.

    Nearly all objects that the imports create live to the end of the process, which frees them
    anyway: repeated searches for cycles among them would take a tenth of the time of a short
    command. The daemon ends at once, see ``end_process``, and so does a command whose compiler is
    still at work.
    """
    arguments = sys.argv[1:]
    name = _command_in(arguments)
    gc.set_threshold(_LONG_GARBAGE_THRESHOLD if name in _LONG_COMMANDS else _GARBAGE_THRESHOLD)
    try:
        code = main(arguments)
        from spectrod.cli.process_end import end_process, is_compiling  # noqa: PLC0415 - at the end

        if name == "run" or is_compiling():
            end_process(code)
        return code
    finally:
        # Ignore one more Ctrl-C: nothing is left to interrupt.
        with contextlib.suppress(KeyboardInterrupt):
            gc.freeze()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if isinstance(sys.stdout, TextIOWrapper):
        # Escape characters that the encoding lacks, in names of files and sound cards, as on
        # stderr.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except SpectrodError as error:
        return _fail(error.lines, error.exit_code)
    except KeyboardInterrupt:
        return _fail(["interrupted"], _INTERRUPTED)
    except BrokenPipeError:
        # The reader of the output (head, less) has ended: there is nobody to report to.
        _discard_output()
        return 0
    except Exception as error:  # noqa: BLE001
        # Last resort: users see one line, developers the traceback.
        bug = bug_error(error)
        return _fail(bug.lines, bug.exit_code)


def _run(arguments: list[str]) -> int:
    # OpenBLAS in NumPy would start a thread for each core on loading, and keep memory for them; the
    # only command that multiplies matrices, levels, multiplies small ones.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # PoCL would compile each kernel twice: for the size of its work-groups at the first launch, and
    # for any size when the binary is stored. Kernels for any size are as fast.
    os.environ.setdefault("POCL_WORK_GROUP_SPECIALIZATION", "0")
    arguments = _with_command(arguments)
    command = _command_in(arguments)
    try:
        # A parser with --help ends with SystemExit, and its output must be flushed as well.
        try:
            args = _parser(command).parse_args(arguments)
            return int(args.run(args))
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _discard_output()
        raise StorageError(f"{error.filename or 'standard output'}: {error.strerror}") from error


def _with_command(arguments: list[str]) -> list[str]:
    """Add the command that ``spectrod IN OUT`` and ``spectrod IN`` mean, and --help to nothing.

    Raises
    ------
    ConfigError
        If OUT exists: ``spectrod *.wav`` must not replace the second recording.
    """
    if not arguments or arguments[0] == "help":
        return [*arguments[1:2], "--help"]
    given = [one for one in arguments[:2] if not one.startswith("-")]
    if not given or given[0] != arguments[0] or given[0] in _COMMANDS:
        return arguments
    from pathlib import Path  # noqa: PLC0415 - takes 4 ms, which --help does not need

    source = Path(given[0])
    if not os.path.exists(source):  # noqa: PTH110 - "\0" is none
        if source.suffix:
            raise InputError(f"{source}: no file or folder of this name, and no command")
        return arguments
    if len(given) == 1:
        return ["info", *arguments]
    output, options = given[1], arguments[2:]
    if os.path.lexists(output):
        raise ConfigError(f"{output}: exists: {_IN_OUT} makes a new file; record -o replaces one")
    from spectrod.formats.pyramid.pyramid_level import is_pyramid  # noqa: PLC0415 - loads NumPy
    from spectrod.recording.inputs import is_recording  # noqa: PLC0415 - loads NumPy

    if is_recording(source) or is_pyramid(source):
        return ["convert", given[0], output, *options]
    return ["record", given[0], "-o", output, *options]


def _command_in(arguments: Sequence[str]) -> str | None:
    return next((argument for argument in arguments if not argument.startswith("-")), None)


def _discard_output() -> None:
    """Redirect standard output to /dev/null: flushing its buffer would fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _fail(lines: Sequence[str], exit_code: int) -> int:
    # Standard error may be closed (None), full or a broken pipe: the exit code reports the failure.
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            for line in lines:
                print(f"spectrod: {printable(line)}", file=sys.stderr)
    return exit_code
