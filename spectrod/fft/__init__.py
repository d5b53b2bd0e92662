"""Transforms on OpenCL devices: sizes, tables, and the plans that an engine executes."""
