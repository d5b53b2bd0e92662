"""Where files of units are in the results: by deployments, or tables by deployment and date."""

import re
from collections.abc import Mapping

from spectrod.apps.batch.job import ResultLayout, TableFormat

TABLE_WORDS: Mapping[str, str] = {
    "levels": "levels",
    "features": "features",
    "detect": "events",
    "flags": "flags",
}
"""Last word of the names of files of each product that is a table; folder of its partitions."""
PARTITIONED_FORMAT: TableFormat = "parquet"
"""Format of tables that readers of partitions take."""

_NAME = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
_FILE = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,250}"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_WORDS = "|".join(TABLE_WORDS.values())
PATH = rf"^({_NAME}|({_WORDS})/deployment={_NAME}/date={_DATE})/{_FILE}\Z"
"""A file of a deployment, and nothing else: files of old records are removed."""


def table_suffix(product: str, table_format: TableFormat) -> str:
    """Return the end of the name of a table's file, after that of the unit."""
    return f"_{TABLE_WORDS[product]}.{table_format}"


def is_parquet(path: str) -> bool:
    """Return whether a file is a table in the format of partitions."""
    return path.endswith(f".{PARTITIONED_FORMAT}")


def partition(product: str, deployment: str, unit: str) -> str:
    """Return the folder of a unit's table as Hive, Spark and DuckDB read partitions."""
    date = f"{unit[:4]}-{unit[4:6]}-{unit[6:8]}"
    return f"{TABLE_WORDS[product]}/deployment={deployment}/date={date}"


def result_path(layout: ResultLayout, product: str, deployment: str, unit: str, name: str) -> str:
    """Return the path of a file in the results.

    Parameters
    ----------
    layout : {"folders", "partitioned"}
        See ``Job.layout``.
    product, deployment, unit : str
        What the file is of.
    name : str
        Name of the file.
    """
    is_table = product in TABLE_WORDS and is_parquet(name)
    is_partition = layout == "partitioned" and is_table
    return f"{partition(product, deployment, unit) if is_partition else deployment}/{name}"


def can_be_path(product: str, deployment: str, unit: str, path: str, ends: str) -> bool:
    """Return whether a path is that of a unit's file in any layout.

    Parameters
    ----------
    product, deployment, unit : str
        What the file is of.
    path : str
        The path.
    ends : str
        Pattern of the file's name after that of the deployment.
    """
    name = path.rpartition("/")[2]
    layouts: tuple[ResultLayout, ...] = ("folders", "partitioned")
    return re.fullmatch(f"{re.escape(deployment)}{ends}", name) is not None and path in [
        result_path(layout, product, deployment, unit, name) for layout in layouts
    ]
