"""The architecture pictures match the code."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter

import pytest
from benchmarks.docsite.architecture import PURPOSE, ROOT, STEPS, imports, layers


def test_every_package_has_a_purpose_and_a_layer() -> None:
    there = {path.parent.name for path in (ROOT / "src/relive").glob("*/__init__.py")}
    assert {name for names in layers() for name in names} == set(PURPOSE) == there


def test_a_package_imports_from_those_below_it_only() -> None:
    order = layers()
    for k, names in enumerate(order):
        for name in names:
            assert imports(name) <= {below for under in order[k + 1 :] for below in under}, name


@pytest.mark.parametrize("address", [step[0] for step in STEPS])
def test_every_place_on_the_path_of_a_batch_is_there(address: str) -> None:
    module, _, name = address.partition(":")
    attrgetter(name)(import_module(module))
