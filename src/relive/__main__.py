"""``python -m relive`` is the same program as ``relive``."""

from relive.cli import main

if __name__ == "__main__":
    main()
