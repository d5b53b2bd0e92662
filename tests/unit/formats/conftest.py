import pytest
from PIL import ImageFont, features

from spectrod.formats.picture import fonts, lettering


def forget_typefaces():
    """Let the next text look for typefaces again."""
    caches = (lettering._built_in, lettering._wide, lettering._wide_draws, lettering._report)
    for one in (*caches, fonts._open):
        one.cache_clear()
    lettering._finder = fonts.FontFinder()


@pytest.fixture
def no_typefaces(monkeypatch, tmp_path):
    """Let the machine have no typefaces but Pillow's own; return the empty folder of the others."""
    folder = tmp_path / "typefaces"
    folder.mkdir()
    for name in ("XDG_DATA_HOME", "XDG_DATA_DIRS"):
        monkeypatch.setenv(name, str(folder))
    forget_typefaces()
    yield folder
    forget_typefaces()


@pytest.fixture
def without_freetype(monkeypatch):
    """Use Pillow without FreeType, which has one bitmap typeface."""
    bitmap = ImageFont.load_default_imagefont()
    monkeypatch.setattr(features, "check_module", lambda _: False)
    monkeypatch.setattr(ImageFont, "load_default", lambda: bitmap)
    forget_typefaces()
    yield
    forget_typefaces()
