"""Make the pictures of the documentation again, in docs/pictures: `make pictures`.

The sounds are made here: speech by espeak-ng, a dawn by examples/dawn.py.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
SPECTROD = Path(sys.executable).with_name("spectrod")
SENTENCE = "Every number has a unit, a reference and a test."
PLAYED = "20260501_045500.wav"
"""File of the dawn in which a generator runs and birds sing."""
CALIBRATION = 'reference = "20 uPa"\nfull_scale_db = 112.0\nfull_scale = "sine"\n'


def run(*words: str | Path, cwd: Path) -> None:
    """Run a program; a failure ends the script."""
    subprocess.run(words, cwd=cwd, check=True)


def record(folder: Path, source: str, name: str, *flags: str) -> None:
    """Draw a source in a folder as docs/pictures/NAME.png."""
    run(SPECTROD, "record", source, "-o", PICTURES / f"{name}.png", *flags, cwd=folder)


def draw_speech(folder: Path) -> None:
    """Draw a sentence with its waveform and its level."""
    run("espeak-ng", "-v", "en-gb", "-s", "140", "-w", "speech.wav", SENTENCE, cwd=folder)
    flags = ["--strips", "waveform,level", "--f-max", "8k", "--win-length", "512"]
    record(folder, "speech.wav", "speech", *flags, "--width", "900", "--height", "260")


def draw_dawn(folder: Path) -> None:
    """Draw two hours as a long-term average, as percentiles, and as levels of third octaves."""
    run(sys.executable, ROOT / "examples" / "dawn.py", "dawn", "--hours", "2", cwd=folder)
    (folder / "mic.toml").write_text(CALIBRATION)
    utc = ["--time-axis", "utc", "--width", "900", "--calibration", "mic.toml"]
    record(folder, "dawn", "ltsa", "--view", "ltsa", "--height", "320", *utc)
    record(folder, "dawn", "percentiles", "--view", "spd", "--height", "360", *utc)
    bands = ["--bands", "third-octave", "--weighting", "A", "--averaging", "mean"]
    rows = ["--rate-hz", "1/10", "--win-length", "8000", "--hop", "4000", "--f-scale", "octave"]
    record(folder, "dawn", "third-octaves", *bands, *rows, "--f-min", "50", "--height", "240", *utc)


def draw_levels(folder: Path) -> None:
    """Draw levels of the dawn's first hour over time and in third octaves."""
    flags = ["--calibration", "mic.toml", "--duration", "1h", "--interval", "1min"]
    asked = ["--quantity", "LAeq,L10,L90", "--bands", "third-octave"]
    output = PICTURES / "levels.png"
    run(SPECTROD, "levels", "dawn", "-o", output, *flags, *asked, cwd=folder)


def draw_page(folder: Path) -> None:
    """Draw the page for browsers while the daemon plays a file of the dawn."""
    script = ROOT / "scripts" / "page_picture.py"
    run(sys.executable, script, f"dawn/{PLAYED}", PICTURES / "page.png", cwd=folder)


def draw_terminal(folder: Path) -> None:
    """Draw the terminal view while the daemon plays a file of the dawn."""
    script = ROOT / "scripts" / "terminal_picture.py"
    run(sys.executable, script, f"dawn/{PLAYED}", PICTURES / "terminal.png", cwd=folder)


def main() -> None:
    """Make all pictures."""
    for program in ("espeak-ng", "chromium", "tmux", "fc-match"):
        if shutil.which(program) is None:
            sys.exit(f"{program}: not found; make pictures installs it")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        draw_speech(Path(folder))
        draw_dawn(Path(folder))
        draw_levels(Path(folder))
        draw_page(Path(folder))
        draw_terminal(Path(folder))


if __name__ == "__main__":
    main()
