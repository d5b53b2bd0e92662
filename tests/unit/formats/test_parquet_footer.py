"""The order of a Parquet file's metadata."""

import io

import arro3.core
import arro3.io
import numpy as np

from spectrod.formats.values.parquet_footer import sort_metadata

METADATA = {
    **{f"name{k}": f"value{k}" for k in range(9)},
    "long": "x" * 300,
    "none": "",
    "name 1": "\N{MICRO SIGN}Pa",
}


def written(metadata):
    """Return the content of a file by the library."""
    column = arro3.core.Array(np.arange(5.0))
    field = arro3.core.Field("name1", column.type, metadata={"unit": "s", "channel": "0"})
    rows = arro3.core.RecordBatch.from_arrays([column], schema=arro3.core.Schema([field]))
    file = io.BytesIO()
    arro3.io.write_parquet(rows, file, key_value_metadata=metadata)
    return file.getvalue()


def sorted_by_name(content, metadata):
    file = io.BytesIO(content)
    sort_metadata(file, metadata)
    return file.getvalue()


def test_files_of_the_same_rows_have_the_same_bytes():
    """Whatever order the library has chosen; what is read stays the same."""
    found = {sorted_by_name(written(METADATA), METADATA) for _ in range(10)}
    (content,) = found
    table = arro3.io.read_parquet(io.BytesIO(content)).read_all()
    assert table.schema.metadata_str == METADATA
    assert table["name1"].to_pylist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    names = sorted(METADATA)
    places = [content.rfind(b"\x18" + bytes([len(name)]) + name.encode()) for name in names]
    assert places == sorted(places)


def test_files_without_these_metadata_stay_as_they_are():
    """Nothing is changed in a file of others, nor in one that is none."""
    for content in (written({}), written({"name2": "other"}), b"", b"PAR1", bytes(100)):
        assert sorted_by_name(content, METADATA) == content
        assert sorted_by_name(content, {}) == content
