"""What servers and object stores send: pages of links, headers of answers, lists of buckets."""

import random
from collections.abc import Iterator
from types import SimpleNamespace

import msgspec
from botocore import parsers
from botocore.exceptions import ClientError
from botocore.session import Session
from fuzzing import Target, nested
from gcsfs import GCSFileSystem
from mutation import havoc, mutate_json, mutate_text

from spectrod.source.store import objects
from spectrod.source.store.file_part import SIZE_MAX, etag_of, promised
from spectrod.source.store.html_links import page_links
from spectrod.source.store.http import _modified_ns, _redirected, joined
from spectrod.source.store.urls import URL_CHARS_MAX

_URL = "http://host:8000/card/"
_SEPARATOR = b"\0"
_PAGE_WORDS = (
    *(
        b"<a ",
        b"<a\n",
        b"<A HREF=",
        b"href",
        b'="',
        b"='",
        b'"',
        b"'",
        b">",
        b"/>",
        b"<!--",
        b"-->",
    ),
    *(b"<![x[y", b"&amp;", b"&#x110000;", b"&#", b"&gt", b"../", b"//", b"x.wav", b"\xff", b"%2e"),
    *(b"http://[", b"http://a:b:c/", b"?C=N", b"javascript:", b"\0", b"\r", b"</a"),
)
_HEADER_WORDS = (
    *(b"bytes ", b"0-16383/", b"-", b"/", b"*", b"9" * 19, b"9" * 30, b"\xd9\xa3", b'W/"', b'"'),
    *(b"Wed, 21 Oct 2026 07:28:00 GMT", b"+9999", b"-2400", b"Feb 30", b"10000", b"(", b'"x" '),
    *(b"http://host:8000/", b"https://host/", b"//", b"@", b"[", b"]", b":", b"%", b"\\", b"\0"),
)
_XML_WORDS = (
    *(b"<Contents>", b"</Contents>", b"<Key>", b"</Key>", b"<Size>", b"<LastModified>", b"</a>"),
    *(b"<NextContinuationToken>", b"<IsTruncated>", b"&lt;", b"<!DOCTYPE a [", b"<!ENTITY x 'y'>"),
    *(b"&x;", b"<![CDATA[", b"]]>", b'xmlns="a"', b"<?xml version='1.0' encoding='utf-16'?>"),
    *(b"<Error>", b"<Code>", b"url", b"%ff", b"\0", b"\xff", b"9" * 5000, b"-1", b"nan"),
)
_S3_LISTS = {
    Session().get_service_model("s3").operation_model(name).output_shape: kind
    for name, kind in (
        ("ListObjectsV2", objects._S3Page),
        ("ListMultipartUploads", objects._S3Uploads),
    )
}
_PARSER = parsers.create_parser("rest-xml")
_GCS = object.__new__(GCSFileSystem)


def check_page(data: bytes) -> None:
    """Read the links of a page; each is a text, and joined to an address."""
    try:
        links = page_links(data)
    except OSError:
        return
    assert len(links) <= len(data) // 3
    for link in links:
        assert 0 < len(link) <= URL_CHARS_MAX
        assert isinstance(joined(_URL, link), str)


def check_headers(data: bytes) -> None:
    """Read a range, a redirection, a date and an ETag; what is believed fits what was asked."""
    texts = [text.decode("latin-1") for text in (data.split(_SEPARATOR) + [b""] * 4)[:4]]
    try:
        n_bytes, size = promised(texts[0], 0, 16384)
        assert 0 < n_bytes <= min(16384, size) <= SIZE_MAX
    except OSError:
        pass
    try:
        target = _redirected(_URL, texts[1])
        assert target.lower().startswith(("http://host:8000", "https://host"))
        assert "@" not in target.partition("//")[2].partition("/")[0]
    except OSError:
        pass
    answer = SimpleNamespace(headers={"Last-Modified": texts[2]})
    assert isinstance(_modified_ns(answer), int)
    assert len(etag_of(texts[3])) <= 256


def _run(answer: object, call: object) -> object:
    """Run a coroutine that waits for nothing."""
    try:
        call.send(None)  # type: ignore[attr-defined]
    except StopIteration as end:
        return end.value
    raise AssertionError(answer)


async def _parsed(parse: object) -> object:
    return parse()  # type: ignore[operator]


def check_s3_list(data: bytes) -> None:
    """Read a page of a bucket by the library of S3: keys and a token, uploads, or one error."""
    for shape, kind in _S3_LISTS.items():
        call = objects._of_library(_parsed(lambda: _s3(data, shape, 200)), (), (OSError,))  # noqa: B023
        try:
            found = objects._understood(_run(data, call), kind)
        except (OSError, objects.UnreachableError):
            continue
        if isinstance(found, objects._S3Uploads):
            assert all(isinstance(one.upload_id, str) for one in found.uploads)
            continue
        assert all(isinstance(one.key, str) for one in found.contents)
        assert all(0 <= one.size <= SIZE_MAX for one in found.contents)
        assert isinstance(found.next_continuation_token, str)
    _check_refusal(data, next(iter(_S3_LISTS)))


def _s3(data: bytes, shape: object, status: int) -> object:
    return _PARSER.parse({"body": data, "headers": {}, "status_code": status}, shape)


