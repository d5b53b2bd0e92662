"""Settings of a daemon that measures intervals of one source."""

from spectrod.config import config


def load(tmp_path, source, products):
    """Write a configuration with a source and products, and load it."""
    file = tmp_path / "spectrod.toml"
    file.write_text(
        f"""
[source]
name = "mic"
{source}
[analysis]
win_length = 256
hop = 256
[engine]
engine = "numpy"
[publish]
endpoints = ["ipc://{tmp_path}/pub"]
[control]
endpoints = []
{products}
""",
        "utf-8",
    )
    return config.load(str(file))
