"""The listening socket and the certificate."""

import socket
import ssl
import subprocess

import pytest

from spectrod.apps.web.listen import (
    UNSENT_MAX_BYTES,
    load_certificate,
    open_listener,
    parse_address,
)
from spectrod.lib.errors import BusyError, ConfigError, UnavailableError


@pytest.mark.parametrize("text", ["", "8765", "localhost", "a:b", "127.0.0.1:99999", "::1:8765"])
def test_a_malformed_address_is_refused(text):
    """The error names the option, the value and the rule."""
    with pytest.raises(ConfigError, match=r"listen=.*: must be HOST:PORT, such as 127.0.0.1:8765"):
        parse_address(text)


def test_accepted_connections_keep_little_unsent():
    """The options of the listening socket are those of its connections."""
    listener = open_listener(parse_address("127.0.0.1:0"))
    with listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            unsent_bytes = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
            assert unsent_bytes == UNSENT_MAX_BYTES
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_all_addresses_are_those_of_both_families():
    """A star serves IPv4 and, where there is one, IPv6."""
    with open_listener(parse_address("*:0")) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        if socket.has_dualstack_ipv6():
            socket.create_connection(("::1", port)).close()


def test_a_port_in_use_is_busy():
    """The error says what to do."""
    with open_listener(parse_address("127.0.0.1:0")) as first:
        port = first.getsockname()[1]
        with pytest.raises(BusyError, match=rf"listen='127.0.0.1:{port}': another program has"):
            open_listener(parse_address(f"127.0.0.1:{port}"))


def test_a_port_without_permission_is_refused(monkeypatch):
    """Root may bind any port, so the system's answer is simulated."""

    def bind(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", bind)
    with pytest.raises(ConfigError, match=r"'127.0.0.1:80': Permission denied; ports below 1024"):
        open_listener(parse_address("127.0.0.1:80"))


@pytest.mark.parametrize("host", ["192.0.2.1", "a" * 64 + ".b"])
def test_an_address_of_another_machine_is_unavailable(host):
    """Also a name that no name server can be asked for."""
    with pytest.raises(UnavailableError, match=r"listen='.*:8765': "):
        open_listener(parse_address(f"{host}:8765"))


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A self-signed certificate with its key, and the same key encrypted."""
    folder = tmp_path_factory.mktemp("tls")
    new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    subprocess.run(
        [*new.split(), "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    encrypt = "openssl ec -aes256 -passout pass:secret -in key.pem -out locked.pem"
    subprocess.run(encrypt.split(), cwd=folder, check=True, capture_output=True)
    (folder / "text.pem").write_text("no certificate")
    return folder


def test_a_certificate_makes_a_server_of_tls_1_2_or_later(keys):
    """Earlier versions are broken."""
    context = load_certificate(keys / "cert.pem", keys / "key.pem")
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        ("away.pem", "key.pem", r"tls-cert=.*away.pem: No such file or directory"),
        ("cert.pem", "away.pem", r"tls-key=.*away.pem: No such file or directory"),
        ("text.pem", "key.pem", r"must be a certificate and its key, unencrypted PEM files"),
        ("cert.pem", "text.pem", r"must be a certificate and its key, unencrypted PEM files"),
        ("cert.pem", "locked.pem", r"must be a certificate and its key, unencrypted PEM files"),
        (".", "key.pem", r"tls-cert=.*: is a folder; must be a file"),
    ],
)
def test_an_unusable_certificate_is_refused(keys, certificate, key, message):
    """A key with a passphrase too: nobody could enter it into a service."""
    with pytest.raises(ConfigError, match=message):
        load_certificate(keys / certificate, keys / key)
