"""The long-running process: pipeline, sources, publisher, control, monitoring, service.

It knows every room below it; the command line starts it.
"""
