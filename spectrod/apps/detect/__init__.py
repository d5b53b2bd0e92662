"""``spectrod detect``: the triggers of the daemon on recordings."""
