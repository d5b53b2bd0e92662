"""Object stores: buckets of S3 and of Google, by the libraries' own configuration."""

import base64
import datetime as dt
import mimetypes
import re
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, TypeVar

import aiohttp
import fsspec
import msgspec

from spectrod.dsp.units import NS_PER_S
from spectrod.source.store.file_part import (
    SIZE_MAX,
    FilePart,
    SentPart,
    UnreachableError,
    denied,
    etag_of,
    missing,
    no_bucket,
    no_room,
    promised,
    refused,
)
from spectrod.source.store.urls import split_object

CONNECT_S = 10.0
"""Longest time to connect [s]."""
READ_S = 1200.0
"""Longest time between bytes [s]. Requests have limits of their own: on a slow line, the last bytes
of a part wait in buffers of the system for minutes after they were sent."""
PAGE_KEYS = 1000
"""Most keys of a page of a list."""

_BINARY = "application/octet-stream"
_CODE = re.compile(r"[A-Za-z0-9.]{1,64}")
_FULL = re.compile(r"Quota|StorageFull|Insufficient")
"""In codes of stores of S3's protocol that take no more bytes."""
_FULL_STATUS = 507
_AGAIN = ("BadDigest", "IncompleteBody", "RequestTimeout", "XAmzContentSHA256Mismatch")
"""Codes of refusals that another attempt may mend."""
_MEANINGS = {"InvalidRange": "InvalidRange: an empty file, or shorter than it said"}
_AGAIN_STATUSES = (408, 409, 425, 429)
_NOT_IMPLEMENTED = 501

_T = TypeVar("_T")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class KeyPage(NamedTuple):
    """Part of the list of a bucket.

    Attributes
    ----------
    sizes : dict of int
        Size of each file by its key [bytes]; at most ``PAGE_KEYS``.
    token : str
        Asks for the next page; empty for the last one.
    """

    sizes: dict[str, int]
    token: str


_Size = Annotated[int, msgspec.Meta(ge=0, le=SIZE_MAX)]


class _S3Key(msgspec.Struct, rename="pascal"):
    key: str
    size: _Size = 0


class _S3Page(msgspec.Struct, rename="pascal"):
    contents: list[_S3Key] = []
    next_continuation_token: str = ""


class _S3Upload(msgspec.Struct, rename="pascal"):
    key: str
    upload_id: str


class _S3Uploads(msgspec.Struct, rename="pascal"):
    uploads: list[_S3Upload] = []


class _GcsKey(msgspec.Struct):
    name: str
    size: _Size = 0


class _GcsPage(msgspec.Struct, rename="camel"):
    items: list[_GcsKey] = []
    next_page_token: str = ""


class _GcsFile(msgspec.Struct):
    size: _Size
    type: str
    mtime: dt.datetime | None = None
    generation: str | int = ""
    etag: str = ""
    md5: str = msgspec.field(default="", name="md5Hash")


