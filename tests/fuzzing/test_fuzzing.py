"""Every case that ever failed, and some new ones; ``make fuzz`` generates 20,000."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzzing.run import CORPUS, Count, feed, fuzz, quiet
from tests.fuzzing.targets import TARGETS, Target


@pytest.mark.parametrize("kind", TARGETS, ids=lambda kind: kind.name)
def test_what_once_failed_is_taken_or_refused(kind: type[Target], tmp_path: Path) -> None:
    cases, count = sorted((CORPUS / kind.name).glob("*")), Count()
    with quiet(tmp_path):
        target = kind(tmp_path)
        for case in cases:
            feed(target, case.read_bytes(), count)
    assert (count.cases, count.failed) == (len(cases), [])


def test_damaged_input_is_taken_or_refused(tmp_path: Path) -> None:
    counts = fuzz(tmp_path, 600, seed="of the tests")
    assert {name: count.failed for name, count in counts.items() if count.failed} == {}
    assert sum(count.cases for count in counts.values()) >= 590
    for name in ("models", "results"):
        assert counts[name].taken, "some are intact enough to be accepted"
        assert counts[name].refused
