"""How every command ends: one line for people, and a conventional exit code.

0: done; 1: it failed (a full disk, a damaged file, training that diverged, too little memory, a bug in relive
itself); 2: the request was invalid; 130: it was interrupted.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import relive
from relive._util.errors import InputError, ReliveError, is_out_of_memory
from relive._util.registry import Registry
from relive.cli.console import err
from relive.core.catalogue import OPTIMIZERS
from relive.data.catalogue import DATASETS, PROTOCOLS
from relive.methods import METHODS
from relive.networks.catalogue import ENCODERS

REGISTRIES: tuple[Registry[Any], ...] = (METHODS, DATASETS, PROTOCOLS, ENCODERS, OPTIMIZERS)
ADDRESS = re.compile(r".+\.py:\w+|[\w.]+:[A-Za-z_]\w*")  # my_file.py:Mine, package.module:Mine


@dataclass
class Door:
    """The last handler that every error reaches; ``debug`` says whether to show tracebacks."""

    debug: bool = False

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Turn every error into a message and an exit code."""
        try:
            yield
        except Exception as error:
            if self.debug:
                err.print("".join(traceback.format_exception(error)))
            err.say("error:", message(error), "bold red")
            raise SystemExit(2 if isinstance(error, InputError) else 1) from None


def message(error: Exception) -> str:
    """Return what went wrong, and what to do about it."""
    if isinstance(error, ReliveError):
        return str(error)
    if is_out_of_memory(error):
        return "there is not enough memory: use less, for example a smaller --hidden or --batch-size"
    own = _own_code(sys.argv[1:])
    said = " ".join(str(error).split())[:300]
    if (place := _own_line(error, own.values())) is not None:
        return f"{place}: {type(error).__name__}: {said}. relive --debug COMMAND … shows the traceback"
    if isinstance(error, OSError):
        what = f"{error.strerror}: {error.filename}" if error.filename else f"cannot print: {error}"
        return f"{what}; whatever was stored before is kept"
    if own:
        return (
            f"{type(error).__name__}: {said}. The cause is in {' or '.join(own)}, or in relive; files are intact. "
            "relive --debug COMMAND … shows the traceback: if it is in relive, please report it"
        )
    return (
        f"{type(error).__name__}: {said}. This is a bug in relive; files are intact. "
        "relive --debug COMMAND … shows the traceback: please report it"
    )


def _own_code(words: Sequence[str]) -> dict[str, str]:
    """Return which words of a command name code that is not relive's, and where it is: ``package.module:Thing``."""
    values = [word.partition("=")[2] if word.startswith("--") and "=" in word else word for word in words]
    homes = {value: registry[value].home for value in values for registry in REGISTRIES if registry.is_installed(value)}
    homes |= {value: value for value in values if ADDRESS.fullmatch(value)}
    return {value: home for value, home in homes.items() if not home.startswith("relive.")}


def _own_line(error: Exception, homes: Iterable[str]) -> str | None:
    """Return the last line of the user's own files that an error went through; None if it went through none.

    An installed package is not the user's own, unless the command named something in it.
    """
    packages = {home.partition(":")[0].partition(".")[0] for home in homes if ".py:" not in home}
    lines = [
        (frame.f_code.co_filename, line, frame.f_globals.get("__name__", "").partition(".")[0] in packages)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append((error.filename, error.lineno or 0, False))
    theirs = [Path(relive.__file__).parent, Path(sys.prefix), Path(sysconfig.get_path("stdlib"))]
    for name, line, own in reversed(lines):
        path = Path(name).resolve()
        outside = not any(path.is_relative_to(folder.resolve()) for folder in theirs)
        if own or (path.suffix == ".py" and outside):
            return f"{Path(name).name}, line {line}"
    return None
