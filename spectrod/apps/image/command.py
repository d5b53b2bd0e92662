"""``spectrod image``: filters in the frequency domain, and pictures of spectra."""

import argparse
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import get_args

from spectrod.apps.image.filtering import PlaneSpectra, mirrored
from spectrod.apps.image.image_picture import TONES, Picture, Tone, to_pixels
from spectrod.apps.image.picture_files import (
    check_output,
    check_suffix,
    read_picture,
    write_picture,
)
from spectrod.apps.image.radial import Edge, RadialFilter, Radius
from spectrod.fft.runtime import open_first
from spectrod.fft.stage import Precision

_RADIUS = "frequency: cycles along the longer side (32), or parts of Nyquist (0.25nyq)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    tools = parser.add_subparsers(dest="tool", metavar="TOOL", required=True)
    _add_filter(
        tools.add_parser("filter", help="filter a picture: low-pass, high-pass or band-pass")
    )
    _add_fft2(tools.add_parser("fft2", help="draw the spectrum, frequency zero in the middle"))


def _add_filter(parser: argparse.ArgumentParser) -> None:
    parser.description = "Filter a picture with a radial low-pass, high-pass or band-pass."
    _add_files(parser)
    passes = parser.add_mutually_exclusive_group(required=True)
    passes.add_argument("--low", metavar="R", help=f"pass below R; a {_RADIUS}")
    passes.add_argument("--high", metavar="R", help="pass above R")
    passes.add_argument("--band", nargs=2, metavar=("R1", "R2"), help="pass between R1 and R2")
    parser.add_argument(
        "--edge",
        default="ideal",
        metavar="EDGE",
        help="ideal, gauss, butterworth,ORDER or cosine,WIDTH; half passes at R (%(default)s)",
    )
    parser.add_argument(
        "--border",
        choices=("wrap", "mirror"),
        default="wrap",
        help="beyond the picture's edge: its opposite side, or its mirror image, for four "
        "times the work (%(default)s)",
    )
    parser.add_argument(
        "--tone",
        choices=TONES,
        help="levels as they are; around mid-grey; or stretched from black to white (keep with "
        "--low, centre with others, whose mean is zero)",
    )
    parser.set_defaults(make=_filtered)


def _add_fft2(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Draw log(1 + magnitude) of a picture's spectrum, frequency zero in the middle, the "
        "largest value white."
    )
    _add_files(parser)
    parser.set_defaults(make=_drawn)


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="IN", help="PGM, PPM or PNG")
    parser.add_argument("output", type=Path, metavar="OUT", help="OUT.pgm, .ppm or .png; may be IN")
    parser.add_argument("--precision", choices=get_args(Precision), default="single")
    parser.add_argument("--device", default="", metavar="NAME", help="see spectrod devices")


def run(args: argparse.Namespace) -> int:
    """Read, compute and write; check first that the output can be written."""
    check_suffix(args.output)
    picture = read_picture(args.source)
    write_picture(args.output, args.make(args, picture))
    return 0


def _filtered(args: argparse.Namespace, picture: Picture) -> Picture:
    check_output(args.output, picture)
    radial, side = _radial(args), max(picture.shape)
    radial.check(side)
    planes = mirrored(picture.planes) if args.border == "mirror" else picture.planes
    with closing(open_first(args.device)) as context:
        spectra = PlaneSpectra(context, planes.shape[1:], args.precision)
        result = spectra.filtered(planes, radial, side)
    rows, columns = picture.shape
    tone: Tone = args.tone or ("keep" if radial.keeps_mean else "centre")
    pixels = to_pixels(result[:, :rows, :columns], picture.maxval, tone)
    return replace(picture, planes=pixels)


def _drawn(args: argparse.Namespace, picture: Picture) -> Picture:
    opaque = replace(picture, alpha=None)
    check_output(args.output, opaque)
    with closing(open_first(args.device)) as context:
        spectra = PlaneSpectra(context, picture.shape, args.precision)
        logarithms = spectra.drawn(picture.planes)
    largest = logarithms.max()
    levels = logarithms * (picture.maxval / largest) if largest > 0.0 else logarithms
    return replace(opaque, planes=to_pixels(levels, picture.maxval, "keep"))


def _radial(args: argparse.Namespace) -> RadialFilter:
    inner, outer = args.band or (args.high, args.low)
    return RadialFilter(_radius(inner), _radius(outer), Edge.parse(args.edge))


def _radius(text: str | None) -> Radius | None:
    return None if text is None else Radius.parse(text)
