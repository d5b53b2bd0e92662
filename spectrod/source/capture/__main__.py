"""``python -m spectrod.source.capture`` is the capture process; only spectrod starts it."""

from spectrod.source.capture.capture_child import main

if __name__ == "__main__":
    main()
