"""Sends the files of a folder of recordings to a bucket, once or as they are finished."""
