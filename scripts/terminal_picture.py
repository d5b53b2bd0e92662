"""Draw `spectrod view` in a terminal, with a daemon that plays a recording of a dawn.

    python scripts/terminal_picture.py RECORDING PICTURE.png

Needs tmux, which is the terminal, and a monospaced font. Blocks and dots are drawn as a terminal
draws them, other characters by the font.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from PIL import Image, ImageDraw, ImageFont

SPECTROD = Path(sys.executable).with_name("spectrod")
COLUMNS, LINES = 100, 30
CELL = 9, 18
FONT_PX = 15
ROWS_S = 25
"""Time that the waterfall needs to fill [s]."""
START_S = 30
KEYS = "mlf<<"
TEXT, GROUND = (204, 204, 204), (16, 16, 16)
COLOURS = 96
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
BARS = " ▁▂▃▄▅▆▇█"
TOKEN = re.compile(r"\x1b\[([0-9;]*)m|(.)", re.DOTALL)
Rgb: TypeAlias = tuple[int, int, int]


def capture(folder: Path, recording: str) -> str:
    """Return what the terminal shows, with the sequences of its colours."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    source = ["--source", recording, "--loop", "--name", "garden", "--engine", "numpy"]
    daemon = [SPECTROD, "run", *source, "--publish", endpoint, "--show", "none"]
    tmux = ["tmux", "-S", str(folder / "tmux")]
    colours = "export LC_ALL=C.UTF-8 COLORTERM=truecolor"
    view = shlex.join([str(SPECTROD), "view", endpoint, "--levels=-120,-20"])
    with ExitStack() as stack:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        stack.callback(stack.enter_context(subprocess.Popen(daemon, **quiet)).terminate)
        size = ["-x", str(COLUMNS + 1), "-y", str(LINES)]
        command = [*tmux, "-f", "/dev/null", "new-session", "-d", *size, f"{colours}; exec {view}"]
        subprocess.run(command, check=True)
        stack.callback(subprocess.run, [*tmux, "kill-server"], check=False)
        end_s = time.monotonic() + START_S
        while "q quit" not in (shown := _shown(tmux)):
            if time.monotonic() > end_s:
                sys.exit(f"the view shows nothing but {shown.strip()!r}")
            time.sleep(0.2)
        for key in KEYS:
            subprocess.run([*tmux, "send-keys", "-l", key], check=True)
        time.sleep(ROWS_S)
        return _shown(tmux)


def _shown(tmux: list[str]) -> str:
    command = [*tmux, "capture-pane", "-e", "-p"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def cells(text: str) -> Iterator[tuple[int, int, str, Rgb, Rgb]]:
    """Yield line, column, character and both colours of each cell."""
    front, ground = TEXT, GROUND
    line = column = 0
    for token in TOKEN.finditer(text):
        if token[1] is not None:
            front, ground = pens(token[1], front, ground)
        elif token[2] == "\n":
            line, column = line + 1, 0
        else:
            yield line, column, token[2], front, ground
            column += 1


def pens(parameters: str, front: Rgb, ground: Rgb) -> tuple[Rgb, Rgb]:
    """Return foreground and background after a sequence of colours."""
    numbers = [int(one or 0) for one in parameters.split(";")]
    while numbers:
        code = numbers.pop(0)
        if code in (0, 39):
            front = TEXT
        if code in (0, 49):
            ground = GROUND
        if code in (38, 48):
            rgb = numbers[1], numbers[2], numbers[3]  # after the 2 of 24-bit colours
            front, ground = (rgb, ground) if code == 38 else (front, rgb)
            del numbers[:4]
    return front, ground


def draw_cell(draw: ImageDraw.ImageDraw, x: int, y: int, character: str, colour: Rgb) -> bool:
    """Draw a block or dots; return False for other characters."""
    width, height = CELL
    if character == "▀":
        draw.rectangle([x, y, x + width - 1, y + height // 2 - 1], colour)
    elif character in BARS:
        top = y + height - BARS.index(character) * height // 8
        if top < y + height:
            draw.rectangle([x, top, x + width - 1, y + height - 1], colour)
    elif 0x2800 <= ord(character) < 0x2900:
        for row, pair in enumerate(DOTS):
            for column, bit in enumerate(pair):
                if ord(character) & bit:
                    left, top = x + 1 + column * 4, y + 1 + row * 4
                    draw.rectangle([left, top, left + 1, top + 1], colour)
    else:
        return False
    return True


def picture(text: str) -> Image.Image:
    """Return the picture of a captured screen."""
    width, height = CELL
    image = Image.new("RGB", (COLUMNS * width + 8, LINES * height + 8), GROUND)
    draw = ImageDraw.Draw(image)
    words = ["/usr/bin/fc-match", "-f", "%{file}", "monospace"]
    found = subprocess.run(words, check=True, capture_output=True, text=True)
    font = ImageFont.truetype(found.stdout, FONT_PX)
    for line, column, character, front, ground in cells(text):
        x, y = 4 + column * width, 4 + line * height
        if ground != GROUND:
            draw.rectangle([x, y, x + width - 1, y + height - 1], ground)
        if not draw_cell(draw, x, y, character, front):
            draw.text((x, y + height - 5), character, front, font, anchor="ls")
    return image


def main() -> None:
    """Capture the view and draw it."""
    recording, target = sys.argv[1:]
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        text = capture(Path(folder), recording)
    few = picture(text).quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    main()
