"""``python -m relive`` and ``relive`` are one program, and this is where it starts."""

import sys

OF_THE_EXTRA = ("typer", "matplotlib", "jinja2")  # cli


def main() -> None:
    """Run the command line; an interrupt is one from the first moment, before anything is there to handle it."""
    try:
        from relive.cli import main as command_line

        command_line()
    except ModuleNotFoundError as error:
        if error.name not in OF_THE_EXTRA:
            raise
        sys.exit(f"the command line needs {error.name}, which is not installed: pip install 'relive[cli]'")
    except KeyboardInterrupt:
        sys.stderr.write("stopped.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