class S3Store:
    """Buckets of S3, and of what speaks its protocol.

    The endpoint, the region and credentials are those of the AWS libraries: variables such as
    ``AWS_ENDPOINT_URL`` and ``AWS_PROFILE``, their files, the machine's role.
    """

    def __init__(self) -> None:
        from botocore.exceptions import BotoCoreError, NoCredentialsError  # noqa: PLC0415

        config = {
            "connect_timeout": CONNECT_S,
            "read_timeout": READ_S,
            "retries": {"max_attempts": 0},
        }
        self._fs = fsspec.filesystem("s3", skip_instance_cache=True, config_kwargs=config)
        self._fs.retries = 1  # the caller counts the attempts
        self._refusals = (NoCredentialsError,)
        self._errors = (BotoCoreError, aiohttp.ClientError, OSError)

    async def read(self, url: str, first: int, end: int) -> FilePart:
        """Read the bytes [first, end) of a file; see ``Store``."""
        bucket, key = split_object(url)
        answer = await self._call(
            "get_object", Bucket=bucket, Key=key, Range=f"bytes={first}-{end - 1}"
        )
        async with answer["Body"] as body:
            n_bytes, size = promised(answer.get("ContentRange", ""), first, end)
            content = await self._exactly(body, n_bytes)
        return FilePart(content, size, _ns(answer.get("LastModified")), etag_of(answer.get("ETag")))

    async def page(self, bucket: str, prefix: str, token: str, *, recursive: bool) -> KeyPage:
        """Return one page of the keys that begin with a prefix."""
        wanted = {"ContinuationToken": token} if token else {}
        wanted |= {} if recursive else {"Delimiter": "/"}
        answer = await self._call(
            "list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=PAGE_KEYS, **wanted
        )
        found = _understood(answer, _S3Page)
        sizes = {one.key: one.size for one in found.contents}
        return KeyPage(sizes, found.next_continuation_token)

    async def put(self, url: str, content: bytes) -> str:
        """Write a file, in place of one of its name; see ``WritableStore``."""
        bucket, key = split_object(url)
        answer = await self._call(
            "put_object", Bucket=bucket, Key=key, Body=content, ContentType=_type_of(key)
        )
        return etag_of(answer.get("ETag"))

    async def delete(self, url: str) -> None:
        """Remove a file, if there is one; see ``WritableStore``."""
        bucket, key = split_object(url)
        await self._call("delete_object", Bucket=bucket, Key=key)

    async def begin(self, url: str) -> str:
        """Begin an upload in parts; see ``WritableStore``."""
        bucket, key = split_object(url)
        answer = await self._call(
            "create_multipart_upload", Bucket=bucket, Key=key, ContentType=_type_of(key)
        )
        return _understood(answer, _S3Upload).upload_id

    async def put_part(self, url: str, upload: str, part: SentPart) -> str:
        """Send a part of an upload; see ``WritableStore``."""
        bucket, key = split_object(url)
        answer = await self._call(
            "upload_part", Bucket=bucket, Key=key, UploadId=upload, PartNumber=part.number,
            Body=part.content,
        )  # fmt: skip
        return str(answer.get("ETag", ""))

    async def complete(self, url: str, upload: str, tags: Sequence[str]) -> str:
        """Make a file of the parts of an upload; see ``WritableStore``."""
        bucket, key = split_object(url)
        parts = [{"PartNumber": k, "ETag": tag} for k, tag in enumerate(tags, 1)]
        answer = await self._call(
            "complete_multipart_upload", Bucket=bucket, Key=key, UploadId=upload,
            MultipartUpload={"Parts": parts},
        )  # fmt: skip
        tag = etag_of(answer.get("ETag"))
        if not tag:  # the status comes before the parts are joined
            raise UnreachableError("its store does not say that the file is whole")
        return tag

    async def abort(self, url: str, upload: str) -> None:
        """Remove the parts of an upload; see ``WritableStore``."""
        bucket, key = split_object(url)
        await self._call("abort_multipart_upload", Bucket=bucket, Key=key, UploadId=upload)

    async def digest(self, url: str) -> str:
        """Return the checksum of a file; see ``WritableStore``."""
        bucket, key = split_object(url)
        answer = await self._call("head_object", Bucket=bucket, Key=key)
        return etag_of(answer.get("ETag"))

    async def unfinished(self, url: str) -> list[tuple[str, str]]:
        """Return address and name of uploads in parts; see ``WritableStore``."""
        bucket, prefix = split_object(url)
        answer = await self._call(
            "list_multipart_uploads", Bucket=bucket, Prefix=prefix, MaxUploads=PAGE_KEYS
        )
        found = _understood(answer, _S3Uploads).uploads
        return [(f"s3://{bucket}/{one.key}", one.upload_id) for one in found]

    async def _call(self, method: str, **arguments: Any) -> Any:
        answer = self._fs._call_s3(method, **arguments)  # noqa: SLF001 - fsspec's async API
        return await _of_library(answer, self._refusals, self._errors)

    async def _exactly(self, body: Any, n_bytes: int) -> bytes:
        content = b""
        try:
            while len(content) < n_bytes and (more := await body.read(n_bytes - len(content))):
                content += more
        except self._errors as error:
            raise _translated(error) from error
        if len(content) < n_bytes:
            raise UnreachableError(f"its store sent {len(content)} of {n_bytes} bytes")
        return content


