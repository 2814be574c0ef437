"""The loop: generate a case, feed it, keep it if it fails."""

from __future__ import annotations

import hashlib
import os
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from relive._util.errors import ReliveError
from tests.fuzzing.targets import TARGETS, Target

CORPUS = Path(__file__).parents[1] / "corpus"
PATIENCE = 10  # seconds after which a case counts as hanging


class HungError(Exception):
    """A case took too long."""


@dataclass
class Count:
    """How many cases of a target there were, and which failed."""

    cases: int = 0
    refused: int = 0
    taken: int = 0
    failed: list[str] = field(default_factory=list)


def fuzz(folder: Path, cases: int, seed: str = "0", only: str | None = None) -> dict[str, Count]:
    """Feed every target its share of the cases."""
    counts = {}
    for kind in TARGETS:
        if only is not None and kind.name != only:
            continue
        count = counts[kind.name] = Count()
        with quiet(folder):
            target = kind(folder)
            for i in range(cases if only else cases * kind.share // 100):
                case = target.case(Random(f"{kind.name} {seed} {i}"))
                feed(target, case, count)
    return counts


def feed(target: Target, case: bytes, count: Count) -> None:
    """Feed one case."""
    count.cases += 1
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        target.take(case)
        count.taken += 1
    except ReliveError:
        count.refused += 1
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{hashlib.sha256(case).hexdigest()[:12]}{target.ending}"
        if len(count.failed) < 20:
            (CORPUS / target.name).mkdir(parents=True, exist_ok=True)
            (CORPUS / target.name / name).write_bytes(case)
        said = f"{type(error).__name__}: {str(error)[:200]}"
        count.failed.append(f"{name}: {said} ({Path(where.filename).name}:{where.lineno})")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def quiet(folder: Path) -> Iterator[None]:
    """Work in a folder, without warnings, and interrupt what hangs."""

    def hung(*_: object) -> None:
        raise HungError(f"more than {PATIENCE} s")

    here, before = os.getcwd(), signal.signal(signal.SIGALRM, hung)
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.signal(signal.SIGALRM, before)
        os.chdir(here)
