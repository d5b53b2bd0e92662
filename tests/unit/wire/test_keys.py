"""Keys in files: writing, refused files, and the protection of secrets."""

import os
import stat

import pytest
import zmq

from spectrod.cli import main
from spectrod.lib.errors import ConfigError, StorageError
from spectrod.wire.keys import make_keys, read_folder, read_key, read_public, read_secret


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def pair(tmp_path):
    return make_keys(tmp_path / "keys", "alice", "control", 'of "A\\lice", \x7f')


def test_a_key_is_read_back_as_written(pair):
    """Name, right, comment and both halves of a key survive, and the halves match."""
    public, secret = read_public(pair[0]), read_secret(pair[1])
    assert (public.name, public.right, public.comment) == ("alice", "control", 'of "A\\lice", \x7f')
    assert (secret.name, secret.key) == ("alice", public.key)
    assert zmq.curve_public(secret.secret) == public.key


def test_a_byte_order_mark_before_a_key_is_skipped(pair):
    """A key's file that an editor saved with a byte order mark is read as without it."""
    for path in pair:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_public(pair[0]).key == read_secret(pair[1]).key


def test_two_keys_differ(tmp_path):
    """Each call makes a different key."""
    first, second = (make_keys(tmp_path, name, "read")[0] for name in ("a", "b"))
    assert read_public(first).key != read_public(second).key


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes_do_not_depend_on_the_umask(tmp_path, umask):
    """The folder has mode 0700, the secret 0600 and the public key 0644 with any umask."""
    before = os.umask(umask)
    try:
        public, secret = make_keys(tmp_path / "new", "alice", "read")
    finally:
        os.umask(before)
    assert mode(secret) == 0o600
    assert mode(public) == 0o644
    assert mode(tmp_path / "new") & 0o077 == 0


def test_a_secret_is_never_open_to_others_not_for_a_moment(tmp_path, monkeypatch):
    """A secret file has mode 0600 from its creation on, before its first byte, with any umask."""
    modes = []
    opened = os.open

    def watched(path, flags, *args, **kwargs):
        fd = opened(path, flags, *args, **kwargs)
        if str(path).endswith(".key"):
            assert flags & os.O_EXCL
            modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
        return fd

    monkeypatch.setattr(os, "open", watched)
    before = os.umask(0)
    try:
        make_keys(tmp_path, "alice", "read")
    finally:
        os.umask(before)
    assert modes == [0o600]


@pytest.mark.parametrize("existing", ["alice.key", "alice.pub"])
def test_keys_are_never_overwritten(tmp_path, existing):
    """An existing key file is kept, and no other half is left beside it."""
    (tmp_path / existing).write_text("mine")
    with pytest.raises(StorageError, match=rf"{existing}: exists already; keys are never"):
        make_keys(tmp_path, "alice", "read")
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "mine"


def test_a_link_is_not_followed(tmp_path):
    """A symbolic link in the folder cannot redirect a secret elsewhere."""
    (tmp_path / "alice.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"alice\.key: exists already"):
        make_keys(tmp_path, "alice", "read")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["", "a/b", "a b", "a" * 65, "ä"])
def test_names_unfit_for_file_names_are_refused(tmp_path, name):
    """Key names follow the rule of names in topics, which also suits file names."""
    with pytest.raises(ConfigError, match=r"name of a key=.*: must be 1 to 64 of"):
        make_keys(tmp_path, name, "read")


@pytest.mark.parametrize("open_to", [0o640, 0o604, 0o602, 0o660, 0o610])
def test_a_secret_that_others_may_read_is_refused(pair, open_to):
    """A secret file that others may read is refused with its mode and the remedy."""
    pair[1].chmod(open_to)
    with pytest.raises(ConfigError, match=rf"alice\.key: mode {open_to:04o}: nobody but its owner"):
        read_secret(pair[1])


def test_a_service_may_read_roots_file_by_its_group(pair, monkeypatch):
    """A service may read root's secret by its group, as with systemd, if others have no access."""
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if pair[1].stat().st_uid != 0:
        with pytest.raises(ConfigError, match="must belong to this user or root"):
            read_secret(pair[1])
        return
    pair[1].chmod(0o440)
    assert read_secret(pair[1]).name == "alice"
    for open_to in (0o444, 0o660):
        pair[1].chmod(open_to)
        with pytest.raises(ConfigError, match="nobody but its owner may read a secret key"):
            read_secret(pair[1])


