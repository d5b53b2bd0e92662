"""What ``--help`` of the larger commands shows first: examples, and the options that people use."""

from typing import Final, NamedTuple


class CommandHelp(NamedTuple):
    """Short help of a command; ``--help-all`` has all options.

    Attributes
    ----------
    examples : tuple of (str, str)
        Arguments of the command, with what they do.
    options : str
        Options that the short help shows, without dashes, separated by spaces.
    """

    examples: tuple[tuple[str, str], ...]
    options: str


COMMAND_HELP: Final = {
    "run": CommandHelp(
        (
            ("", "the default sound card, or a test signal without one"),
            ("--source soundcard:USB --name roof --web 127.0.0.1:8765", "with a page"),
            ("--config spectrod.toml", "as the service does"),
        ),
        "config source name publish web show samplerate channels win-length hop bands calibration",
    ),
    "record": CommandHelp(
        (
            ("night.wav -o night.png", "a spectrogram"),
            ("recordings/ -o season.png --view ltsa", "long-term averages of a folder"),
            ("tcp://127.0.0.1:5556 -o out/ --every 1h --name '%Y%m%dT%H%M%SZ.spd'",
             "spectra of a daemon, a file an hour"),
        ),
        "output every name each view duration start stop width "
        "f-scale f-min f-max levels time-zone calibration win-length hop scaling bands",
    ),
    "convert": CommandHelp(
        (
            ("night.spd night.nc", "data for NetCDF and xarray"),
            ("night.spd dawn.png --start 3:00:00 --duration 2h", "a picture of a part"),
            ("archive/ season.png --view ltsa", "long-term averages of a folder"),
        ),
        "start stop duration cells view width f-scale f-min f-max levels time-zone title",
    ),
    "levels": CommandHelp(
        (
            ("night.wav", "LAeq, LAFmax and more of the whole file"),
            ("recordings/ --interval 15min --quantity LAeq,L10,L90 -o levels.csv -o levels.png",
             "a table and its figure"),
            ("recordings/ --quantity Lden --time-zone Europe/Berlin", "days of local time"),
        ),
        "output csv quantity interval align time-zone bands jobs "
        "start stop duration calibration title size dpi",
    ),
    "features": CommandHelp(
        (
            ("night.wav --interval 1min", "spectral features of each minute"),
            ("recordings/ --interval 1min --quantity ACI,NDSI,ADI -o indices.csv",
             "acoustic indices"),
            ("night.wav --interval 10s -o features.png", "a figure"),
        ),
        "output csv interval align time-zone quantity band win-length jobs "
        "start stop duration title size dpi",
    ),
    "detect": CommandHelp(
        (
            ("recordings/ --band 2k..6k --over-floor 10 -o events.csv",
             "what is 10 dB above the noise there"),
            ("night.wav --band 2k..6k -o night.selections.txt --clips clips/",
             "for Raven, with the sound of each"),
            ("kitchen.wav --band 2.9k..3.3k --pulse 0.3..0.7 --pause 0.3..0.7",
             "a smoke alarm, by its pulses"),
        ),
        "output clips pictures margin band kind threshold over-floor "
        "hold-off pulse pause start stop duration time-zone win-length",
    ),
    "tones": CommandHelp(
        (
            ("amplifier.wav", "tones, THD, THD+N, SNR"),
            ("amplifier.wav -o spectrum.png", "with the harmonics marked"),
            ("drone.wav --interval 1s --quantity fundamental,level -o drone.csv", "over time"),
            ("night.wav --interval 1s --tracks night.selections.txt", "each tone, for Raven"),
        ),
        "output peaks fundamental harmonics imd channel json "
        "interval quantity tracks win-length start stop duration calibration title size dpi",
    ),
    "transfer": CommandHelp(
        (
            ("in_and_out.wav -o response.csv -o response.png",
             "of channel 1 over channel 0, with coherence"),
            ("room.wav --sweep 20,20k,10 --impulse-response ir.wav",
             "from a recording of signal:sweep"),
            ("in_and_out.wav --win-length 131072", "a finer resolution"),
        ),
        "output delay sweep harmonics impulse-response reference "
        "response win-length hop start stop duration calibration title size dpi",
    ),
    "calibrate": CommandHelp(
        (
            ("calibrator.wav --level 94 -o mic.toml", "the steadiest stretch of the tone"),
            ("soundcard:USB --level 114 --frequency 250 -o mic.toml", "from the sound card"),
            ("calibrator.wav --level 94 --start 12 -o mic.toml", "the tone at 12 s"),
        ),
        "level frequency level-uncertainty seconds start "
        "serial channel output force samplerate channels title size dpi",
    ),
}  # fmt: skip
