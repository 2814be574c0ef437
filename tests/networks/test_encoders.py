"""Encoders: the paper's to the bit, convolutions, one's own, frozen ones, and such as behave otherwise in training."""

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
from relive.methods.none import FineTuning
from relive.networks import MLP, Classifier, ClassifierWithVAE, FeedbackClassifier, Sizes, linear, mlp, mlp_of
from relive.networks.catalogue import ENCODERS, EncoderFactory, encoder_factory
from relive.networks.convolution import Conv, conv
from relive.networks.encoders import mode, trainable
from relive.networks.pictures import Picture
from tests import plain

Shape = tuple[int, ...]


class OldEncoder(nn.Module):
    """The paper's encoder as it was when it was the only one."""

    def __init__(self, n_inputs: int, hidden: int, rng: torch.Generator) -> None:
        super().__init__()
        self.layer1 = linear(n_inputs, hidden, rng)
        self.layer2 = linear(hidden, hidden, rng)

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.layer2(self.layer1(x).relu_()).relu_()
        return h


def old(shape: Shape, hidden: int, rng: torch.Generator) -> nn.Module:
    return OldEncoder(math.prod(shape), hidden, rng)


def batch_norm(shape: Shape, hidden: int, rng: torch.Generator) -> nn.Module:
    """A network with buffers that training changes, and with noise in training."""
    return nn.Sequential(
        nn.Linear(math.prod(shape), hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.3), nn.Linear(hidden, 5)
    )


def half_frozen(shape: Shape, hidden: int, rng: torch.Generator) -> nn.Module:
    """A first layer that stays as it is, and a bias that is frozen alone."""
    encoder = MLP(math.prod(shape), (hidden, hidden), rng)
    encoder.layers[0].requires_grad_(False)
    encoder.layers[1].bias.requires_grad_(False)
    return encoder


def learner_of(method: str, encoder: str | EncoderFactory, n_tasks: int = 3, scenario: str = "class") -> Learner:
    tasks = plain.split_tasks()[:n_tasks]
    return Learner(
        make_method(method),
        scenario_of(scenario, [task.classes for task in tasks]),
        16,
        encoder=encoder,
        shape=(4, 4),
        hidden=12,
        latent=5,
        batch_size=8,
        learning_rate=0.01,
    )


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# ---- the catalogue ----------------------------------------------------------------------------------------------


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


# ---- mlp --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "scenario"), [cell for cell in plain.CELLS if cell[0] != "xdg"])
def test_the_paper_s_encoder_is_as_it_was(method: str, scenario: str) -> None:
    """Names, first weights and all bits of training, against a copy of what it was."""
    tasks, states = plain.split_tasks(), []
    for encoder in ("mlp", old):
        learner = learner_of(method, encoder, scenario=scenario)
        for k in (1, 2, 3):
            learner.learn(tasks[:k], 3)
        states.append(learner.state())
    assert same(*states)
    assert any(name.endswith("encoder.layer2.bias") for name in states[0])


def test_first_weights_of_ordinary_layers_do_not_disturb_ours() -> None:
    """The generator goes on as if they had drawn nothing, and so does the global one."""
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
    with pytest.raises(InputError, match=r"hidden layers of one width, and this encoder's have \[5, 10\] units"):
        learner_of("xdg", mlp_of(10, 5), scenario="task")


@pytest.mark.parametrize("encoder", ["conv", batch_norm])
def test_xdg_says_why_it_cannot_gate_others(encoder: str | EncoderFactory) -> None:
    with pytest.raises(InputError, match=r"XdG does not work with the encoder .*: it gates the units of hidden layers"):
        learner_of("xdg", encoder, scenario="task")


# ---- conv -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(8, 8), (28, 28), (7, 10), (1, 1), (9, 6, 3), (5, 5, 1)])
def test_the_convolutional_encoder_and_its_way_back(shape: Shape) -> None:
    encoder = conv(shape, 20, stream(0, "network"))
    x = torch.rand(3, math.prod(shape))
    assert encoder(x).shape == (3, 20)
    assert torch.equal(encoder(x), encoder(x.reshape(3, *shape)))
    assert encoder.make_decoder(6, stream(0, "decoder"))(torch.rand(3, 6)).shape == (3, math.prod(shape))


