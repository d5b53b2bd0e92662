"""A soak of ``spectrod run``: real sources, random faults of every group, everything counted.

``python -m spectrod.apps.bench.fault_soak --hours 1`` starts the daemon as a process of its own and
injects one fault after the other, chosen by a seed. ``docs/soak.md`` describes the faults, what is
checked, and the bounds.
"""
