"""The entry point of ``python -m relive`` and ``relive``."""

import sys
import warnings

OF_THE_EXTRA = ("typer", "matplotlib", "jinja2")  # cli


def main() -> None:
    """Run the command line; Ctrl-C works from the first moment, before any handler is installed."""
    try:
        with warnings.catch_warnings(record=True) as met:  # an installed package that had to be left out
            from relive.cli import main as command_line
        command_line(met)
    except ModuleNotFoundError as error:
        if error.name not in OF_THE_EXTRA:
            raise
        sys.exit(f"the command line needs {error.name}, which is not installed: pip install 'relive[cli]'")
    except KeyboardInterrupt:
        sys.stderr.write("stopped.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