def _check_refusal(data: bytes, shape: object) -> None:
    """Read the same as a refusal: a short line, whatever it says."""
    try:
        response = _s3(data, shape, 400)
    except parsers.ResponseParserError:
        return
    error = OSError("from the library")
    error.__cause__ = ClientError(response, "PutObject")  # type: ignore[arg-type]
    found = objects._translated(error)
    text = found.strerror if isinstance(found, OSError) else str(found)
    assert text.isascii()
    assert text.isprintable()
    assert len(text) < 120


def check_gcs(data: bytes) -> None:
    """Read a page of a bucket, and what is said of a file, by the library of Google."""

    def described() -> object:
        return _GCS._process_object("bucket", msgspec.json.decode(data))

    for parse, kind in (
        (lambda: msgspec.json.decode(data), objects._GcsPage),
        (described, objects._GcsFile),
    ):
        try:
            answer = _run(data, objects._of_library(_parsed(parse), (), ()))
            found = objects._understood(answer, kind)
        except OSError:
            continue
        if isinstance(found, objects._GcsFile):
            assert 0 <= found.size <= SIZE_MAX
            assert objects._ns(found.mtime) % 1000 == 0


def page_seeds() -> list[bytes]:
    """Make pages as servers do."""
    apache = b'<html><body><pre><a href="?C=N;O=D">Name</a> <a href="../">Parent</a>\n<hr>'
    files = b'<a href="a%20b.wav">a b.wav</a>  2026-05-01 10:00  4.0M\n<a href="c&amp;d/">c</a>'
    return [apache + files + b"</pre></body></html>", b"<!-- <a href=no> --><A HREF='x.flac'>x</A>"]


def header_seeds() -> list[bytes]:
    """Make headers of answers."""
    date = b"Wed, 21 Oct 2026 07:28:00 GMT"
    return [
        _SEPARATOR.join((b"bytes 0-16383/400000", b"/card/other/x.wav", date, b'"abc"')),
        _SEPARATOR.join((b"bytes 0-99/100", b"https://host/card/", b"21 Oct 26 07:28", b'W/"1"')),
    ]


def s3_seeds() -> list[bytes]:
    """Make pages of the list of a bucket."""
    one = (
        b"<Contents><Key>a/b.wav</Key><LastModified>2026-05-01T00:00:00.000Z</LastModified>"
        b"<Size>44</Size><ETag>&quot;x&quot;</ETag></Contents>"
    )
    head = (
        b'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    )
    token = b"<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
    upload = b"<Upload><Key>a/b.nc</Key><UploadId>x</UploadId></Upload>"
    return [
        head + one + token + b"</ListBucketResult>",
        head + b"</ListBucketResult>",
        b"<ListMultipartUploadsResult>" + upload + b"</ListMultipartUploadsResult>",
        b"<Error><Code>QuotaExceeded</Code><Message>x</Message></Error>",
    ]


def gcs_seeds() -> list[bytes]:
    """Make a page of a list, and the description of a file."""
    page = {"items": [{"name": "a/b.wav", "size": "44"}], "nextPageToken": "t"}
    times = {"updated": "2026-05-01T00:00:00.000Z", "timeCreated": "2026-05-01T00:00:00.000Z"}
    file = {"name": "a/b.wav", "size": "44", "generation": "1", "etag": "x"} | times
    return [msgspec.json.encode(page), msgspec.json.encode(file)]


def mutate_page(data: bytes, rng: random.Random) -> bytes:
    """Change words of HTML, and bytes."""
    return havoc(data, rng) if rng.random() < 0.2 else mutate_text(data, rng, _PAGE_WORDS)


def mutate_headers(data: bytes, rng: random.Random) -> bytes:
    """Change words of one of the headers, and bytes."""
    if rng.random() < 0.2:
        return havoc(data, rng)
    changed = mutate_text(data.replace(_SEPARATOR, b"\n"), rng, _HEADER_WORDS)
    return changed.replace(b"\n", _SEPARATOR)


def mutate_xml(data: bytes, rng: random.Random) -> bytes:
    """Change words of XML, and bytes."""
    if rng.random() < 0.2:
        return havoc(data, rng)
    changed = mutate_text(data.replace(b"><", b">\n<"), rng, _XML_WORDS)
    return changed.replace(b">\n<", b"><")


def mutate_description(data: bytes, rng: random.Random) -> bytes:
    """Change members of an object, and bytes."""
    return havoc(data, rng) if rng.random() < 0.2 else mutate_json(data, rng)


def _large_pages() -> Iterator[bytes]:
    for piece in (b"<a ", b"<a href=", b"<a a=b ", b"<!--", b'<a href="', b"&#", b"<a href=x>"):
        yield (piece * (1_000_000 // len(piece)))[:1_000_000]
        yield b"<a " + (piece * (1_000_000 // len(piece)))[:999_000]


TARGETS = {
    "page_of_links": Target(check_page, page_seeds, mutate_page, large=_large_pages),
    "store_headers": Target(check_headers, header_seeds, mutate_headers),
    "s3_list": Target(check_s3_list, s3_seeds, mutate_xml),
    "gcs_answer": Target(check_gcs, gcs_seeds, mutate_description, large=nested),
}
