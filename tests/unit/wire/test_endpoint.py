import pytest

from spectrod.lib.errors import ConfigError
from spectrod.wire.endpoint import check_bindable, parse_endpoint, parse_remote


@pytest.mark.parametrize(
    ("text", "host", "port", "is_local"),
    [
        ("tcp://127.0.0.1:5556", "127.0.0.1", 5556, True),
        ("tcp://127.9.9.9:*", "127.9.9.9", 0, True),
        ("tcp://localhost:0", "localhost", 0, True),
        ("tcp://[::1]:5556", "::1", 5556, True),
        ("tcp://[fe80::1]:5556", "fe80::1", 5556, False),
        ("tcp://*:5556", "*", 5556, False),
        ("tcp://0.0.0.0:5556", "0.0.0.0", 5556, False),  # noqa: S104 - that is what is tested
        ("tcp://eth0:65535", "eth0", 65535, False),
    ],
)
def test_tcp_endpoints_are_read(text, host, port, is_local):
    """Host and port of a TCP endpoint are parsed, and whether other machines can reach it."""
    endpoint = parse_endpoint(text)
    assert (endpoint.transport, endpoint.host, endpoint.port) == ("tcp", host, port)
    assert endpoint.is_local is is_local


def test_an_ipc_endpoint_is_read():
    """The path of an IPC endpoint is all text after the slashes, and the endpoint is local."""
    endpoint = parse_endpoint("ipc:///run/spectrod/spectrum.ipc")
    assert (endpoint.transport, endpoint.path) == ("ipc", "/run/spectrod/spectrum.ipc")
    assert endpoint.is_local


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must be tcp://HOST:PORT or ipc://PATH"),
        ("tcp", "must be tcp://HOST:PORT or ipc://PATH"),
        ("udp://127.0.0.1:5556", "must be tcp://HOST:PORT or ipc://PATH"),
        ("inproc://x", "must be tcp://HOST:PORT or ipc://PATH"),
        ("tcp://127.0.0.1", "the port must be 0 to 65535"),
        ("tcp://127.0.0.1:", "the port must be 0 to 65535"),
        ("tcp://127.0.0.1:70000", "the port must be 0 to 65535"),
        ("tcp://127.0.0.1:-1", "the port must be 0 to 65535"),
        ("tcp://127.0.0.1:x", "the port must be 0 to 65535"),
        ("tcp://:5556", "the host must be a name"),
        ("tcp://::1:5556", "the host must be a name"),
        ("tcp://[::x]:5556", "the host must be a name"),
        ("tcp://a;b:5556", "the host must be a name"),
        ("ipc://", "must be followed by the path of a socket"),
        ("ipc://@abstract", "must be followed by the path of a socket"),
        ("ipc://*", "must be followed by the path of a socket"),
        ("ipc:///run/\udcff", "its path must be valid UTF-8"),
    ],
)
def test_malformed_endpoints_are_refused(text, rule):
    """A malformed endpoint is refused with the endpoint and the rule."""
    with pytest.raises(ConfigError, match=rule) as caught:
        parse_endpoint(text)
    assert repr(text) in str(caught.value)


def test_the_longest_ipc_path_is_107_bytes():
    """An IPC path has at most 107 bytes, the size of the kernel's address."""
    assert parse_endpoint("ipc:///" + "a" * 106).path == "/" + "a" * 106
    with pytest.raises(ConfigError, match="its path has 108 bytes, at most 107 fit"):
        parse_endpoint("ipc:///" + "a" * 105 + "ü")


def test_a_reachable_address_needs_insecure():
    """A reachable address needs insecure; a local one does not."""
    with pytest.raises(ConfigError, match=r"anyone on the network could listen.*--insecure"):
        check_bindable(parse_endpoint("tcp://*:5556"), insecure=False)
    check_bindable(parse_endpoint("tcp://*:5556"), insecure=True)
    check_bindable(parse_endpoint("tcp://127.0.0.1:5556"), insecure=False)


@pytest.mark.parametrize("text", ["tcp://*:5556", "tcp://127.0.0.1:0", "tcp://127.0.0.1:*"])
def test_a_subscribers_endpoint_has_no_wildcard(text):
    """A subscriber's endpoint cannot contain a wildcard, which is only for binding."""
    with pytest.raises(ConfigError, match="to connect, name a host and a port"):
        parse_remote(text)
