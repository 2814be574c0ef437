"""Encoders: the paper's, bit-identical; those of the catalogue; user-defined ones, and errors in them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from relive._util.errors import InputError
from relive._util.registry import is_address
from relive._util.seeds import drawing_from, fork, stream
from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.methods import make_method
from relive.networks import Classifier, ClassifierWithVAE, FeedbackClassifier, Sizes, linear, mlp, mlp_of
from relive.networks.catalogue import ENCODERS, EncoderFactory, encoder_factory
from relive.networks.convolution import conv
from tests import plain
from tests.networks.learners import Shape, batch_norm, learner_of, same


class OldEncoder(nn.Module):
    """The paper's encoder as it was before there were others."""

    def __init__(self, n_inputs: int, hidden: int, rng: torch.Generator) -> None:
        super().__init__()
        self.layer1 = linear(n_inputs, hidden, rng)
        self.layer2 = linear(hidden, hidden, rng)

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.layer2(self.layer1(x).relu_()).relu_()
        return h


def old(shape: Shape, hidden: int, rng: torch.Generator) -> nn.Module:
    return OldEncoder(math.prod(shape), hidden, rng)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_name_makes_an_encoder(name: str) -> None:
    ENCODERS.check(name)
    assert ENCODERS[name].title
    net = Classifier(Sizes(30, 11, 2, 4, shape=(5, 6), encoder=encoder_factory(name)), stream(0, "network"))
    assert net(torch.rand(3, 30)).shape == (3, 4)
    assert net.n_features == (30 if name == "inputs" else 11)


def test_a_name_that_is_near() -> None:
    with pytest.raises(InputError, match="unknown encoder 'conf': did you mean 'conv'"):
        ENCODERS.check("conf")
    with pytest.raises(InputError, match="unknown encoder 'conf'"):
        encoder_factory("conf")


def test_what_is_no_encoder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("number = 3\n")
    address = f"{tmp_path / 'mine.py'}:number"
    assert is_address(address)
    for found in (ENCODERS.check, encoder_factory):
        with pytest.raises(InputError, match=r"must be one of mlp, conv, .*, an address such as my_file.py:make"):
            found(address)
    with pytest.raises(InputError, match="has no 'other'"):
        ENCODERS.check(f"{tmp_path / 'mine.py'}:other")
    with pytest.raises(InputError, match="there is no file"):
        ENCODERS.check(f"{tmp_path / 'none.py'}:make")


def _no_module(shape: Shape, hidden: int, rng: torch.Generator) -> nn.Module:
    return 3  # type: ignore[return-value]


def _pictures(shape: Shape, hidden: int, rng: torch.Generator) -> nn.Module:
    return nn.Unflatten(1, shape)


@pytest.mark.parametrize(
    ("make", "message"),
    [(_no_module, "must return a torch.nn.Module"), (_pictures, r"returns \(2, 4, 4\) for inputs of shape \(2, 16\)")],
)
def test_what_does_not_give_features(make: EncoderFactory, message: str) -> None:
    with pytest.raises(InputError, match=message):
        learner_of("none", make)


def test_a_shape_of_another_size() -> None:
    with pytest.raises(InputError, match=r"shape = \(4, 5\): an input of this shape has 20 numbers, not 16"):
        Learner(make_method("none"), scenario_of("class", [(0, 1)]), 16, shape=(4, 5))


@pytest.mark.parametrize(("method", "scenario"), [cell for cell in plain.CELLS if cell[0] != "xdg"])
def test_the_paper_s_encoder_is_as_it_was(method: str, scenario: str) -> None:
    """Names, initial weights and all bits of training, against a copy of the former code."""
    tasks, states = plain.split_tasks(), []
    for encoder in ("mlp", old):
        learner = learner_of(method, encoder, scenario=scenario)
        for k in (1, 2, 3):
            learner.learn(tasks[:k], 3)
        states.append(learner.state())
    assert same(*states)
    assert any(name.endswith("encoder.layer2.bias") for name in states[0])


