"""Counts on the command line that are often powers of two."""

import argparse


def count(text: str) -> int:
    """Read ``4096`` or ``2^12``; at least 1.

    Raises
    ------
    argparse.ArgumentTypeError
        Naming the text and the rule.
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
    """Read a time; more than 0.

    Raises
    ------
    argparse.ArgumentTypeError
        Naming the text and the rule.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a positive number of seconds")
    return value
