"""``python -m spectrod.capture`` is the capture process; only spectrod starts it."""

from spectrod.capture.child import main

if __name__ == "__main__":
    main()