def test_first_weights_of_ordinary_layers_do_not_disturb_ours() -> None:
    """The generator continues as if they had drawn nothing, and so does the global one."""
    rng, other = stream(0, "a"), stream(0, "a")
    before = torch.get_rng_state()
    with drawing_from(rng):
        torch.rand(5)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(torch.rand(3, generator=rng), torch.rand(3, generator=other))


def test_any_number_and_width_of_layers() -> None:
    net = Classifier(Sizes(7, 99, 2, 4, encoder=mlp_of(5, 3, 6)), stream(0, "network"))
    theta = plain.parameters(net)
    h = x = torch.rand(4, 7)
    for i in (1, 2, 3):
        h = (h @ theta[f"encoder.layer{i}.weight"].T + theta[f"encoder.layer{i}.bias"]).clamp(min=0)
    torch.testing.assert_close(net(x), h @ theta["head.weight"].T + theta["head.bias"])
    assert net.n_features == 6


def test_xdg_gates_any_number_of_layers_of_one_width() -> None:
    tasks = plain.split_tasks()
    learner = learner_of("xdg", mlp_of(10, 10, 10), scenario="task")
    learner.learn(tasks[:1], 2)
    assert learner.method.state()["gates"].shape == (3, 3, 10)
    with pytest.raises(InputError, match=r"hidden layers of equal width, but this encoder's have \[5, 10\] units"):
        learner_of("xdg", mlp_of(10, 5), scenario="task")


@pytest.mark.parametrize("encoder", ["conv", batch_norm])
def test_xdg_says_why_it_cannot_gate_others(encoder: str | EncoderFactory) -> None:
    with pytest.raises(InputError, match=r"XdG does not support the encoder .*: it gates the units of hidden layers"):
        learner_of("xdg", encoder, scenario="task")


@pytest.mark.parametrize("make", [mlp, conv, batch_norm])
def test_more_output_units_change_nothing_else(make: Callable[..., nn.Module]) -> None:
    for kind in (Classifier, FeedbackClassifier, ClassifierWithVAE):
        small, large = (
            kind(Sizes(16, 8, 3, units, shape=(4, 4), encoder=make), fork(stream(0, "a"))).state_dict()
            for units in (4, 9)
        )
        for name, p in small.items():
            assert torch.equal(p, large[name][tuple(map(slice, p.shape))])


BROKEN: dict[str, tuple[Any, str]] = {  # a function that makes an encoder, and the error message
    "flat": (
        lambda shape, hidden, rng: nn.Conv2d(1, 2, 3),
        r"RuntimeError: .*; it is given rows \(n, 64\): reshape them",
    ),
    "two": (lambda shape, hidden: nn.Linear(64, 3), r"TypeError: .*; it is called with \(shape, hidden, rng\)"),
    "raises": (
        lambda shape, hidden, rng: [][0],
        r"encoder test_encoders.py:<lambda>: IndexError: list index out of range",
    ),
    "pair": (
        lambda shape, hidden, rng: nn.LSTM(64, 3),
        r"the encoder returns tuple: it must return a tensor \(n, feat",
    ),
    "module": (nn.Linear(64, 3), r"encoder is a module, Linear: give the function \(shape, hidden, rng\) that returns"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_with_an_encoder_of_one_s_own_is_said_in_one_line(name: str) -> None:
    encoder, message = BROKEN[name]
    with pytest.raises(InputError, match=message):
        Learner(make_method("none"), scenario_of("class", [(0, 1)]), 64, shape=(8, 8), encoder=encoder)


def test_an_encoder_that_was_given_no_shape_is_told_of_it() -> None:
    def of_pictures(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> nn.Module:
        return nn.Linear(shape[0] * shape[1], hidden)

    with pytest.raises(
        InputError, match=r"An input's shape is \(64,\): if it is a picture, say so with shape=\(28, 28"
    ):
        Learner(make_method("none"), scenario_of("class", [(0, 1)]), 64, encoder=of_pictures)