class GcsStore:
    """Buckets of Google Cloud Storage; credentials are those of Google's libraries."""

    def __init__(self) -> None:
        from gcsfs import core  # noqa: PLC0415
        from gcsfs.retry import HttpError  # noqa: PLC0415
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415

        self._fs = fsspec.filesystem(
            "gs", skip_instance_cache=True, use_listings_cache=False, timeout=READ_S
        )
        self._core = core
        self._refusals = (GoogleAuthError,)
        self._errors = (HttpError, aiohttp.ClientError, OSError)

    async def read(self, url: str, first: int, end: int) -> FilePart:
        """Read the bytes [first, end) of a file; see ``Store``."""
        path = "/".join(split_object(url))
        about = await self._of_library(self._fs._info(path))  # noqa: SLF001 - fsspec's async API
        found = _understood(about, _GcsFile)
        size = found.size
        if found.type != "file":
            raise missing()
        if first >= size:
            raise refused("is empty, or shorter than its store said")
        end = min(end, size)
        content = await self._of_library(self._fs._cat_file(path, start=first, end=end))  # noqa: SLF001
        if len(content) != end - first:
            raise UnreachableError(f"its store sent {len(content)} of {end - first} bytes")
        etag = etag_of(str(found.generation or found.etag))
        return FilePart(content, size, _ns(found.mtime), etag)

    async def page(self, bucket: str, prefix: str, token: str, *, recursive: bool) -> KeyPage:
        """Return one page of the keys that begin with a prefix."""
        wanted: dict[str, Any] = {"prefix": prefix, "maxResults": PAGE_KEYS}
        wanted |= {"pageToken": token} if token else {}
        wanted |= {} if recursive else {"delimiter": "/"}
        answer = await self._of_library(
            self._fs._call("GET", "b/{}/o", bucket, json_out=True, **wanted)  # noqa: SLF001
        )
        found = _understood(answer, _GcsPage)
        return KeyPage({one.name: one.size for one in found.items}, found.next_page_token)

    async def put(self, url: str, content: bytes) -> str:
        """Write a file, in place of one of its name; see ``WritableStore``."""
        bucket, key = split_object(url)
        await self._of_library(
            self._core.simple_upload(self._fs, bucket, key, content, content_type=_type_of(key))
        )
        return ""

    async def delete(self, url: str) -> None:
        """Remove a file, if there is one; see ``WritableStore``."""
        bucket, key = split_object(url)
        with suppress(FileNotFoundError):
            await self._of_library(self._fs._call("DELETE", "b/{}/o/{}", bucket, key))  # noqa: SLF001

    async def begin(self, url: str) -> str:
        """Begin an upload in parts; see ``WritableStore``."""
        bucket, key = split_object(url)
        answer = self._core.initiate_upload(self._fs, bucket, key, _type_of(key))
        return str(await self._of_library(answer))

    async def put_part(self, url: str, upload: str, part: SentPart) -> str:
        """Send a part of an upload; the last one makes the file; see ``WritableStore``."""
        sent = self._core.upload_chunk(
            self._fs, upload, part.content, part.first, part.size, _type_of(url)
        )
        await self._of_library(sent)
        return ""

    async def complete(self, url: str, upload: str, tags: Sequence[str]) -> str:  # noqa: ARG002
        """Do nothing: the last part made the file."""
        return ""

    async def abort(self, url: str, upload: str) -> None:  # noqa: ARG002
        """Remove the parts of an upload; see ``WritableStore``."""
        await self._of_library(self._fs._call("DELETE", upload))  # noqa: SLF001

    async def digest(self, url: str) -> str:
        """Return the checksum of a file; see ``WritableStore``."""
        about = await self._of_library(self._fs._info("/".join(split_object(url))))  # noqa: SLF001 - fsspec's async API
        try:
            return base64.b64decode(_understood(about, _GcsFile).md5, validate=True).hex()
        except ValueError as error:
            raise _not_understood(error) from error

    async def unfinished(self, url: str) -> list[tuple[str, str]]:  # noqa: ARG002
        """Return nothing: the store forgets unfinished uploads by itself, and lists none."""
        return []

    async def _of_library(self, answer: Awaitable[Any]) -> Any:
        return await _of_library(answer, self._refusals, self._errors)


