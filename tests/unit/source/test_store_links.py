"""Links of pages of folders: found as browsers find them, in linear time and bounded memory."""

import random
import time
import tracemalloc
from urllib.parse import urljoin

import pytest

pytest.importorskip("aiohttp")

from spectrod.source.store import html_links
from spectrod.source.store.html_links import PAGE_BYTES_MAX, TAG_BYTES_MAX, page_links
from spectrod.source.store.http import joined


@pytest.mark.parametrize(
    ("page", "targets"),
    [
        (b'<a href="x.wav">x</a>', ["x.wav"]),
        (b"<A HREF='x.wav'>", ["x.wav"]),
        (b"<a\nclass=c href = x.wav>", ["x.wav"]),
        (b'<a href="a&amp;b&#32;c.wav"><a href="d">', ["a&b c.wav", "d"]),
        (b'<a title="> href=no" href="x.wav">', ["x.wav"]),
        (b'<a href="x.wav" href="no">', ["x.wav"]),
        (b'<abbr href="no"><link href="no"><a>', []),
        (b'<!-- <a href="no"> --><a href="x">', ["x"]),
        (b'<!-- <a href="no">', []),
        (b'<a href><a href=><a href="">', []),
        (b'<a href="x', ["x"]),
        (b"<a/href=x>", ["x"]),
        ("<a href='ä\N{GRINNING FACE}'>".encode(), ["ä\N{GRINNING FACE}"]),
        (b"<a href=\xff>", ["\N{REPLACEMENT CHARACTER}"]),
        (b"<a " + b"x " * TAG_BYTES_MAX + b'href="no"><a href="y">', ["y"]),
        (b'<a href="' + b"x" * 4096 + b'">', ["x" * 4096]),
        (b'<a href="' + b"x" * 4097 + b'">', []),
        (b"<![x[y", []),
        (b"", []),
    ],
)
def test_links_are_those_of_a_browser(page, targets):
    """Case, quotes, entities and comments are those of HTML; other tags do not count."""
    assert page_links(page) == targets


PIECES = [
    *(b"<a ", b"<a x=", b"a ", b"<!--", b"<!---->", b"<a href=x>", b'"', b"<a '", b'<a href="'),
    *(b"<a href=&amp;>", b"<a>", b'<a "" ', b"<![", b"<a \t", b"=", b"<a href=x \xff>", b"&#"),
]


@pytest.mark.parametrize("start", [b"", b"<a ", b'<a href="'])
@pytest.mark.parametrize("piece", PIECES)
def test_time_grows_no_faster_than_the_page(piece, start):
    """A page of any pieces takes at most a few times what its half takes."""

    def seconds(n_bytes):
        page = (start + piece * n_bytes)[:n_bytes]
        begin_s = time.process_time()
        page_links(page)
        return time.process_time() - begin_s

    n_bytes = 1 << 17
    fastest_s = min(seconds(n_bytes) for _ in range(3))
    assert seconds(4 * n_bytes) < 16 * fastest_s + 0.05


def test_memory_is_that_of_the_links(monkeypatch):
    """The largest page of one tag takes no memory, and one of links is refused at their bound."""
    tracemalloc.start()
    page_links(b"<a " + b"x " * (PAGE_BYTES_MAX // 2 - 2))
    assert tracemalloc.get_traced_memory()[1] < 3 * PAGE_BYTES_MAX
    tracemalloc.stop()
    monkeypatch.setattr(html_links, "FILES_MAX", 3)
    with pytest.raises(OSError, match="its page has more than 3 links"):
        page_links(b"<a href=x>" * 4)


@pytest.mark.parametrize("url", ["http://host/", "http://host:80/a/", "https://host/a/b%20c/"])
def test_names_lead_where_the_library_says(url):
    """The short way for names in a folder, and the library's, agree for 20 000 made-up links."""
    rng = random.Random(3)  # noqa: S311 - reproducible
    for _ in range(20_000):
        link = "".join(rng.choices("ab.~%!$&'()*+,@-_/09;:?#= ", k=rng.randint(1, 6)))
        try:
            expected = urljoin(url, link)
        except ValueError:
            expected = ""
        assert joined(url, link) == expected
