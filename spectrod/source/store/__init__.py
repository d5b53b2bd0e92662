"""Files of object stores and HTTP servers, read by parts; files of buckets are written, too."""
