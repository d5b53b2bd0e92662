"""A product by its name."""

import pytest

from spectrod.lib.errors import ConfigError, NoProductError, NotFoundError
from spectrod.lib.names import find_product

PRODUCTS = {"dbfs": 1, "slow": 2}


@pytest.mark.parametrize(("name", "found"), [("", 1), ("dbfs", 1), ("slow", 2)])
def test_a_product_is_found_by_its_name(name, found):
    """A name finds its product, and an empty one the first."""
    assert find_product(name, PRODUCTS) == found


@pytest.mark.parametrize(
    ("owner", "lacks"),
    [("", "the source has no such product"), ("mic", "mic has no such product"),
     (None, "no source has it")],
)  # fmt: skip
def test_an_unknown_product_lists_those_that_exist(owner, lacks):
    """The error names the product, the source and what there is, and is about the product."""
    with pytest.raises(
        NoProductError, match=rf"^product='x': {lacks}; there are: dbfs, slow$"
    ) as e:
        find_product("x", PRODUCTS, owner)
    assert e.value.keys == ("product",)


@pytest.mark.parametrize("error", [ConfigError, NotFoundError])
def test_an_unknown_product_is_a_mistake_or_not_found(error):
    """It is a mistake of a configuration, and not found for a request."""
    with pytest.raises(error, match=r"^product='x': the source has no such product"):
        find_product("x", PRODUCTS)


@pytest.mark.parametrize("name", ["", "x"])
def test_nothing_is_found_where_there_is_nothing(name):
    """Without products even the first one is missing."""
    with pytest.raises(ConfigError, match=rf"^product='{name}': .*; there are: none yet$"):
        find_product(name, {})
