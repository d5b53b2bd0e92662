"""What pages may hear: sound that the daemon recorded. Knows its files, and none of its rows."""
