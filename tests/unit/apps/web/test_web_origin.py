"""Whom a request names, and whose page sent it."""

import pytest

from spectrod.apps.web.listen import parse_address
from spectrod.apps.web.page_origin import is_loopback, network_of, parse_host, server_names
from spectrod.lib.errors import ConfigError


def names(listen="127.0.0.1:8765", allow_hosts=(), machine="box"):
    return server_names(parse_address(listen), allow_hosts, machine)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("localhost:8765", ("localhost", 8765)),
        ("LocalHost", ("localhost", None)),
        ("[::1]:80", ("::1", 80)),
        ("[0:0::1]", ("::1", None)),
        ("[::zz]", None),
        ("::1", None),
        ("a b", None),
        ("localhost:", None),
        ("localhost:123456", None),
        ("user@localhost", None),
        ("localhost/", None),
        ("localhost\n", None),
        ("", None),
        ("é", None),
    ],
)
def test_a_host_is_a_name_or_an_address_with_a_port(text, parsed):
    """Names are in lower case, addresses in their shortest form; anything else is refused."""
    assert parse_host(text) == parsed


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8765", "[::1]:1", "LOCALHOST:9"])
def test_a_server_on_loopback_knows_its_names_at_any_port(host):
    """The port does not matter: a tunnel ends at another one."""
    assert names().knows(host)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil", "192.168.1.2", "", "box"])
def test_a_server_on_loopback_knows_no_other_names(host):
    """A name that another site's DNS gives this address is refused, and so are addresses."""
    assert not names().knows(host)


def test_a_server_on_all_addresses_knows_addresses_and_its_machine():
    """The machine's addresses are many and change; names are only its own."""
    everywhere = names("*:8765", machine="Box")
    known = ["192.168.1.2:8765", "[fe80::1]:8765", "box", "box.local:8765", "localhost"]
    assert [everywhere.knows(host) for host in known] == [True] * 5
    assert not everywhere.knows("evil.example")
    assert names("0.0.0.0:8765").any_address


def test_a_server_on_one_address_knows_that_one():
    """Other addresses are other machines."""
    one = names("192.168.1.2:8765")
    assert one.knows("192.168.1.2:8765")
    assert not one.knows("192.168.1.3:8765")


@pytest.mark.parametrize(
    ("origin", "host", "scheme", "is_own"),
    [
        ("http://localhost:8765", "localhost:8765", "http", True),
        ("http://localhost", "localhost:80", "http", True),
        ("http://localhost:80", "localhost", "http", True),
        ("https://localhost", "localhost:443", "https", True),
        ("http://LOCALHOST:8765", "localhost:8765", "http", True),
        ("http://[::1]:8765", "[0::1]:8765", "http", True),
        ("http://localhost:9999", "localhost:8765", "http", False),
        ("http://127.0.0.1:8765", "localhost:8765", "http", False),
        ("https://localhost:8765", "localhost:8765", "http", False),
        ("http://localhost:8765", "localhost:8765", "https", False),
        ("http://evil.example:8765", "localhost:8765", "http", False),
        ("http://localhost:8765.evil.example", "localhost:8765", "http", False),
        ("http://localhost:8765/", "localhost:8765", "http", False),
        ("http://user@localhost:8765", "localhost:8765", "http", False),
        ("null", "localhost:8765", "http", False),
        ("file://", "localhost:8765", "http", False),
        ("", "localhost:8765", "http", False),
    ],
)
def test_an_origin_is_own_if_scheme_name_and_port_agree(origin, host, scheme, is_own):
    """Exactly, but for the default ports, which browsers leave out."""
    assert names().is_own_origin(origin, host, scheme) == is_own


def test_a_named_proxy_may_have_tls_of_its_own():
    """A proxy that ends TLS may not say so; only names that the operator gave are believed."""
    behind = names(allow_hosts=["spectra.example"])
    assert behind.knows("spectra.example")
    assert behind.is_own_origin("https://spectra.example", "spectra.example", "http")
    assert behind.is_own_origin("http://spectra.example", "spectra.example", "http")
    assert not behind.is_own_origin("https://spectra.example:1", "spectra.example", "http")
    assert not behind.is_own_origin("https://localhost", "localhost", "http")


@pytest.mark.parametrize("name", ["a.example:80", "a b", "http://a.example", ""])
def test_a_further_name_has_no_port(name):
    """The error names the option and the value."""
    with pytest.raises(ConfigError, match=r"allow-host=.*: must be a name or an address, without"):
        names(allow_hosts=[name])


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_loopback_is_this_machine_in_all_notations(address, is_local):
    """A socket for both families gives IPv4 peers a mapped address."""
    assert is_loopback(address) == is_local


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_the_addresses_of_a_host_count_as_one(address, network):
    """A host has all addresses of its /64, and each of its IPv4 addresses in two notations."""
    assert network_of(address) == network
