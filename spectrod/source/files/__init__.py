"""Samples of files, folders and pipes: containers, codings, names and times of recordings."""
