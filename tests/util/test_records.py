"""Records: those stored before a field existed still load and keep their digest."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from relive._util.errors import InputError
from relive._util.fidelity import AS_RUN, Fidelity
from relive._util.records import LATER, from_json, to_json


@dataclass(frozen=True)
class Old:
    a: int
    b: str = "x"


@dataclass(frozen=True)
class New:
    a: int
    b: str = "x"
    c: float = field(default=0.5, metadata=LATER)
    d: list[int] = field(default_factory=list, metadata=LATER)


def test_a_later_field_is_written_only_when_it_says_something() -> None:
    assert to_json(New(1)) == to_json(Old(1)) == {"a": 1, "b": "x"}
    assert to_json(New(1, c=0.7, d=[3])) == {"a": 1, "b": "x", "c": 0.7, "d": [3]}


def test_what_was_written_is_read() -> None:
    for record in (New(1), New(2, "y", 0.7, [3])):
        assert New(**from_json(New, to_json(record))) == record
    assert New(**from_json(New, to_json(Old(3, "z")))) == New(3, "z")


def test_other_keys_are_refused() -> None:
    with pytest.raises(InputError, match="New lacks b"):
        from_json(New, {"a": 1})
    with pytest.raises(InputError, match="unknown key of New 'e'"):
        from_json(New, {"a": 1, "b": "x", "e": 1})


def test_fidelity_of_before_adam_epsilon_is_the_same_json() -> None:
    assert "adam_epsilon" not in AS_RUN.to_json()
    chosen = AS_RUN.choose({"adam_epsilon": "before_correction"})
    assert Fidelity(**from_json(Fidelity, chosen.to_json())) == chosen
