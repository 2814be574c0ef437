"""The paper's claims: which hold, which do not, and which cannot be decided."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from relive._util.errors import InputError
from relive.experiments.spec import SCENARIO_NAMES, RunResult
from relive.paper.comparison import compare
from relive.report.claims import Claim, claims
from relive.report.parts import Part
from relive.report.times import TIMES, Times, read_times
from tests.report.fake import paper_like, result_of, spec_of

SI, EWC, LwF, Only, Well, Distill, XdG, Slightly, Best, Loss, Faster, Halved, Twice = range(13)


def check(results: list[RunResult], protocol: str = "split") -> list[Claim]:
    return claims(compare(results, protocol))


def cell(scenario: str, method: str, *accuracies: float) -> list[RunResult]:
    return [
        result_of(spec_of("split", scenario, method, seed), value / 100)
        for seed, value in enumerate(accuracies, start=1)
    ]


def three(method: str, *accuracies: float) -> list[RunResult]:
    """Return the same runs in all three scenarios."""
    return [run for s in ("task", "domain", "class") for run in cell(s, method, *accuracies)]


def timed(method: str, *seconds: float) -> list[RunResult]:
    """Return runs in all three scenarios with these times, a seed each."""
    return [
        result_of(spec_of("split", scenario, method, seed), 0.95, seconds=time)
        for scenario in SCENARIO_NAMES
        for seed, time in enumerate(seconds, start=1)
    ]


@pytest.mark.parametrize("protocol", ["split", "permuted"])
def test_all_claims_hold_for_what_the_paper_published(protocol: str) -> None:
    checked = check(paper_like(protocol, 20), protocol)
    assert [claim.status for claim in checked] == ["holds"] * (13 if protocol == "split" else 11)
    assert all(claim.protocol == protocol for claim in checked)


def test_without_runs_nothing_can_be_said() -> None:
    for claim in check([]):
        assert claim.status == "too few runs to tell"
        assert all("no runs" in part.text for part in claim.parts)


def test_one_method_that_works_without_replay_refutes_the_first_claim_even_if_others_are_missing() -> None:
    claim = check(cell("class", "si", 80, 81, 82))[Only]
    assert claim.status == "does not hold"
    assert [part.outcome for part in claim.parts].count("open") == 7
    assert any(part.text == "SI: 81.00 ± 0.58 % [78.52, 83.48] (3 runs; paper 20.04)" for part in claim.parts)


def test_regularisation_and_lwf_are_compared_with_fine_tuning_each_other_and_replay() -> None:
    none, si, lwf = three("none", 60, 61, 60), three("si", 70, 71, 70), three("lwf", 80, 81, 80)
    checked = check(none + si + lwf)
    assert (checked[SI].status, checked[LwF].status) == ("holds", "holds")
    assert [part.n for part in checked[SI].parts] == [3, 3]  # Class-IL, where it fails, is not part of the claim
    swapped = check(none + three("si", 59, 60, 59) + three("lwf", 50, 51, 50))
    assert (swapped[SI].status, swapped[LwF].status) == ("does not hold", "does not hold")


@pytest.mark.parametrize(("below", "status"), [(0.5, "does not hold"), (2, "holds")])
def test_substantially_below_is_more_than_a_point(below: float, status: str) -> None:
    replay = three("dgr-distill", 98, 98.1, 98)
    others = [three(method, 98 - below, 98.2 - below, 98 - below) for method in ("ewc", "online-ewc")]
    assert check(replay + others[0] + others[1])[EWC].status == status


@pytest.mark.parametrize(("xdg", "status"), [(98.0, "holds"), (99.8, "does not hold")])
def test_si_and_xdg_are_compared_in_task_il(xdg: float, status: str) -> None:
    claim = check(cell("task", "si", 99, 99.1, 99.05) + cell("task", "xdg", xdg, xdg + 0.1, xdg))[XdG]
    assert (claim.status, [part.n for part in claim.parts]) == (status, [3])


def test_feedback_is_slightly_better_on_split_and_slightly_worse_on_permuted() -> None:
    better = three("rtf", 98.5, 98.6, 98.5) + three("dgr-distill", 98, 98.1, 98.05)
    assert check(better)[Slightly].status == "holds"
    worse = {claim.title: claim.status for claim in check(paper_like("permuted", 20), "permuted")}
    assert worse["DGR+distill slightly outperforms RtF"] == "holds"
    assert "RtF slightly outperforms DGR+distill" not in worse


def test_a_mean_too_near_the_threshold_decides_nothing() -> None:
    results = [run for run in paper_like("split", 20) if run.spec.method != "rtf"]
    for claim, near, below in ((Well, (89.5, 90.6, 90.4), (85, 85.1, 85.2)), (Only, (49, 50, 51), (19, 20, 21))):
        assert check(results + cell("class", "rtf", *near))[claim].status == "too few runs to tell"
        assert check(results + cell("class", "rtf", *below))[claim].status == "does not hold"
    assert check(results + cell("class", "rtf", 85, 85.1, 85.2))[Only].status == "holds"


def test_a_difference_must_be_beyond_its_interval() -> None:
    dgr = three("dgr", 90, 91, 92)
    assert check(dgr + three("dgr-distill", 92, 94, 96))[Distill].status == "holds"
    assert check(dgr + three("dgr-distill", 89.5, 91.5, 93.5))[Distill].status == "too few runs to tell"
    assert check(dgr + three("dgr-distill", 86, 88, 90))[Distill].status == "does not hold"
    part = check(dgr + three("dgr-distill", 92, 94, 96))[Distill].parts[0]
    assert part.text == "Task-IL: DGR+distill − DGR = +3.00 ± 0.58 points [+0.52, +5.48] (3 seeds; paper +0.12)"


def test_a_difference_is_taken_seed_by_seed() -> None:
    dgr = three("dgr", 80, 90, 99)  # seeds differ much more than methods
    assert check(dgr + three("dgr-distill", 80.5, 90.6, 99.7))[Distill].status == "holds"
    other_seeds = cell("task", "dgr-distill", 1, 1, 1, 80.5, 90.6)[3:]
    assert check(dgr + other_seeds)[Distill].parts[0].text == "Task-IL: no runs of both with the same seed"


def test_two_runs_that_happen_to_be_alike_decide_nothing() -> None:
    results = [run for run in paper_like("split", 20) if run.spec.method != "dgr"]
    assert check(results + cell("class", "dgr", 90.05, 90.06))[Well].parts[0].outcome == "open"


def test_the_best_of_the_others_is_what_rtf_is_compared_with() -> None:
    results = [run for run in paper_like("split", 5) if run.spec.scenario == "domain"]
    part = check(results)[Best].parts[1]
    assert part.text.startswith("Domain-IL: RtF − DGR = ")
    xdg = [run for run in paper_like("split", 5) if run.spec.method != "xdg"] + cell("task", "xdg", 99.9, 99.9, 99.9)
    assert check(xdg)[Best].parts[0].text.startswith("Task-IL: RtF − XdG = ")
    without = [run for run in results if run.spec.method not in ("lwf", "si")]
    assert check(without)[Best].parts[1].text == "Domain-IL: no runs of SI, LwF"
    assert check(cell("class", "lwf", 20))[Best].parts[2].text.startswith("Class-IL: no runs of RtF, None, ")


def test_the_words_are_those_of_the_protocol() -> None:
    split, permuted = (check([], protocol)[Only].quote for protocol in ("split", "permuted"))
    assert "above 90%" in split
    assert "above 90%" not in permuted


def test_a_single_run_has_the_published_spread() -> None:
    # published standard deviations in Class-IL: 1.48 and 1.21 points, so that 3.86 points are the interval
    far = check(cell("class", "dgr", 90) + cell("class", "dgr-distill", 93.9))[Distill].parts[2]
    near = check(cell("class", "dgr", 90) + cell("class", "dgr-distill", 93.7))[Distill].parts[2]
    assert (far.outcome, near.outcome) == ("met", "open")
    assert far.text.endswith("[+0.04, +7.76] (one seed; ± from the spread of the published runs; paper +0.60)")
    # of one method against a threshold: 2.09 times 1.48 points
    far, near = (check(cell("class", "dgr", value))[Well].parts[0] for value in (93.2, 93.0))
    assert (far.outcome, near.outcome) == ("met", "open")


def test_two_runs_have_the_published_spread_too_divided_by_the_root_of_two() -> None:
    both = check(cell("class", "dgr", 90, 90) + cell("class", "dgr-distill", 93, 93))
    assert (
        both[Distill]
        .parts[2]
        .text.endswith("[+0.27, +5.73] (2 seeds; ± from the spread of the published runs; paper +0.60)")
    )
    # DGR's 1.48 / √2 = 1.04, and 2.09 times that
    assert "DGR: 90.00 ± 0.00 % [87.82, 92.18] (2 runs; paper 91.24)" in both[Only].parts[0].text


def test_a_negligible_loss_is_below_a_point() -> None:
    base = three("dgr-distill", 95, 95.01, 95.02)
    assert check(base + three("rtf", 94.5, 94.51, 94.52))[Loss].status == "holds"
    assert check(base + three("rtf", 93.5, 93.51, 93.52))[Loss].status == "does not hold"


@pytest.mark.parametrize(
    ("seconds", "faster", "halved"),
    [
        (50, "holds", "holds"),
        (68, "holds", "does not hold"),
        (80, "holds", "does not hold"),
        (120, "does not hold", "does not hold"),
    ],
)
def test_training_times(seconds: float, faster: str, halved: str) -> None:
    checked = check(timed("dgr-distill", 100, 102) + timed("rtf", seconds, 1.03 * seconds))
    assert (checked[Faster].status, checked[Halved].status) == (faster, halved)
    assert (
        checked[Faster]
        .parts[0]
        .text.startswith(f"Task-IL: RtF / DGR+distill = {1.015 * seconds:.0f} s / 101 s = {seconds / 99.51:.2f}, ")
    )
    assert checked[Faster].parts[0].text.endswith(" (2 seeds)")


def test_one_pair_of_times_or_two_that_differ_widely_decide_nothing() -> None:
    one = check(timed("dgr-distill", 100) + timed("rtf", 50))[Halved]
    assert one.status == "too few runs to tell"
    assert one.parts[0].text == "Task-IL: RtF / DGR+distill = 50 s / 100 s = 0.50 (one pair, too few to tell)"
    assert check(timed("dgr-distill", 100, 100) + timed("rtf", 40, 90))[Faster].status == "too few runs to tell"


def test_times_of_runs_that_shared_a_core_or_differ_in_code_or_processor_do_not_count() -> None:
    said = "Task-IL: no pair of runs with the same seed, code and kind of processor that had their cores to themselves"
    dgr, rtf = timed("dgr-distill", 100, 102), timed("rtf", 50, 51)
    shared = [replace(run, cpu_seconds=0.5 * run.train_seconds) for run in rtf]
    other_shared = [replace(run, cpu_seconds=0.5 * run.train_seconds) for run in dgr]
    assert check(other_shared + rtf)[Halved].parts[0].text == said
    other_code = [replace(run, versions={**run.versions, "code": "another"}) for run in rtf]
    other_processor = [replace(run, versions={**run.versions, "processor": "another"}) for run in rtf]
    other_threads = [replace(run, spec=replace(run.spec, threads=2), cpu_seconds=2 * run.train_seconds) for run in rtf]
    for runs in (shared, other_code, other_processor, other_threads):
        claim = check(dgr + runs)[Halved]
        assert (claim.status, claim.parts[0].text) == ("too few runs to tell", said)
    assert check(dgr + rtf)[Halved].status == "holds"


@pytest.mark.parametrize(
    ("seconds", "status"),
    [
        ((200, 204), "holds"),
        ((600, 610), "does not hold"),
        ((120, 122), "does not hold"),
        ((240, 262), "too few runs to tell"),
        ((140, 160), "too few runs to tell"),
    ],
)
def test_about_twice_has_two_limits_for_both_methods(seconds: tuple[float, float], status: str) -> None:
    base = timed("si", 100, 101)
    for one, other in (("dgr", "dgr-distill"), ("dgr-distill", "dgr")):
        assert check(base + timed(one, *seconds) + timed(other, 200, 203))[Twice].status == status


def test_interleaved_times_come_before_those_of_runs(tmp_path: Path) -> None:
    table = compare(timed("dgr-distill", 100, 102) + timed("rtf", 90, 91), "split")
    cells = {f"split/{s}": {"seconds": {"rtf": [5, 6], "dgr-distill": [10, 12]}, "machine": {}} for s in SCENARIO_NAMES}
    assert read_times(tmp_path) == {}
    (tmp_path / TIMES).write_text(json.dumps(cells))
    without, checked = claims(table), claims(table, read_times(tmp_path))
    assert (without[Halved].status, checked[Halved].status) == ("does not hold", "holds")
    said = "Class-IL: RtF / DGR+distill = 6 s / 11 s = 0.50, 0.50 to 0.50 (2 interleaved repeats)"
    assert checked[Halved].parts[2].text == said
    permuted = replace(table, protocol="permuted")
    assert claims(permuted, read_times(tmp_path))[Halved - 2].status == "does not hold"  # those of another protocol


def test_times_of_one_method_alone_do_not_count() -> None:
    table = compare(timed("dgr-distill", 100, 102) + timed("rtf", 90, 91), "split")
    times: Times = {("split", scenario, "rtf"): [5.0, 6.0] for scenario in SCENARIO_NAMES}
    assert claims(table, times) == claims(table)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must be a JSON object such as"),
        ("{", "must be a JSON object such as"),
        ("[" * 100000, "must be a JSON object such as"),
        ('{"split": {"seconds": {"rtf": [1]}}}', "must be a JSON object such as"),
        ('{"split/class": {"seconds": {"rft": [1]}}}', "did you mean"),
        ('{"split/class": {"seconds": {"rtf": 1}}}', "it must be a list"),
        ('{"split/class": {"seconds": {"rtf": [-1]}}}', "seconds = -1: it must be a finite number"),
        ('{"split/class": {"seconds": {"rtf": [1e308]}}}', "it must be a finite number"),
        ('{"split/class": {"seconds": {"rtf": [1, 2], "si": [1]}}}', "equally many times"),
    ],
)
def test_a_file_of_times_that_cannot_be_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / TIMES).write_text(text)
    with pytest.raises(InputError, match=said):
        read_times(tmp_path)


def test_almost_halved_needs_two_scenarios_of_three() -> None:
    base = timed("dgr-distill", 100, 102)
    fast, slow = timed("rtf", 50, 51), timed("rtf", 90, 91)
    by_scenario = {name: [run for run in fast if run.spec.scenario == name] for name in SCENARIO_NAMES}
    assert check(base + by_scenario["task"] + by_scenario["class"])[Halved].status == "holds"
    assert check(base + by_scenario["task"])[Halved].status == "too few runs to tell"
    assert check(base + [run for run in slow if run.spec.scenario != "class"])[Halved].status == "does not hold"


def test_a_difference_that_twenty_runs_do_not_show_is_too_small_to_tell() -> None:
    noise = [0.3 * (-1) ** k for k in range(20)]
    dgr = [run for s in ("task", "domain", "class") for run in cell(s, "dgr", *[90.0] * 20)]
    better = [run for s in ("task", "domain") for run in cell(s, "dgr-distill", *[91.0 + e for e in noise])]
    same = cell("class", "dgr-distill", *[90.0 + e for e in noise])
    claim = check(dgr + better + same)[Distill]
    assert claim.status == "too small to tell"
    assert "[−0.14, +0.14] (20 seeds; paper +0.60), too near to tell" in claim.parts[2].text
    assert check(dgr + better + same[:19])[Distill].status == "too few runs to tell"


def test_a_directory_in_place_of_the_times_is_refused(tmp_path: Path) -> None:
    (tmp_path / TIMES).mkdir()
    with pytest.raises(InputError, match="must be a JSON object such as"):
        read_times(tmp_path)


def test_a_decided_claim_on_one_or_two_seeds_says_so() -> None:
    for values, basis in (([96.0], "fewer than 3 seeds"), ([96.0, 96.1], "fewer than 3 seeds"), ([96.0] * 3, "")):
        claim = check(three("dgr", *[90.0 for _ in values]) + three("dgr-distill", *values))[Distill]
        assert (claim.status, claim.basis) == ("holds", basis)
    assert {claim.basis for claim in check(paper_like("split", 20))} == {""}
    assert check([])[Best].basis == ""


def test_what_is_open_must_have_as_many_runs_as_the_paper_in_every_part() -> None:
    parts = Part("open", "", 20), Part("open", "", 5)
    assert [Claim("split", "", "", "", some, 1).status for some in (parts, parts[:1])] == [
        "too few runs to tell",
        "too small to tell",
    ]
