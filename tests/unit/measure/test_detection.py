"""Places of events in the files of a stream, with gaps and overlaps between them."""

from types import SimpleNamespace

import pytest

from spectrod.measure.triggers.detection import FilePlaces

FS = 100.0
FILES = [
    SimpleNamespace(path=path, first=first, n_samples=n)
    for path, first, n in (("a", 0, 1000), ("b", 1500, 501), ("c", 1990, 200))
]
"""Between a and b are 5 s of nothing; c overlaps b by 11 samples."""


@pytest.mark.parametrize(
    ("index", "place"),
    [
        (0, ("a", 0.0, 7.0)),
        (999, ("a", 9.99, 16.99)),
        (1500, ("b", 0.0, 17.0)),
        (1989, ("b", 4.89, 21.89)),
        (1990, ("c", 0.0, 22.01)),
        (2189, ("c", 1.99, 24.0)),
    ],
)
def test_a_sample_lies_in_the_last_file_that_has_begun(index, place):
    """Times count from the file's begin, and through all files without what lies between them."""
    path, in_file_s, joined_s = FilePlaces(FILES, FS, before_s=7.0).at(index)
    assert path == place[0]
    assert (in_file_s, joined_s) == pytest.approx(place[1:], abs=1e-9)


def test_the_files_of_several_sources_follow_each_other():
    """The next source begins where the files of this one end."""
    assert FilePlaces(FILES, FS, before_s=7.0).after_s == pytest.approx(7.0 + 17.01)
