"""Counts, times and frequencies on the command line."""

import argparse

from spectrod.lib.durations import FREQUENCY_RULE, TIME_RULE, parse_frequency, parse_time

_SECONDS_MAX = 1e9


def count(text: str) -> int:
    """Parse ``4096`` or ``2^12``; at least 1.

    Raises
    ------
    argparse.ArgumentTypeError
        With the text and the rule.
    """
    base, caret, exponent = text.partition("^")
    numbers = [base, exponent] if caret else [base]
    if not all(number.isdecimal() and len(number) < 12 for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number, such as 4096 or 2^12")
    value = int(base) ** min(int(exponent), 64) if caret else int(base)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be at least 1")
    return value


def seconds(text: str) -> float:
    """Parse a duration above 0 [s].

    Raises
    ------
    argparse.ArgumentTypeError
        With the text and the rule.
    """
    value = parse_time(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r}: {TIME_RULE}")
    if not 0.0 < value < _SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r}: must be above 0 and below {_SECONDS_MAX:g} s")
    return value


def frequency(text: str) -> float:
    """Parse a frequency [Hz].

    Raises
    ------
    argparse.ArgumentTypeError
        With the text and the rule.
    """
    value = parse_frequency(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r}: {FREQUENCY_RULE}")
    return value
