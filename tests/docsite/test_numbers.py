"""Numbers that pages quote are those of the paper and of the stored runs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from relive._util.fidelity import AS_RUN
from relive._util.statistics import mean_and_sem
from relive.experiments.spec import SCENARIO_NAMES, RunResult
from relive.experiments.store import Store
from relive.methods.catalogue import METHODS
from relive.paper.comparison import compare
from relive.paper.published import FURTHER, IN_ORDER, PUBLISHED

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| `([\w-]+)` \| .*? \| ((?:[\d.]+|–) / (?:[\d.]+|–) / (?:[\d.]+|–))",
    (ROOT / "docs/methods.md").read_text(),
    re.M,
)


@pytest.fixture(scope="module")
def ledger() -> list[RunResult]:
    return Store(ROOT / "reproduction").scan()[0]


@pytest.mark.parametrize(("method", "cells"), ROWS)
def test_what_to_expect_of_a_method_is_what_was_published(method: str, cells: str) -> None:
    for scenario, cell in zip(SCENARIO_NAMES, cells.split(" / "), strict=True):
        key = ("split", scenario, method)
        published = PUBLISHED.get(key) or FURTHER.get(key)
        assert cell == ("–" if published is None else f"{published.mean:.2f}")


def test_the_table_of_methods_has_the_paper_s_ten_and_two_more() -> None:
    assert len(ROWS) == 12


@pytest.mark.parametrize(
    ("page", "protocol", "method", "settings", "sentence"),
    [
        (
            "methods.md",
            "split",
            "discriminant",
            {"numbers": 1.1e6},
            "reaches {class} ± {sem} % on split MNIST in Class-IL, {domain} in Domain-IL and {task} in Task-IL",
        ),
        ("methods.md", "permuted", "domains", {}, "`domains` reaches {class} % in Class-IL and Domain-IL"),
        ("paper.md", "permuted", "rtf", {}, "RtF reaches {task}, {domain} and {class} % in"),
        ("paper.md", "split", "rtf", {}, "RtF reaches {task}, {domain} and {class} % in"),
    ],
)
def test_a_sentence_quotes_the_ledger(
    page: str, protocol: str, method: str, settings: dict[str, float], sentence: str, ledger: list[RunResult]
) -> None:
    said: dict[str, str] = {}
    for scenario in SCENARIO_NAMES:
        runs = [
            100 * run.average_accuracy
            for run in ledger
            if (run.spec.protocol, run.spec.scenario, run.spec.method) == (protocol, scenario, method)
            and (run.spec.dataset, run.spec.fidelity) == ("mnist", AS_RUN)
            and run.spec.encoder in ("", METHODS[method].encoder)
            and run.spec.seed != IN_ORDER.get(protocol)
            and all(run.spec.settings[name] == value for name, value in settings.items())
        ]
        if runs:
            mean, sem = mean_and_sem(runs)
            said |= {scenario: f"{mean:.2f}"} | (
                {"sem": f"{sem:.2f}"} if scenario == "class" and sem is not None else {}
            )
    text = " ".join((ROOT / "docs" / page).read_text().split())
    assert sentence.format(**said) in text, sentence.format(**said)


def test_the_verdicts_on_split_are_counted(ledger: list[RunResult]) -> None:
    cells = compare(ledger, "split").cells.values()
    counts = Counter(cell.verdict for cell in cells)
    assert min(cell.n for cell in cells) >= 20
    said = (
        f"Split MNIST has 20 runs or more of each of the {len(cells)} cells: {counts['agrees']} agree with the paper, "
        f"{counts['lower']} is lower (SI in Task-IL, with a strength that need not be the paper's), and for "
        f"{counts['inconclusive']} no difference"
    )
    assert said in " ".join((ROOT / "docs/paper.md").read_text().split())
