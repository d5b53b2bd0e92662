"""What is written to files, and when: rotation, retention, schedules, events, faults."""
