"""Names of classes: one name for one thing."""

import ast
from collections import Counter
from pathlib import Path

import spectrod


def classes(package):
    """Return the names of all classes of a package."""
    for path in Path(package.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def test_each_class_has_a_name_of_its_own():
    """No two classes have one name, private ones included."""
    counts = Counter(classes(spectrod))
    assert counts["SpectrumBatch"] == 1
    assert [name for name, n in counts.items() if n > 1] == []
