"""The token and its file."""

import re

import pytest

from spectrod.apps.web.token import Token, new_token, read_token
from spectrod.lib.errors import ConfigError, StorageError


def test_a_new_token_has_128_bits_and_is_another_each_time():
    """16 random bytes are 22 characters of base64."""
    tokens = {new_token().reveal() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22}", text) for text in tokens)


def test_only_the_same_text_matches():
    """Also of texts that no header can have."""
    token = Token("abcdefghijklmnopqrstuv")
    assert token.matches("abcdefghijklmnopqrstuv")
    for other in ("", "abcdefghijklmnopqrstu", "abcdefghijklmnopqrstuvw", "é" * 22, "\ud800"):
        assert not token.matches(other)


def test_a_token_is_not_shown_by_accident():
    """No log line that formats the object reveals it."""
    token = new_token()
    assert token.reveal() not in f"{token!r} {token}"


def test_a_missing_file_is_made_once(tmp_path):
    """A restart keeps the token, and links to the page stay valid; nobody else reads the file."""
    path = tmp_path / "token"
    first = read_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_token(path).reveal() == first.reveal()


@pytest.mark.parametrize("content", ["", "short", "x" * 129, "with spaces in the token", "ä" * 30])
def test_a_file_with_another_content_is_refused(tmp_path, content):
    """A weak token is an error, not a token."""
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"token: must be 22 to 128 letters, digits, - and _"):
        read_token(path)


def test_a_file_that_others_may_read_is_refused(tmp_path):
    """The error names the mode and the command that mends it."""
    path = tmp_path / "token"
    path.write_text("x" * 22)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=r"mode=0644: others must not read it; chmod 600"):
        read_token(path)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    """The file cannot be made in it."""
    with pytest.raises(StorageError, match=r"away/token: No such file or directory"):
        read_token(tmp_path / "away" / "token")


def test_a_folder_is_no_token(tmp_path):
    """What cannot be read is named with the rule."""
    with pytest.raises(ConfigError, match=r"token-file=.*: is a folder; must be a file"):
        read_token(tmp_path)
