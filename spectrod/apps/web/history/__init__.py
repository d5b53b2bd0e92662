"""The past of a topic: from recordings on the disk, and from rows that the server remembers."""
