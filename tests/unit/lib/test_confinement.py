"""Hints on what a service manager hides from a service."""

import pytest

from spectrod.lib.confinement import hidden_hint, read_only_hint

TMP = "/var/tmp"  # noqa: S108 - nothing is written there
MOUNTS = r"""
21 1 8:1 / / ro,relatime master:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 21 8:1 /var/lib/spectrod /var/lib/spectrod rw,relatime master:1 - ext4 /dev/sda1 rw
31 21 8:1 /var/tmp/systemd-private-1f-x.service-Ab/tmp /var/tmp rw,relatime - ext4 /dev/sda1 rw
32 21 0:25 /systemd/inaccessible/dir /home ro,nosuid,nodev - tmpfs tmpfs rw,mode=755
33 21 8:2 / /srv/a\040disk ro,relatime - ext4 /dev/sdb1 ro
34 21 8:3 / /srv/twice ro,relatime - ext4 /dev/sdc1 rw
35 34 8:3 / /srv/twice rw,relatime - ext4 /dev/sdc1 rw
broken line
"""


@pytest.fixture
def mounts(tmp_path):
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTS)
    return file


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        (f"{TMP}/audio.fifo", "the service has a /var/tmp of its own (PrivateTmp=)"),
        ("/home/alice/x.wav", "/home is hidden from the service (ProtectHome=)"),
        ("/homes/x.wav", ""),
        ("/var/lib/spectrod/x", ""),
        ("relative", ""),
    ],
)
def test_hidden_folders_are_named(mounts, path, hint):
    """A path below a private or hidden mount has a reason; similar names have none."""
    assert hidden_hint(path, mounts) == hint


@pytest.mark.parametrize(
    ("path", "is_ours"),
    [
        ("/srv/recordings", True),
        ("/var/lib/spectrod/recordings", False),
        ("/srv/a disk/x", False),
        ("/srv/twice/x", False),
    ],
)
def test_only_what_the_service_may_not_write_is_its_own(mounts, path, is_ours):
    """A disk that is read-only for everybody, or writable in its last mount, has no hint."""
    hint = "the service may not write there (ReadWritePaths=, see 40-recordings.conf)"
    assert read_only_hint(path, mounts) == (hint if is_ours else "")


def test_a_system_without_the_table_has_no_hints(tmp_path):
    """Where there is no table of mounts, nothing is said."""
    assert hidden_hint("/home/x", tmp_path / "none") == ""
    assert read_only_hint("/home/x", tmp_path / "none") == ""