def test_a_secret_shows_in_no_text(pair):
    """A secret key appears in neither logs nor tracebacks."""
    secret = read_secret(pair[1])
    assert secret.secret.decode() not in repr(secret)


def edited(path, old, new):
    path.write_text(path.read_text().replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('right = "control"', 'right = "all"', "right"),
        ('right = "control"', "rihgt = 1", "rihgt"),
        ('name = "alice"', 'name = "a/b"', "name='a/b': must be"),
        ('name = "alice"', "", "missing required field `name`"),
        ('name = "alice"', "name = ", "not a key's file"),
        ('name = "alice"', "name = " + "9" * 5000, "not a key's file"),
        ('public_key = "', 'public_key = "0', "length <= 40"),
    ],
)
def test_public_files_that_are_wrong_are_refused(pair, old, new, message):
    """An invalid public key file is refused with the file and the rule."""
    with pytest.raises(ConfigError, match=rf"alice\.pub: .*{message}"):
        read_public(edited(pair[0], old, new))


@pytest.mark.parametrize("character", ['"', "#", "ä", "\\\\"])
def test_a_key_that_is_no_key_is_refused(pair, character):
    """Text of 40 characters that does not decode from Z85 to 32 bytes is refused."""
    key = read_public(pair[0]).key.decode()
    text = pair[0].read_text()
    bad = {'"': '\\"', "\\\\": "\\\\"}.get(character, character) * 40
    pair[0].write_text(text.replace(key, bad))
    with pytest.raises(ConfigError, match="public_key: must be 40 characters of Z85, 32 bytes"):
        read_public(pair[0])


def test_halves_of_two_keys_are_refused(pair, tmp_path):
    """A secret file with another key's public half, which would refuse every client, is refused."""
    other = read_public(make_keys(tmp_path, "bob", "read")[0]).key.decode()
    own = read_public(pair[0]).key.decode()
    with pytest.raises(ConfigError, match="must belong together"):
        read_secret(edited(pair[1], own, other))


def test_a_large_file_is_not_read(tmp_path):
    """A large file given as a key by mistake is refused without being read."""
    (tmp_path / "x.pub").write_bytes(b"#" * 20000)
    with pytest.raises(ConfigError, match="must be a key's file, at most 16384 bytes"):
        read_public(tmp_path / "x.pub")


def test_a_folder_of_keys(tmp_path):
    """Loading a folder returns all public keys by name and ignores other files."""
    for name in ("bob", "alice"):
        make_keys(tmp_path, name, "read")
    (tmp_path / "README").write_text("?")
    assert [key.name for key in read_folder(tmp_path)] == ["alice", "bob"]
    with pytest.raises(ConfigError, match="nowhere: No such file"):
        read_folder(tmp_path / "nowhere")


def test_a_folder_may_have_a_key_once_only(tmp_path):
    """Two files with the same name or key are refused, as the right would be ambiguous."""
    public, _ = make_keys(tmp_path, "alice", "read")
    copy = tmp_path / "copy.pub"
    copy.write_text(public.read_text())
    with pytest.raises(
        ConfigError, match=r"copy\.pub: name='alice': same as in .*alice\.pub; must be unique"
    ):
        read_folder(tmp_path)
    edited(copy, 'name = "alice"', 'name = "bob"')
    with pytest.raises(
        ConfigError, match=r"copy\.pub: public_key: same as in .*alice\.pub; must be unique"
    ):
        read_folder(tmp_path)


def test_a_public_key_by_file_or_by_text(pair):
    """A server's public key can be given as a file or as text."""
    key = read_public(pair[0]).key
    assert read_key(key.decode()) == key == read_key(str(pair[0]))
    with pytest.raises(ConfigError, match="No such file"):
        read_key("nothing")