def test_it_is_two_convolutions() -> None:
    encoder = conv((6, 5, 2), 4, stream(0, "network"))
    x = torch.rand(2, 60, generator=stream(0, "x"))
    picture = torch.stack([x[:, ::2], x[:, 1::2]], dim=1).reshape(2, 2, 6, 5)  # a pixel's colours are side by side
    for layer in (encoder.conv1, encoder.conv2):
        assert layer.bias is not None
        padded = nn.functional.pad(picture, (1, 1, 1, 1))
        height, width = (picture.shape[2] + 1) // 2, (picture.shape[3] + 1) // 2
        out = torch.empty(2, len(layer.weight), height, width)
        for i in range(height):
            for j in range(width):
                patch = padded[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
                out[:, :, i, j] = (patch.unsqueeze(1) * layer.weight).sum((2, 3, 4)) + layer.bias
        picture = out.clamp(min=0)
    expected = (picture.flatten(1) @ encoder.layer.weight.T + encoder.layer.bias).clamp(min=0)
    torch.testing.assert_close(encoder(x), expected)


def test_its_decoder_has_a_pixel_s_colours_side_by_side() -> None:
    decoder = conv((5, 4, 3), 20, stream(0, "network")).make_decoder(6, stream(0, "decoder"))
    for name, p in decoder.named_parameters():
        torch.nn.init.zeros_(p)
        if name == "deconv.bias":
            p.data.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert decoder(torch.rand(2, 6)).tolist() == [[1, 2, 3] * 20] * 2


@pytest.mark.parametrize("shape", [(64,), (2, 2, 4, 4)])
def test_it_needs_pictures(shape: Shape) -> None:
    with pytest.raises(InputError, match="is for pictures, and an input's shape is"):
        conv(shape, 20, stream(0, "network"))


def test_the_seed_decides_its_first_weights() -> None:
    sizes = Sizes(64, 9, 3, 4, shape=(8, 8), encoder=conv)
    a, b, c = (plain.parameters(ClassifierWithVAE(sizes, stream(seed, "network"))) for seed in (3, 3, 4))
    assert same(a, b)
    assert not any(torch.equal(a[name], c[name]) for name in a)
    assert not torch.equal(a["encoder.conv1.weight"], a["vae.encoder.conv1.weight"])


def test_a_generator_uses_the_decoder_that_its_encoder_brings() -> None:
    sizes = Sizes(64, 9, 3, 4, shape=(8, 8), encoder=conv)
    for net in (FeedbackClassifier(sizes, stream(0, "network")), ClassifierWithVAE(sizes, stream(0, "network"))):
        assert any("deconv" in name for name, _ in net.named_parameters())
        assert net.generate(5, stream(0, "noise")).shape == (5, 64)
    own = FeedbackClassifier(Sizes(64, 9, 3, 4, shape=(8, 8), encoder=batch_norm), stream(0, "network"))
    assert "feedback.output.weight" in own.state_dict()


def test_a_decoder_of_another_size() -> None:
    class Wrong(Conv):
        def make_decoder(self, latent: int, rng: torch.Generator) -> nn.Module:
            return nn.Linear(latent, 3)

    sizes = Sizes(64, 9, 3, 4, shape=(8, 8), encoder=lambda shape, hidden, rng: Wrong(Picture(1, 8, 8), hidden))
    with pytest.raises(InputError, match=r"decoder returns \(2, 3\) .* it must return .* \(2, 64\)"):
        FeedbackClassifier(sizes, stream(0, "network"))


# ---- frozen parameters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["none", "ewc", "online-ewc", "si", "lwf", "dgr", "rtf", "offline", "xdg"])
def test_frozen_parameters_stay_frozen(method: str) -> None:
    tasks = plain.split_tasks()
    learner = learner_of(method, half_frozen, n_tasks=1, scenario="task")
    before = plain.parameters(learner.net)
    for k in (1, 2, 3):
        if method != "xdg":  # whose gates belong to a number of tasks
            learner.grow(scenario_of("task", [task.classes for task in tasks[:k]]))
        elif k > 1:
            break
        learner.learn(tasks[:k], 3)
    frozen = {"encoder.layer1.weight", "encoder.layer1.bias", "encoder.layer2.bias"}
    frozen |= {f"vae.{name}" for name in frozen} & before.keys()
    for name, p in learner.net.named_parameters():
        assert torch.equal(p[: len(before[name])], before[name]) == (name in frozen), name
    assert learner.n_parameters < sum(p.numel() for p in learner.net.parameters())
    assert len(learner.optimizer.slots["m"]) == len(trainable(learner.net)) == len(before) - len(frozen)
    again = learner_of(method, half_frozen, n_tasks=1 if method == "xdg" else 3, scenario="task")
    again.load_state(learner.state())
    assert same(again.state(), learner.state())


def test_freezing_is_the_same_as_a_gradient_of_zero() -> None:
    class Zeroed(FineTuning):
        def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
            for i in (0, 1, 3):  # those that half_frozen freezes
                gradient[i].zero_()

    scenario, ends = scenario_of("class", [task.classes for task in plain.split_tasks()]), []
    for method, encoder in ((FineTuning(), half_frozen), (Zeroed(), mlp)):
        learner = Learner(method, scenario, 16, encoder=encoder, hidden=12)
        learner.learn(plain.split_tasks()[:1], 5)
        ends.append(plain.parameters(learner.net))
    assert same(*ends)


# ---- modules that behave otherwise in training ------------------------------------------------------------------


def test_mode() -> None:
    net = nn.Sequential(nn.Dropout())
    with mode(net, training=False):
        assert not net[0].training
    assert net[0].training


@pytest.mark.parametrize("method", [name for name, _ in plain.CELLS if name != "xdg"][::3])
def test_batch_norm_and_dropout(method: str) -> None:
    """Noise in training alone; the bits follow from the seed, whoever looks, goes on from a state, or grows."""
    tasks = plain.split_tasks()
    classes = [task.classes for task in tasks]
    whole, other, grown, resumed = (learner_of(method, batch_norm, n) for n in (3, 3, 1, 3))
    x = tasks[0].test.inputs(slice(None))
    for k in (1, 2, 3):
        torch.manual_seed(k)  # has no say
        whole.learn(tasks[:k], 4)
        torch.manual_seed(99)
        other.learn(tasks[:k], 4, lambda i, loss: bool(whole.predict(x, 0).sum() < 0))  # looking changes nothing
        grown.grow(scenario_of("class", classes[:k]))
        grown.learn(tasks[:k], 4)
        state, resumed = resumed.state(), learner_of(method, batch_norm)
        resumed.load_state(state)
        resumed.learn(tasks[:k], 4)
        assert not whole.net.training
    state = whole.state()
    tracked = {name: int(t) for name, t in state.items() if name.endswith("encoder.1.num_batches_tracked")}
    if "net.encoder.1.num_batches_tracked" in tracked:
        assert set(tracked.values()) == {12}
        assert state["net.encoder.1.running_mean"].any()
    else:  # a network for each of six classes
        assert len(tracked) == 6
        assert set(tracked.values()) <= {3, 4}
    assert same(state, other.state())
    assert same(state, resumed.state())
    assert same(state, grown.state())
    assert torch.equal(whole.predict(x, 0), whole.predict(x, 0))


def test_looking_while_learning_is_in_evaluation_mode() -> None:
    tasks, modes = plain.split_tasks(), list[bool]()

    class Spy(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            modes.append(self.training)
            return super().forward(input)

    learner = learner_of("rtf", lambda shape, hidden, rng: Spy(16, hidden))
    x = tasks[0].test.inputs(slice(None))
    learner.learn(tasks[:1], 1)
    modes.clear()
    learner.learn(tasks[:2], 2, lambda i, loss: bool(learner.predict(x, 0).sum() < 0))
    assert modes == [False, True, False] * 2  # the teacher, the step, the look
    with pytest.raises(ZeroDivisionError):
        learner.learn(tasks, 2, lambda i, loss: bool(1 / 0))
    assert not learner.net.training


def test_dropout_differs_from_step_to_step_and_task_to_task() -> None:
    tasks, seen = plain.split_tasks(), list[Tensor]()

    class Kept(nn.Dropout):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            out = super().forward(torch.ones_like(input))
            if self.training:
                seen.append(out)
            return input * out

    learner = learner_of("none", lambda shape, hidden, rng: nn.Sequential(Kept(0.5), nn.Linear(16, hidden)))
    for k in (1, 2):
        learner.learn(tasks[:k], 3)
    assert len({tuple(mask.flatten().tolist()) for mask in seen}) == len(seen) == 6


# ---- modules with unusual parameters ----------------------------------------------------------------------------


class Unusual(nn.Module):
    """A number as a parameter, two parameters with one gradient, one whose gradient is expanded, and one unused."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.a, self.b = nn.Parameter(torch.zeros(1, 16)), nn.Parameter(torch.ones(1, 16))
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x * self.scale + (self.a + self.b), (self.a + self.b).sum().expand(len(x), 1)], 1)


@pytest.mark.parametrize("method", ["none", "ewc", "si", "rtf"])
def test_unusual_parameters(method: str) -> None:
    tasks = plain.split_tasks()
    learner = learner_of(method, lambda shape, hidden, rng: Unusual(), 1)
    start = plain.parameters(learner.net)
    for k in (1, 2):
        learner.grow(scenario_of("class", [task.classes for task in tasks[:k]]))
        learner.learn(tasks[:k], 3)
    for name, p in learner.net.encoder.named_parameters():
        assert torch.equal(p, start[f"encoder.{name}"]) == name.startswith("unused"), name


def test_a_gradient_can_be_changed_in_place_without_changing_another() -> None:
    class HoldsA(FineTuning):
        def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
            gradient[1].zero_()  # of a, which autograd gives the very tensor of b

    scenario = scenario_of("class", [task.classes for task in plain.split_tasks()])
    learner = Learner(HoldsA(), scenario, 16, encoder=lambda shape, hidden, rng: Unusual())
    learner.learn(plain.split_tasks()[:1], 2)
    encoder = learner.net.encoder
    assert isinstance(encoder, Unusual)
    assert not encoder.a.any()
    assert (encoder.b != 1).all()


# ---- the parts that draw ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [mlp, conv, batch_norm])
def test_more_output_units_change_nothing_else(make: Callable[..., nn.Module]) -> None:
    for kind in (Classifier, FeedbackClassifier, ClassifierWithVAE):
        small, large = (
            kind(Sizes(16, 8, 3, units, shape=(4, 4), encoder=make), fork(stream(0, "a"))).state_dict()
            for units in (4, 9)
        )
        for name, p in small.items():
            assert torch.equal(p, large[name][tuple(map(slice, p.shape))])


BROKEN: dict[str, tuple[Any, str]] = {  # what makes an encoder, and what is said of it
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


def test_batch_normalisation_of_one_row_is_refused_in_words() -> None:
    def normalised(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> nn.Module:
        return nn.Sequential(nn.Linear(16, hidden), nn.BatchNorm1d(hidden))

    tasks = plain.split_tasks()
    scenario = scenario_of("class", [task.classes for task in tasks])
    learner = Learner(make_method("none"), scenario, 16, hidden=5, batch_size=1, encoder=normalised)
    with pytest.raises(InputError, match="batch normalisation needs at least 2 rows in a step, and here is 1"):
        learner.learn(tasks[:1], 1)
