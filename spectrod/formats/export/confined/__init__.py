"""Reading of other people's files in processes that can do little else.

Libraries in C and Rust decode HDF5, Blosc and Parquet, and no check of what a file declares bounds
what they do with it. ``confined_process`` starts a process for each file; ``confined_child`` is
that process, ``hdf5``, ``blosc`` and ``parquet_events`` are what it does; ``confined_messages`` is
what both sides say.
"""
