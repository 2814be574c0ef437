"""Matrix products: MKL's or oneDNN's, they are those of float64 to rounding, and so are all their derivatives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from relive._util.seeds import stream
from relive.networks import Classifier, Linear, Sizes, affine, linear, products
from relive.networks.fisher import fisher_sum

Operands = tuple[Tensor, Tensor, Tensor]


@pytest.fixture(params=[False, True], ids=["MKL", "oneDNN"])
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run a test with either, also on a processor that would use the other, and for products of any size."""
    if request.param:
        onednn_for_all(monkeypatch)
    else:
        monkeypatch.setattr(products, "uses_onednn", lambda: False)
    return bool(request.param)


def onednn_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this PyTorch has no such operation")
    monkeypatch.setattr(products, "uses_onednn", lambda: True)
    monkeypatch.setattr(products, "WORTHWHILE", 0)


def operands(n: int, inputs: int, outputs: int) -> Operands:
    """Return x, W and b in float64, with numbers that float32 holds exactly."""
    rng = stream(0, f"{n} {inputs} {outputs}")
    shapes = (n, inputs), (outputs, inputs), (outputs,)
    x, weight, bias = (torch.randn(shape, generator=rng).double().requires_grad_() for shape in shapes)
    return x, weight, bias


def single(tensors: Operands) -> Operands:
    x, weight, bias = (t.detach().float().requires_grad_() for t in tensors)
    return x, weight, bias


def assert_close(got: Tensor, exact: Tensor) -> None:
    """Float32 has seven digits, and a sum of hundreds of terms may lose one or two of its largest result's."""
    torch.testing.assert_close(got.double(), exact, rtol=0, atol=1e-5 * float(exact.detach().abs().max()))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 784, 400), (128, 400, 10), (256, 784, 400), (37, 100, 200)])
def test_products_and_their_gradients_are_those_of_float64(both: bool, shape: tuple[int, int, int]) -> None:
    exact, given = operands(*shape), single(operands(*shape))
    g = torch.randn(shape[0], shape[2], generator=stream(1, "g"))
    expected, got = nn.functional.linear(*exact), affine(*given)
    assert_close(got, expected)
    of_exact, of_given = torch.autograd.grad(expected, exact, g.double()), torch.autograd.grad(got, given, g)
    for a, b in zip(of_given, of_exact, strict=True):
        assert_close(a, b)


