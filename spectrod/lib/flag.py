"""Flags of the command line, described where their settings are defined."""

from collections.abc import Sequence

from msgspec import Meta


def flag(
    metavar: str,
    help_: str = "",
    *,
    name: str = "",
    aliases: Sequence[str] = (),
    choices: Sequence[str] = (),
    group: str = "",
) -> Meta:
    """Describe the flag of a setting, as a note of its type.

    Parameters
    ----------
    metavar : str
        Stands for the value in help texts; empty: its name, or the choices.
    help_ : str
        ``%(default)s`` stands for the default.
    name : str
        Of the flag, without dashes; empty: that of the setting. Settings of one name, which follow
        each other, share a flag that takes a value for each; the help is that of the first.
    aliases : sequence of str
        Earlier names of the flag, which stay.
    choices : sequence of str
        Values that it takes; empty: any.
    group : str
        Title above the flag in help texts; empty: none of its own.
    """
    extra = {
        "metavar": metavar,
        "name": name,
        "aliases": aliases,
        "choices": choices,
        "group": group,
    }
    return Meta(description=help_, extra={key: value for key, value in extra.items() if value})
