"""What is written when: rotation, retention, schedules, triggers and faults of the disk.

It knows ``formats`` and ``config``; it is given rows and samples by whoever has them.
"""
