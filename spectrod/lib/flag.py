"""Flags of the command line, described where their settings are defined."""

from collections.abc import Sequence

from msgspec import Meta


def flag(metavar: str, help_: str, *, name: str = "", choices: Sequence[str] = ()) -> Meta:
    """Describe the flag of a setting, as a note of its type.

    Parameters
    ----------
    metavar : str
        Stands for the value in help texts; empty: its name, or the choices.
    help_ : str
    name : str
        Of the flag, without dashes; empty: that of the setting.
    choices : sequence of str
        Values that it takes; empty: any.
    """
    extra = {"metavar": metavar, "name": name, "choices": choices}
    return Meta(description=help_, extra={key: value for key, value in extra.items() if value})
