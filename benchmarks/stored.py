"""Shared by benchmarks that keep their figures in a JSON file: reading, writing, and two commands, run and write."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.own_data.courses import FOLDER
from relive._util.files import write_atomic


def read(path: Path, default: Any) -> Any:
    """Return the contents of a file, or the default if there is none yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else default


def write(path: Path, found: Any) -> None:
    """Write figures atomically."""
    write_atomic(path, (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())


def commands(doc: str | None, run: Callable[[argparse.Namespace], None], put: Callable[[], None]) -> None:
    """Parse the command line: ``run`` measures what is missing, ``write`` puts it into the documentation."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("run", "write"))
    parser.add_argument("--data", type=Path, default=FOLDER, help="where prepared data sets are kept")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.do == "run":
        run(options)
    else:
        put()
