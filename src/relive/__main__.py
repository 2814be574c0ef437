"""``python -m relive`` and ``relive`` are one program, and this is where it starts."""

import sys


def main() -> None:
    """Run the command line; an interrupt is one from the first moment, before anything is there to handle it."""
    try:
        from relive.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.stderr.write("stopped.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
