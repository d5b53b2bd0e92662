"""Programs of their own that stand on the core: web, batch, mqtt, image, bench.

They are loaded by name when their command is used; nothing imports them.
"""
