"""The page's address as people get it."""

import re

import pytest

from spectrod.apps.web.invitation import is_local, page_link, qr_code
from spectrod.apps.web.listen import parse_address


@pytest.mark.parametrize(
    ("listen", "port", "tls", "token", "link"),
    [
        ("127.0.0.1:0", 8765, False, None, "http://127.0.0.1:8765/"),
        ("localhost:80", 80, False, None, "http://localhost/"),
        ("roof:443", 443, True, "t", "https://roof/#k=t"),
        ("roof:80", 80, True, None, "https://roof:80/"),
        ("[::1]:8765", 8765, False, None, "http://[::1]:8765/"),
        ("*:8765", 8765, False, "t", "http://127.0.0.1:8765/#k=t"),
        ("0.0.0.0:8765", 8765, False, None, "http://127.0.0.1:8765/"),
        ("[::]:8765", 8765, False, None, "http://127.0.0.1:8765/"),
    ],
)
def test_a_link_leads_to_the_page(listen, port, tls, token, link):
    """The scheme's own port is left out; all addresses become the one that others reach."""
    elsewhere = ("127.0.0.1", 9)
    found = page_link(parse_address(listen), port, tls=tls, token=token, elsewhere=elsewhere)
    assert found == link


def test_a_machine_without_a_route_has_its_name(monkeypatch):
    """Its address cannot be known then."""
    monkeypatch.setattr("socket.gethostname", lambda: "roof")
    refused_by_the_system = ("255.255.255.255", 9)
    link = page_link(parse_address("*:1"), 1, tls=False, elsewhere=refused_by_the_system)
    assert link == "http://roof:1/"


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("127.0.0.1:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("*:1", False),
        ("0.0.0.0:1", False),
        ("10.0.0.1:1", False),
        ("roof:1", False),
    ],
)
def test_only_loopback_is_local(listen, expected):
    """A name other than localhost may resolve to anything."""
    assert is_local(parse_address(listen)) == expected


def test_a_code_is_drawn_the_same_on_all_terminals():
    """A square of half blocks with a quiet zone, white on black, of which each link has its own."""
    one, other = (qr_code(f"http://10.1.2.3:8765/#k={'t' * n}") for n in (22, 21))
    lines = [re.fullmatch(r"\x1b\[97;40m([ ▀▄█]+)\x1b\[0m", text)[1] for text in one.splitlines()]
    width = len(lines[0])
    assert {len(line) for line in lines} == {width}
    assert len(lines) == (width + 1) // 2
    assert set(lines[0]) == {"█"}
    assert one != other
