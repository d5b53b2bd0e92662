from spectrod.bench.tables import SAVED, TRANSFORMS, heading, line, microseconds

ROW = {
    "n": 1024,
    "kind": "c2c",
    "precision": "single",
    "batch": 64,
    "what": "spectrod",
    "seconds": 12.5e-6,
    "gflop_per_s": 123.45,
    "gb_per_s": 9.876,
    "copy_share": 0.934,
    "relative_l2": 1.234e-7,
    "speed": 1.0,
}


def test_columns_stand_below_their_headings():
    """A row is as long as its heading, and its last words end where the heading's do."""
    titles, row = heading(TRANSFORMS), line(TRANSFORMS, ROW)
    assert len(titles) == len(row)
    for title, cell in (("GFLOP/s", "123.5"), ("of copy", "93%"), ("error", "1.2e-07")):
        assert titles.index(title) + len(title) == row.index(cell) + len(cell)


def test_what_failed_ends_its_row():
    """Values that there are not stay empty, and the reason follows."""
    row = line(TRANSFORMS, {"n": 64, "kind": "c2c", "what": "reikna", "failed": "no such thing"})
    assert row.split() == ["64", "c2c", "reikna", "no", "such", "thing"]


def test_times_keep_their_precision():
    """Times below a millisecond have decimals, longer ones do not need them."""
    assert microseconds(1.234e-6) == "1.23"
    assert microseconds(2.3456e-3) == "2346"


def test_parameters_are_short():
    """Names and values, without blanks inside a list."""
    assert line(SAVED, {"params": {"radices": [8, 16], "pad": 1}}).endswith("radices=[8,16] pad=1")
