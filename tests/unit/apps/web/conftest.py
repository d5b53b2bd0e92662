"""Settings for tests of the page's server."""

import pytest

from spectrod.apps.web.history import recording_index


@pytest.fixture
def whole_scans(monkeypatch):
    """Scan small folders as a whole, however slow the machine is."""
    monkeypatch.setattr(recording_index, "SCAN_S", 60.0)
