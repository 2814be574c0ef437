"""The paper's claims: what holds, what does not, and what cannot be said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relive.experiments.spec import RunResult
from relive.report.claims import Claim, claims
from relive.report.comparison import compare
from tests.report.fake import paper_like, result_of, spec_of

Only, Distill, Loss, Faster, Halved = range(5)


def check(results: list[RunResult], protocol: str = "split") -> list[Claim]:
    return claims(compare(results, protocol))


def cell(scenario: str, method: str, *accuracies: float, seconds: float = 100, share: float = 1.0) -> list[RunResult]:
    return [
        result_of(spec_of("split", scenario, method, seed), value / 100, seconds=seconds, share=share)
        for seed, value in enumerate(accuracies)
    ]


def three(method: str, *accuracies: float, seconds: float = 100, share: float = 1.0) -> list[RunResult]:
    """Return the same runs in all three scenarios."""
    return [
        run for s in ("task", "domain", "class") for run in cell(s, method, *accuracies, seconds=seconds, share=share)
    ]


@pytest.mark.parametrize("protocol", ["split", "permuted"])
def test_all_claims_hold_for_what_the_paper_published(protocol: str) -> None:
    checked = check(paper_like(protocol, 20), protocol)
    assert [claim.status for claim in checked] == ["holds"] * 5
    assert all(claim.protocol == protocol for claim in checked)


def test_without_runs_nothing_can_be_said() -> None:
    for claim in check([]):
        assert claim.status == "cannot be said"
        assert all("no runs" in part.text for part in claim.parts)


def test_one_method_that_works_without_replay_refutes_the_first_claim_even_if_others_are_missing() -> None:
    claim = check(cell("class", "si", 80, 81, 82))[Only]
    assert claim.status == "does not hold"
    assert [part.outcome for part in claim.parts].count("open") == 7
    assert any(part.text == "SI: 81.00 ± 0.58 % (3 runs)" for part in claim.parts)


def test_a_mean_too_near_the_threshold_decides_nothing() -> None:
    results = [run for run in paper_like("split", 20) if run.spec.method != "rtf"]
    near = check(results + cell("class", "rtf", 89.5, 90.6, 90.4))[Only]
    assert near.status == "cannot be said"
    below = check(results + cell("class", "rtf", 85, 85.1, 85.2))[Only]
    assert below.status == "does not hold"


def test_a_difference_must_be_more_than_two_standard_errors() -> None:
    dgr = three("dgr", 90, 91, 92)
    assert check(dgr + three("dgr-distill", 93, 94, 95))[Distill].status == "holds"
    assert check(dgr + three("dgr-distill", 90.5, 91.5, 92.5))[Distill].status == "cannot be said"
    assert check(dgr + three("dgr-distill", 87, 88, 89))[Distill].status == "does not hold"
    part = check(dgr + three("dgr-distill", 93, 94, 95))[Distill].parts[0]
    assert part.text == "Task-IL: 94.00 − 91.00 = +3.00 ± 0.82 points (3 runs each)"


def test_a_single_run_has_the_published_spread() -> None:
    # published standard deviations in Class-IL: 1.48 and 1.21 points, so that 3.8 points are two standard errors
    far = check(cell("class", "dgr", 90) + cell("class", "dgr-distill", 93.9))[Distill].parts[2]
    near = check(cell("class", "dgr", 90) + cell("class", "dgr-distill", 93.7))[Distill].parts[2]
    assert (far.outcome, near.outcome) == ("met", "open")


def test_a_negligible_loss_is_below_a_point() -> None:
    base = three("dgr-distill", 95, 95.01, 95.02)
    assert check(base + three("rtf", 94.5, 94.51, 94.52))[Loss].status == "holds"
    assert check(base + three("rtf", 93.5, 93.51, 93.52))[Loss].status == "does not hold"


@pytest.mark.parametrize(
    ("seconds", "faster", "halved"),
    [(50, "holds", "holds"), (80, "holds", "does not hold"), (120, "does not hold", "does not hold")],
)
def test_training_times(seconds: float, faster: str, halved: str) -> None:
    checked = check(three("dgr-distill", 95, seconds=100) + three("rtf", 95, seconds=seconds))
    assert (checked[Faster].status, checked[Halved].status) == (faster, halved)
    assert checked[Faster].parts[0].text == f"Task-IL: {seconds:.0f} s / 100 s = {seconds / 100:.2f} (one run each)"


def test_times_from_a_busy_machine_are_told_but_decide_nothing() -> None:
    checked = check(three("dgr-distill", 95, seconds=100) + three("rtf", 95, seconds=50, share=0.9))
    assert checked[Halved].status == "cannot be said"
    assert checked[Halved].parts[0].text.endswith("= 0.50 (one run each), measured next to other work")


def test_quiet_times_are_taken_where_there_are_any() -> None:
    busy = [replace(run, cpu_seconds=500.0, train_seconds=999.0) for run in three("rtf", 95, 95)[1::2]]
    quiet = three("rtf", 95, seconds=50)
    part = check(three("dgr-distill", 95, seconds=100) + quiet + busy)[Halved].parts[0]
    assert part.text == "Task-IL: 50 s / 100 s = 0.50 (one run each)"


def test_almost_halved_needs_two_scenarios_of_three() -> None:
    base = three("dgr-distill", 95, seconds=100)
    two = cell("task", "rtf", 95, seconds=50) + cell("class", "rtf", 95, seconds=50)
    assert check(base + two)[Halved].status == "holds"
    assert check(base + two[:1])[Halved].status == "cannot be said"
    slow = cell("task", "rtf", 95, seconds=90) + cell("domain", "rtf", 95, seconds=90)
    assert check(base + slow)[Halved].status == "does not hold"