async def _of_library(
    answer: Awaitable[Any],
    refusals: tuple[type[Exception], ...],
    errors: tuple[type[Exception], ...],
) -> Any:
    """Return a library's answer; all of its exceptions become ours."""
    try:
        return await answer
    except refusals as error:
        raise refused(f"no credentials for it ({type(error).__name__})") from error
    except errors as error:
        raise _translated(error) from error
    except Exception as error:  # its parsers raise anything for what a server invents
        raise _not_understood(error) from error


def _understood(answer: Any, type_: type[_T]) -> _T:
    """Return the answer of a library as the type that it must have; raises OSError."""
    try:
        return msgspec.convert(answer, type_, strict=False)
    except msgspec.ValidationError as error:
        raise _not_understood(error) from error


def _not_understood(error: Exception) -> OSError:
    return refused(f"its store's answer cannot be understood ({type(error).__name__})")


def _translated(error: Exception) -> Exception:
    """Return the error of a library as one of ours.

    The libraries' own texts are left out, because they may tell of requests and their signatures.
    """
    code, status = _answer_of(error)
    if code == "NoSuchBucket":
        return no_bucket()
    if isinstance(error, FileNotFoundError):
        return missing()
    if _FULL.search(code) or status == _FULL_STATUS:
        return no_room(code)
    is_forbidden = isinstance(error, OSError) and str(error).startswith("Forbidden")
    if isinstance(error, PermissionError) or is_forbidden or status in (401, 403):
        return denied()
    if code not in _AGAIN and _is_refusal(status):
        return refused(f"its store refuses it ({_MEANINGS.get(code, code)})")
    return UnreachableError(f"its store does not answer ({code or type(error).__name__})")


def _is_refusal(status: int) -> bool:
    return (400 <= status < 500 and status not in _AGAIN_STATUSES) or status == _NOT_IMPLEMENTED


def _answer_of(error: Exception) -> tuple[str, int]:
    """Return the code and the status of the answer that a library refused; empty and 0 for none."""
    response = getattr(error.__cause__, "response", None)
    if isinstance(response, dict):  # of S3
        code, about = response.get("Error", {}).get("Code"), response.get("ResponseMetadata", {})
        status = about.get("HTTPStatusCode")
    else:
        code = status = getattr(error, "code", None)
    text, number = str(code or ""), str(status or "")
    is_number = number.isascii() and number.isdecimal()
    return text if _CODE.fullmatch(text) else "", int(number[:3]) if is_number else 0


def _type_of(key: str) -> str:
    """Return the media type, without which a browser saves a report instead of showing it."""
    return mimetypes.guess_type(key)[0] or _BINARY


def _ns(when: dt.datetime | None) -> int:
    """Return a time in ns since 1970; 0 for none."""
    if when is None:
        return 0
    when = when if when.tzinfo else when.replace(tzinfo=dt.UTC)
    return (when - _EPOCH) // dt.timedelta(microseconds=1) * (NS_PER_S // 10**6)
