"""Files of the page: compressed once, for browsers that accept it."""

import gzip

from starlette.requests import Request

from spectrod.apps.web.page_files import PageFile, file_response, read_page


def response(file, **headers):
    """Return the response to a request with these headers."""
    listed = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return file_response(Request({"type": "http", "headers": listed}), file)


def test_the_page_is_a_third_as_long_in_gzip():
    """Each file has the same content in both codings, and all together are much shorter."""
    files = read_page()
    for file in files.values():
        if file.compressed:
            assert gzip.decompress(file.compressed) == file.content
    sent = sum(len(file.compressed or file.content) for file in files.values())
    assert sent < 0.4 * sum(len(file.content) for file in files.values())


def test_a_file_is_sent_compressed_to_who_accepts_it():
    """The tag is of the content: a browser that has it in either coding is sent nothing."""
    file = read_page()["main.js"]
    plain, coded = response(file), response(file, accept_encoding="gzip, br")
    assert plain.body == file.content
    assert "content-encoding" not in plain.headers
    assert coded.body == file.compressed
    assert coded.headers["content-encoding"] == "gzip"
    assert plain.headers["etag"] == coded.headers["etag"] == file.etag
    assert plain.headers["vary"] == coded.headers["vary"] == "Accept-Encoding"
    again = response(file, accept_encoding="gzip", if_none_match=file.etag)
    assert (again.status_code, again.body) == (304, b"")


def test_what_gzip_makes_no_shorter_is_sent_as_it_is(tmp_path):
    """A file of a few bytes has no compressed form."""
    (tmp_path / "a.js").write_text("1")
    file = read_page(tmp_path)["a.js"]
    assert file == PageFile(b"1", "text/javascript; charset=utf-8", file.etag)
    assert response(file, accept_encoding="gzip").body == b"1"