def test_gradients_of_gradients(both: bool) -> None:
    def second(tensors: Operands, product: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        first = torch.autograd.grad(product(*tensors).pow(3).sum(), tensors, create_graph=True)
        return torch.autograd.grad(torch.stack([t.square().sum() for t in first]).sum(), tensors)

    of_exact = second(operands(5, 7, 3), nn.functional.linear)
    for a, b in zip(second(single(operands(5, 7, 3)), affine), of_exact, strict=True):
        assert_close(a, b)


def test_any_layout_in_memory(both: bool) -> None:
    x, weight, bias = operands(50, 30, 20)
    expected = nn.functional.linear(x, weight, bias)
    layouts: dict[str, Callable[[Tensor], Tensor]] = {
        "by columns": lambda t: t.T.contiguous().T,
        "every other": lambda t: t.repeat_interleave(2, 1)[:, ::2],
        "off": lambda t: torch.cat([t[:1], t])[1:],
        "part of wider rows": lambda t: torch.cat([t, t], 1)[:, : t.shape[1]],
    }
    for change in layouts.values():
        assert_close(affine(change(x.float()), change(weight.float()), bias.float()), expected)
    assert_close(affine(x.float(), weight.float(), bias.float().repeat_interleave(2)[::2]), expected)
    assert_close(affine(x.float(), weight.float(), bias.float()[:1].expand(20)), expected - bias + bias[0])
    assert_close(affine(x.float(), weight.float(), bias.float().unsqueeze(0)), expected)


def test_rows_that_overlap_have_gradients(both: bool) -> None:
    x, weight = torch.randn(40).unfold(0, 8, 1), torch.randn(5, 8, requires_grad=True)
    got = torch.autograd.grad(affine(x, weight).square().sum(), weight)
    torch.testing.assert_close(got, torch.autograd.grad((x.clone() @ weight.T).square().sum(), weight))


def test_what_the_gradient_does_not_need_may_change_before_it_is_taken(both: bool) -> None:
    x, weight, bias = torch.rand(6, 5), torch.rand(4, 5, requires_grad=True), torch.rand(4)
    loss = affine(x, weight, bias).sum()
    with torch.no_grad():
        weight.add_(1)
    assert torch.autograd.grad(loss, weight)[0].shape == (4, 5)
    x.requires_grad_()
    h = x * 1
    loss = affine(h, weight.detach(), bias).sum()
    h.zero_()
    assert torch.autograd.grad(loss, x)[0].shape == (6, 5)


def test_no_rows_more_dimensions_and_float64_are_pytorchs(both: bool) -> None:
    x, weight, bias = single(operands(6, 5, 4))
    assert affine(x[:0], weight, bias).shape == (0, 4)
    assert torch.equal(affine(x.view(2, 3, 5), weight, bias), nn.functional.linear(x.view(2, 3, 5), weight, bias))
    cube = torch.rand(6, 5, 5)  # its second size is the number of inputs too
    assert torch.equal(affine(cube, weight, bias), nn.functional.linear(cube, weight, bias))
    exact = operands(6, 5, 4)
    assert torch.equal(affine(*exact), nn.functional.linear(*exact))


def test_operands_that_do_not_fit_get_pytorchs_message(both: bool) -> None:
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        affine(torch.ones(3, 5), torch.ones(4, 6))


def test_autocast_decides_the_type(both: bool) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert affine(torch.ones(3, 5), torch.ones(4, 5)).dtype == torch.bfloat16


def test_the_gradient_of_each_sample_by_vmap(both: bool) -> None:
    layer, x = linear(5, 4, stream(0, "network")), torch.randn(6, 5, generator=stream(0, "x"))

    def loss(parameters: dict[str, Tensor], row: Tensor) -> Tensor:
        outputs: Tensor = torch.func.functional_call(layer, parameters, (row.unsqueeze(0),))
        return outputs.square().sum()

    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    of_samples = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    for i, row in enumerate(x):
        alone = torch.autograd.grad(layer(row.unsqueeze(0)).square().sum(), layer.weight)[0]
        torch.testing.assert_close(of_samples["weight"][i], alone)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # PyTorch's own, of TorchScript
def test_forward_mode_and_tracing_are_pytorchs(both: bool) -> None:
    layer, x = Linear(5, 4).requires_grad_(False), torch.rand(6, 5)
    with forward_ad.dual_level():
        dual: Tensor = layer(forward_ad.make_dual(x, torch.ones_like(x)))  # type: ignore[no-untyped-call]
        tangent = forward_ad.unpack_dual(dual).tangent  # type: ignore[no-untyped-call]
    torch.testing.assert_close(tangent, layer.weight.sum(1).expand(6, 4))
    traced = torch.jit.trace(layer, x)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(traced(x), layer(x))


def test_only_what_is_asked_for_is_derived(both: bool) -> None:
    layer = Linear(5, 4).requires_grad_(False)
    x = torch.randn(6, 5, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None
    assert not layer(x.detach()).requires_grad


@pytest.mark.parametrize(
    ("processor", "capability", "expected"),
    [
        ("AMD EPYC (family 26, model 2)", "AVX512", True),
        ("AMD EPYC (family 26, model 2)", "AVX2", False),  # turned off
        ("AMD EPYC (family 25, model 17)", "AVX512", False),  # units half as wide
        ("AMD EPYC (family 23, model 49)", "AVX2", False),  # no AVX-512: MKL is as fast
        ("Intel(R) Xeon(R) Processor (family 6, model 207)", "AVX512", False),  # MKL uses AVX-512 itself
        ("aarch64", "DEFAULT", False),
    ],
)
def test_the_rule(processor: str, capability: str, expected: bool) -> None:
    with (
        patch.object(products, "processor", lambda: processor),
        patch.object(torch.backends.cpu, "get_cpu_capability", lambda: capability),
    ):
        assert products.uses_onednn.__wrapped__() is expected


def test_it_can_be_turned_off() -> None:
    code = (
        "from relive.networks import products; products.processor = lambda: 'AMD (family 26, model 2)'; "
        "print(products.uses_onednn())"
    )
    environment = os.environ | {"ATEN_CPU_CAPABILITY": "avx2"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_small_products_are_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    onednn_for_all(monkeypatch)
    monkeypatch.setattr(products, "WORTHWHILE", 6 * 5 * 4)
    layer = Linear(5, 4)
    assert "mkldnn::_linear_pointwise" in operations(lambda: layer(torch.rand(6, 5)))
    assert "mkldnn::_linear_pointwise" not in operations(lambda: layer(torch.rand(5, 5)))


def test_which_products_are_worth_while() -> None:
    assert products._suits_onednn(torch.empty(128, 784), torch.empty(400, 784), None)
    assert not products._suits_onednn(torch.empty(128, 400), torch.empty(10, 400), None)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_only_dense_matrices_on_the_cpu_suit_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "WORTHWHILE", 0)
    x, weight = torch.rand(6, 5), torch.rand(5, 5)
    assert products._suits_onednn(x, weight, None)
    assert not products._suits_onednn(x.to("meta"), weight.to("meta"), None)
    assert not products._suits_onednn(x, weight[0], None)
    assert not products._suits_onednn(x, weight.to_sparse_csr(), None)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert not products._suits_onednn(x, weight, None)


def test_what_compiles_sees_pytorchs_own_product(monkeypatch: pytest.MonkeyPatch) -> None:
    onednn_for_all(monkeypatch)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    layer = Linear(5, 4)
    assert "mkldnn::_linear_pointwise" not in operations(lambda: layer(torch.rand(6, 5)))


def test_a_pytorch_without_the_operation_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "processor", lambda: "AMD EPYC (family 26, model 2)")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())
    assert not products.uses_onednn.__wrapped__()


