"""Programs of their own that stand on the core.

``measurements``, ``convert``, ``view``, ``web``, ``ctl``, ``setup``, ``doctor``, ``tune``,
``batch``, ``mqtt``, ``image``, ``bench``: loaded by name when their command is used; nothing
imports them.
"""
