"""Write the page's colormaps.js: the colour maps of pictures, as the page reads them."""

from pathlib import Path

from spectrod.formats.picture.colormaps import colormap, colormap_names

PATH = Path(__file__).parents[2] / "spectrod" / "apps" / "web" / "page" / "plot" / "colormaps.js"

_HEAD = """\
/**
 * Colour maps of 256 entries, lowest level first, each entry RRGGBB.
 *
 * Those of pictures, written by tests/page/make_colormaps.py: authors and licences are in
 * spectrod/formats/picture/colormaps.txt. Not to be edited.
 */

export const COLORMAPS = {
"""


def text():
    """Return the module's text."""
    maps = [_lines(name) for name in colormap_names()]
    return _HEAD + "".join(maps) + "};\n"


def _lines(name):
    digits = colormap(name, 256).tobytes().hex()
    parts = [f'    "{digits[i : i + 96]}"' for i in range(0, len(digits), 96)]
    return f"  {name}:\n" + " +\n".join(parts) + ",\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="ascii")
