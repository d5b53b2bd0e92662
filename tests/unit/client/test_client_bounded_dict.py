import pytest

from spectrod.client.bounded_dict import BoundedDict


@pytest.mark.parametrize("most", [1, 2, 7])
def test_the_names_put_longest_ago_are_forgotten(most):
    """Whatever was put again counts as new."""
    kept = BoundedDict(most, 1000)
    for k in range(20):
        kept.put(str(k), k, 1)
    assert list(kept.values()) == list(range(20 - most, 20))
    kept.put(str(20 - most), -1, 1)
    kept.put("last", 0, 1)
    assert ("last" in kept, str(20 - most) in kept) == (True, most > 1)


def test_sizes_are_bounded_and_a_value_replaces_its_own():
    """The sum of all values counts; a value above the bound is kept alone."""
    kept = BoundedDict(100, 10)
    for size in (4, 6, 10, 3):
        kept.put("a", size, size)
    kept.put("b", 7, 7)
    assert list(kept) == ["a", "b"]
    kept.put("c", 1, 1)
    assert list(kept) == ["b", "c"]
    kept.put("d", 99, 99)
    assert list(kept) == ["d"]
    kept.put("e", 1, 1)
    assert list(kept) == ["e"]


def test_a_discarded_name_takes_no_space():
    """Its size is free again, and a name that is not there is no error."""
    kept = BoundedDict(100, 10)
    kept.put("a", 1, 9)
    kept.discard("a")
    kept.discard("a")
    kept.put("b", 2, 5)
    kept.put("c", 3, 5)
    assert list(kept) == ["b", "c"]