@pytest.mark.parametrize("what", ["folder", "file"])
@pytest.mark.parametrize("open_to", [0o777, 0o775, 0o757])
def test_a_key_that_others_can_write_is_refused(tmp_path, capsys, what, open_to):
    """A public key that other users can write, or whose folder they can write, is refused."""
    folder = tmp_path / "clients"
    public, _ = make_keys(folder, "alice", "read")
    path = folder if what == "folder" else public
    assert [key.name for key in read_folder(folder)] == ["alice"]
    path.chmod(open_to)
    with pytest.raises(ConfigError, match=rf"{path}: mode {open_to:04o}: nobody but its owner may"):
        read_folder(folder)
    assert main(["keys", "check", str(path)]) == 2
    assert f"{path}: mode {open_to:04o}" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_key_of_another_user_is_refused(tmp_path, monkeypatch, what):
    """A public key or folder of another user than root and this one is refused."""
    folder = tmp_path / "clients"
    public, _ = make_keys(folder, "alice", "read")
    path = folder if what == "folder" else public
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:  # files of this user as another user sees them; the folder comes first
        path = folder
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ConfigError, match=rf"{path}: must belong to root or .*; uid \d+ owns it"):
        read_folder(folder)


@pytest.mark.parametrize(("kind", "rule"), [("fifo", "must be a regular"), ("folder", "is a fold")])
def test_only_a_regular_file_is_accepted(tmp_path, kind, rule):
    """Only a regular file is read: a FIFO would block, and a folder is a mistake."""
    for name in ("x.pub", "x.key"):
        path = tmp_path / name
        os.mkfifo(path, 0o600) if kind == "fifo" else path.mkdir(0o700)
    for read, path in ((read_folder, tmp_path), (read_secret, tmp_path / "x.key")):
        with pytest.raises(ConfigError, match=rf"x\.(pub|key): {rule}"):
            read(path)


def test_the_command_line(tmp_path, capsys):
    """The command line makes, lists and checks keys, with exit codes for both kinds of error."""
    folder = tmp_path / "keys"
    assert main(["keys", "new", str(folder), "--name", "alice", "--right", "control"]) == 0
    out = capsys.readouterr().out
    key = read_public(folder / "alice.pub").key.decode()
    assert f"{folder}/alice.key: the secret key" in out
    assert key in out
    assert read_secret(folder / "alice.key").secret.decode() not in out
    assert main(["keys", "new", str(folder), "--name", "alice"]) == 74
    assert "alice.key: exists already; keys are never overwritten" in capsys.readouterr().err
    assert main(["keys", "list", str(folder)]) == 0
    assert capsys.readouterr().out.startswith(f"alice\tcontrol\t{key}\tmade on ")
    files = [str(folder / name) for name in ("alice.pub", "alice.key")]
    assert main(["keys", "check", str(folder), *files]) == 0
    assert capsys.readouterr().out == "".join(f"{path}: right\n" for path in (folder, *files))
    (folder / "alice.key").chmod(0o644)
    assert main(["keys", "check", str(folder)]) == 2
    assert "mode 0644: nobody but its owner may read a secret key" in capsys.readouterr().err
    assert main(["keys", "check", str(tmp_path / "x")]) == 2
    assert "must end in .pub or .key, or be a folder" in capsys.readouterr().err


def test_a_comment_is_text_and_shows_as_one_line(tmp_path, capsys):
    """A comment is shown escaped on one line, so that it cannot forge another."""
    folder = str(tmp_path / "keys")
    assert main(["keys", "new", folder, "--name", "a", "--comment", "\udcff"]) == 2
    assert "comment='\\udcff': must be valid UTF-8" in capsys.readouterr().err
    assert main(["keys", "new", folder, "--name", "a", "--comment", "é\nb\tcontrol\x1b[2J"]) == 0
    capsys.readouterr()
    assert main(["keys", "list", folder]) == 0
    assert capsys.readouterr().out.endswith("\té\\nb\\tcontrol\\x1b[2J\n")


def test_a_name_is_made_of_the_machines(tmp_path, capsys, monkeypatch):
    """Without --name the key has the machine's name, with invalid characters replaced."""
    monkeypatch.setattr("platform.node", lambda: "räck 7.local")
    assert main(["keys", "new", str(tmp_path)]) == 0
    capsys.readouterr()
    assert read_public(tmp_path / "r-ck-7.local.pub").right == "read"


@pytest.mark.parametrize("opening", ["[", "{a = "])
def test_a_key_file_nested_without_end_is_refused(tmp_path, opening):
    """A deeply nested key file is one error, although Python's TOML parser is recursive."""
    path = tmp_path / "a.pub"
    path.write_text("name = " + opening * (16_000 // len(opening)))
    with pytest.raises(ConfigError, match="not a key's file: tables or arrays too deep"):
        read_public(path)
