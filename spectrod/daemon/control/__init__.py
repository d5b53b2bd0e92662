"""Methods of a running daemon's control socket."""
