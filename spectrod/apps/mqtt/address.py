"""Address and credentials of an MQTT broker."""

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spectrod.lib.errors import ConfigError
from spectrod.lib.regular_files import open_regular

_PORTS = {"mqtt": 1883, "mqtts": 8883}
_RULE = "must be mqtt://[USER@]HOST[:PORT] or mqtts://..."
_FOR_OTHERS = 0o077
_FOR_ROOTS_GROUP = 0o037  # systemd hands its credentials over to the group of a unit
_PASSWORD_MAX_BYTES = 65535
_FORBIDDEN = re.compile(r"[+#\0\ud800-\udfff]|//|^[/$]|/$|^$")


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Address of a broker, with user and TLS settings.

    Attributes
    ----------
    text : str
        As given; contains no password.
    host : str
    port : int
    tls : bool
    user : str or None
        None for anonymous access.
    password : str or None
    ca_file : str or None
        Certificates of which one must have signed the broker's; None for the system's.
    """

    text: str
    host: str
    port: int
    tls: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None


def parse_broker(text: str) -> BrokerAddress:
    """Parse ``mqtt[s]://[USER@]HOST[:PORT]``.

    Raises
    ------
    ConfigError
        If it has another form, or contains a password, which every process could see.
    """
    try:
        url = urlsplit(text)
        port = url.port
        (url.hostname or "").encode("idna")  # name resolution would raise the same
    except ValueError as error:
        raise ConfigError(f"broker={text!r}: {_RULE}: {error}") from error
    if url.password is not None:
        raise ConfigError(f"broker={text.replace(url.password, '...')!r}: give --password-file")
    rest = url.path.strip("/") or url.query or url.fragment
    if url.scheme not in _PORTS or not url.hostname or port == 0 or rest:
        raise ConfigError(f"broker={text!r}: {_RULE}")
    user = unquote(url.username) if url.username else None
    port = _PORTS[url.scheme] if port is None else port
    return BrokerAddress(text, url.hostname, port, url.scheme == "mqtts", user)


def read_password(path: Path) -> str:
    """Read a password from a file: its text without the final newline.

    Raises
    ------
    ConfigError
        If it cannot be read, is too long, or others may read it.
    """
    try:
        with open_regular(path) as file:
            info = os.fstat(file.fileno())
            allowed = _FOR_OTHERS if info.st_uid else _FOR_ROOTS_GROUP
            if stat.S_IMODE(info.st_mode) & allowed:
                raise ConfigError(
                    f"{path}: mode={stat.S_IMODE(info.st_mode):04o}: others must not read it; "
                    f"chmod 600 {path}"
                )
            data = file.read(_PASSWORD_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(data) > _PASSWORD_MAX_BYTES:
        raise ConfigError(f"{path}: must be a password, at most {_PASSWORD_MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: must be UTF-8") from error


def check_topic_prefix(what: str, prefix: str) -> str:
    """Return a valid prefix of topics.

    Raises
    ------
    ConfigError
        If it is empty, has a wildcard or an empty level, or starts with ``$``.
    """
    if _FORBIDDEN.search(prefix):
        raise ConfigError(
            f"{what}={prefix!r}: must be levels separated by /, without + and #, not from $ on"
        )
    return prefix
