"""Programs of their own that stand on the core: web, view, ctl, doctor, batch, mqtt, image, bench.

They are loaded by name when their command is used; nothing imports them.
"""
