"""Tools that know no sound: errors, texts, durations, threads, queues, files, processes.

It imports nothing of spectrod.
"""
