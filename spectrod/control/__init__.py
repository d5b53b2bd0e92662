"""What a running daemon does when it is asked over its control socket."""
