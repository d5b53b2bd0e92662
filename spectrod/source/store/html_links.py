"""The links of an HTML page, in time and memory that grow no faster than the page."""

import html
import re

from spectrod.source.source_listing import FILES_MAX
from spectrod.source.store.file_part import refused
from spectrod.source.store.urls import URL_CHARS_MAX

PAGE_BYTES_MAX = 1 << 22
"""Largest page of a folder that is read [bytes]: about 30 000 files of a server's usual page."""
TAG_BYTES_MAX = 1 << 14
"""Longest tag of a link that is looked at [bytes]."""

# No part of these can fail after it has matched much: an unclosed comment, tag or quotation ends
# with the page, as in a browser. So the time is linear, whatever the page holds.
_TAG = re.compile(
    rb"<!--.*?(?:-->|\Z)"
    rb"|<a(?=[\s/>])(?P<attributes>(?:[^\"'>]|\"[^\"]*+\"?|'[^']*+'?)*+)",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    rb"([^\s=\"'/>]++)(?:\s*+=\s*+(?:\"([^\"]*+)|'([^']*+)|([^\s\"'>]*+)))?", re.DOTALL
)


def page_links(page: bytes | bytearray) -> list[str]:
    """Return the targets of the links of a page, in its order, as they are.

    Links in comments do not count, nor do tags of more than ``TAG_BYTES_MAX`` and targets of more
    than ``URL_CHARS_MAX`` characters.

    Raises
    ------
    OSError
        If there are more than ``FILES_MAX``.
    """
    links = []
    for tag in _TAG.finditer(page):
        target = _target(tag["attributes"] or b"")
        if not target:
            continue
        links.append(target)
        if len(links) > FILES_MAX:
            raise refused(f"its page has more than {FILES_MAX} links")
    return links


def _target(attributes: bytes) -> str:
    """Return what the first ``href`` of a tag says; empty for none."""
    if len(attributes) > TAG_BYTES_MAX:
        return ""
    for name, *values in _ATTRIBUTE.findall(attributes):
        if name.lower() == b"href":
            text = html.unescape(b"".join(values).decode("utf-8", "replace"))
            return text if len(text) <= URL_CHARS_MAX else ""
    return ""
