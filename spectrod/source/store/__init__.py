"""Files of object stores and HTTP servers, read by parts."""
