"""Options that several commands share, and their way into the configuration."""

import argparse
from collections.abc import Mapping
from typing import Any


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add --config."""
    parser.add_argument("--config", metavar="FILE", help="configuration file (TOML)")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add what describes raw samples and test signals."""
    group = parser.add_argument_group("source")
    group.add_argument("--rate", metavar="HZ", help="sample rate, where the source leaves it open")
    group.add_argument("--channels", metavar="N", help="channels, where the source leaves it open")
    group.add_argument(
        "--format", metavar="FMT", help="raw samples on -: u8 s16le s24le s32le f32le f64le"
    )


def add_analysis(
    parser: argparse.ArgumentParser, win_length: str = "4096", hop: str = "1024"
) -> None:
    """Add what says which spectra to compute; two defaults, in words, depend on the command."""
    group = parser.add_argument_group("analysis")
    group.add_argument("--window", metavar="NAME", help="hann, flattop, blackmanharris, ...")
    group.add_argument("--win-length", metavar="N", help=f"samples under the window ({win_length})")
    group.add_argument("--hop", metavar="N", help=f"samples from frame to frame ({hop})")
    group.add_argument(
        "--nfft", metavar="N", help="16 to 1048576, from the window on; powers of two are fastest"
    )
    group.add_argument("--scaling", metavar="KIND", help="dbfs, spectrum or density")


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add what chooses the engine."""
    group = parser.add_argument_group("engine")
    group.add_argument("--engine", metavar="KIND", help="auto, opencl or numpy")
    group.add_argument("--device", metavar="NAME", help="OpenCL device, see spectrod devices")


def flags(args: argparse.Namespace) -> Mapping[str, Mapping[str, Any]]:
    """Return the options as the configuration's last layer; what was not given is None."""

    def given(name: str) -> Any:
        return getattr(args, name, None)

    return {
        "source": {
            "uri": given("source"),
            "name": given("name"),
            "samplerate": given("rate"),
            "channels": given("channels"),
            "format": given("format"),
        },
        "analysis": {key: given(key) for key in ("window", "win_length", "hop", "nfft", "scaling")},
        "engine": {"engine": given("engine"), "device": given("device")},
        "publish": {"endpoints": given("publish"), "insecure": given("insecure")},
        "log": {"level": given("log_level")},
    }