def test_the_fisher_information_takes_no_gradient_that_it_does_not_need(monkeypatch: pytest.MonkeyPatch) -> None:
    onednn_for_all(monkeypatch)
    net = Classifier(Sizes(inputs=7, hidden=9, latent=2, units=3), stream(0, "network"))
    x, y, active = torch.rand(5, 7), torch.zeros(5, dtype=torch.long), torch.ones(3, dtype=torch.bool)
    names = operations(lambda: fisher_sum(net, [(x, y)], active, "true"))
    # two layers forward; the gradient at the first's output; a sum of squares for each
    assert names.count("mkldnn::_linear_pointwise") == 5
    assert all(p.requires_grad for p in net.parameters())
    next(net.encoder.children()).requires_grad_(False)
    names = operations(lambda: fisher_sum(net, [(x, y)], active, "true"))
    assert names.count("mkldnn::_linear_pointwise") == 3  # forward, and the second layer's sum


def operations(work: Callable[[], object]) -> list[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiled:
        work()
    return [event.name for event in profiled.events()]


def test_onednn_is_really_used(monkeypatch: pytest.MonkeyPatch) -> None:
    onednn_for_all(monkeypatch)
    layer = linear(5, 4, stream(0, "network"))
    names = operations(lambda: layer(torch.rand(6, 5, requires_grad=True)).square().sum().backward())
    assert names.count("mkldnn::_linear_pointwise") == 3  # forward, and a gradient each of inputs and weights
    assert not {"aten::addmm", "aten::mm"} & set(names)
