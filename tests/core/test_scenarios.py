"""Which units exist, are active, and are the target: properties over all ways to assign classes to tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relive._util.errors import InputError
from relive.core.scenarios import SCENARIOS, ClassIL, DomainIL, Scenario, TaskIL, scenario_of
from relive.networks.blocks import block_sizes

Classes = list[tuple[int, ...]]


@st.composite
def disjoint_classes(draw: st.DrawFn) -> Classes:
    """Tasks of any sizes; every class in one task, in any order."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=7))
    ids = draw(st.permutations(range(sum(sizes))))
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return [tuple(ids[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def active(scenario: Scenario, task: int, seen: int) -> set[int]:
    mask = scenario.active(task, seen)
    assert mask.shape == (scenario.width,)
    return {unit for unit, on in enumerate(mask.tolist()) if on}


@given(disjoint_classes())
def test_every_scenario(classes: Classes) -> None:
    for name in SCENARIOS:
        scenario = scenario_of(name, classes)
        for seen in range(1, len(classes) + 1):
            for task in range(seen):
                units = scenario.units(task).tolist()
                assert len(set(units)) == len(units) == len(classes[task])  # one unit per class of the task
                assert set(units) <= active(scenario, task, seen)  # the target is always active
            flat = [task for group in scenario.groups(seen) for task in group]
            assert sorted(flat) == list(range(seen))  # every task in one group
            for group in scenario.groups(seen):  # whose members compete for the same units
                assert len({frozenset(active(scenario, task, seen)) for task in group}) == 1


@given(disjoint_classes())
def test_task_il_has_disjoint_heads(classes: Classes) -> None:
    scenario = TaskIL(classes)
    n = len(classes)
    assert scenario.n_units == sum(map(len, classes))
    heads = [active(scenario, task, seen=n) for task in range(n)]
    assert [len(head) for head in heads] == [len(ids) for ids in classes]
    assert set().union(*heads) == set(range(scenario.n_units))
    assert sum(map(len, heads)) == scenario.n_units
    for task in range(n):
        assert set(scenario.units(task).tolist()) == heads[task]
        assert heads[task] == active(scenario, task, seen=1)  # however many tasks have been learned
    assert scenario.groups(n) == [[task] for task in range(n)]


@given(disjoint_classes())
def test_domain_il_answers_with_all_units_met(classes: Classes) -> None:
    scenario = DomainIL(classes)
    n = len(classes)
    assert scenario.n_units == max(map(len, classes))
    for task in range(n):
        assert scenario.units(task).tolist() == list(range(len(classes[task])))
        for seen in range(1, n + 1):
            assert active(scenario, task, seen) == set(range(max(map(len, classes[:seen]))))
    assert scenario.groups(n) == [list(range(n))]


@given(disjoint_classes())
def test_class_il_grows_with_every_task(classes: Classes) -> None:
    scenario = ClassIL(classes)
    n = len(classes)
    assert scenario.n_units == sum(map(len, classes))
    unit_of = {c: u for t, ids in enumerate(classes) for c, u in zip(ids, scenario.units(t).tolist(), strict=True)}
    assert sorted(unit_of.values()) == list(range(scenario.n_units))  # one unit per class
    before: set[int] = set()
    for seen in range(1, n + 1):
        now = active(scenario, 0, seen)
        assert all(active(scenario, task, seen) == now for task in range(n))  # the same for every task
        assert now - before == set(scenario.units(seen - 1).tolist())
        assert before <= now
        before = now
    assert before == set(range(scenario.n_units))
    assert scenario.groups(n) == [list(range(n))]


@given(disjoint_classes())
def test_class_il_adds_new_units_at_the_end(classes: Classes) -> None:
    """So that zeros for the new classes are appended, and an earlier network's units keep their places."""
    scenario = ClassIL(classes)
    units = [unit for task in range(len(classes)) for unit in scenario.units(task).tolist()]
    assert units == list(range(scenario.n_units))


def test_a_class_that_comes_again_keeps_its_unit_in_class_il() -> None:
    classes = [(7, 3), (3, 9)]
    assert ClassIL(classes).n_units == 3
    assert ClassIL(classes).units(1).tolist() == [1, 2]
    assert TaskIL(classes).n_units == 4


def test_the_paper_s_output_layers() -> None:
    split = [(2 * k, 2 * k + 1) for k in range(5)]
    permuted = [tuple(range(10 * k, 10 * k + 10)) for k in range(10)]
    assert {name: scenario_of(name, split).n_units for name in SCENARIOS} == {"task": 10, "domain": 2, "class": 10}
    assert {name: scenario_of(name, permuted).n_units for name in SCENARIOS} == {
        "task": 100,
        "domain": 10,
        "class": 100,
    }


def test_names() -> None:
    assert {name: kind.title for name, kind in SCENARIOS.items()} == {
        "task": "Task-IL",
        "domain": "Domain-IL",
        "class": "Class-IL",
    }
    with pytest.raises(InputError, match="did you mean 'domain'"):
        scenario_of("domian", [(0, 1)])


@given(disjoint_classes())
def test_width_is_full_blocks(classes: Classes) -> None:
    for name in SCENARIOS:
        scenario = scenario_of(name, classes)
        blocks = block_sizes(scenario.width)
        assert sum(blocks) == scenario.width >= scenario.n_units
        assert sum(blocks[:-1]) < scenario.n_units, "no block is idle"
