"""Training rows: one forward pass over all of them against one per head, and inputs shared by several heads."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from relive._util.seeds import stream
from relive.core.batch import Batch, concat, hard_rows

INPUTS, UNITS = 3, 6


def random(*shape: int, name: str) -> Tensor:
    return torch.rand(*shape, generator=stream(0, name))


def head(k: int) -> Tensor:
    """The units of head k of three, two units each."""
    return torch.arange(UNITS).div(2, rounding_mode="floor") == k


def rows(k: int, n: int) -> Batch:
    unit = 2 * k + torch.randint(2, (n,), generator=stream(k, "unit"))
    return hard_rows(random(n, INPUTS, name=f"x{k}"), unit, head(k), torch.full((n,), k))


def soft_rows(x: Tensor, k: int, n: int, source: Tensor | None = None) -> Batch:
    """Rows with targets of any kind, at temperature 2."""
    target = torch.zeros(n, UNITS)
    target[:, head(k)] = random(n, 2, name=f"target{k}").softmax(1)
    weight, scale = random(n, name=f"weight{k}"), 1 + random(n, name=f"scale{k}")
    active = head(k).expand(n, UNITS)
    return Batch(x, target, active, weight, torch.full((n,), 2.0), scale, torch.full((len(x),), k), source)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.floats(0.1, 1))
def test_weights_sum_to_the_share(sizes: list[int], share: float) -> None:
    parts = [rows(k, n) for k, n in enumerate(sizes)]
    for part, n in zip(parts, sizes, strict=True):
        assert len(part) == n
        assert part.weight.tolist() == pytest.approx([1 / n] * n)
        assert part.times(share).weight.sum().item() == pytest.approx(share)
        assert part.weight.tolist() == pytest.approx([1 / n] * n)  # times() does not change the rows in place
    groups = concat([part.times(share / len(parts)) for part in parts])
    assert len(groups) == sum(sizes)
    assert groups.weight.sum().item() == pytest.approx(share)


def test_hard_rows() -> None:
    unit = torch.tensor([1, 0, 1])
    batch = hard_rows(torch.rand(3, INPUTS), unit, head(0), torch.zeros(3))
    assert batch.target.tolist() == [[0, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]
    assert batch.active.tolist() == [[True, True, False, False, False, False]] * 3
    assert batch.temperature.tolist() == batch.scale.tolist() == [1, 1, 1]
    assert batch.source is None


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_one_pass_is_one_pass_per_head(sizes: list[int]) -> None:
    parts = [rows(k, n) for k, n in enumerate(sizes)]
    batch = concat([part.times(1 / len(parts)) for part in parts])
    W = random(UNITS, INPUTS, name="W").requires_grad_()
    loss = batch.classification_loss(batch.x @ W.T)
    separate = torch.stack(
        [
            F.cross_entropy((part.x @ W.T)[:, 2 * k : 2 * k + 2], part.target.argmax(1) - 2 * k)
            for k, part in enumerate(parts)
        ]
    ).mean()
    torch.testing.assert_close(loss, separate)
    ours, theirs = torch.autograd.grad(loss, W)[0], torch.autograd.grad(separate, W)[0]
    torch.testing.assert_close(ours, theirs)


def test_the_loss_of_soft_rows() -> None:
    batch = soft_rows(random(4, INPUTS, name="x"), k=1, n=4)
    logits = random(4, UNITS, name="logits")
    expected = 0.0
    for i in range(4):
        log_p = F.log_softmax(logits[i, 2:4] / 2, 0)
        expected -= float(batch.weight[i] * batch.scale[i] * (batch.target[i, 2:4] * log_p).sum())
    assert batch.classification_loss(logits).item() == pytest.approx(expected, rel=1e-5)


def test_shared_inputs_are_the_same_as_repeated_ones() -> None:
    """LwF: three heads share the same four inputs."""
    x, W = random(4, INPUTS, name="x"), random(UNITS, INPUTS, name="W").requires_grad_()
    current = hard_rows(x, torch.tensor([4, 5, 5, 4]), head(2), torch.full((4,), 2))
    source = torch.arange(4)
    shared = concat([current, *[soft_rows(x, k, 4, source) for k in range(2)]])
    repeated = concat([current, *[soft_rows(x.clone(), k, 4) for k in range(2)]])
    assert shared.x is x
    assert len(repeated.x) == len(repeated) == len(shared) == 12
    assert repeated.source is None
    assert shared.task.tolist() == [2] * 4
    losses = [batch.classification_loss(batch.x @ W.T) for batch in (shared, repeated)]
    torch.testing.assert_close(losses[0], losses[1])
    gradients = [torch.autograd.grad(loss, W)[0] for loss in losses]
    torch.testing.assert_close(gradients[0], gradients[1])


def test_a_source_in_another_order() -> None:
    x = random(3, INPUTS, name="x")
    source = torch.tensor([2, 0, 0, 1])
    batch = soft_rows(x, 0, 4, source)
    explicit = soft_rows(x[source], 0, 4)
    logits = random(3, UNITS, name="logits")
    torch.testing.assert_close(batch.classification_loss(logits), explicit.classification_loss(logits[source]))


def test_concat_keeps_every_field_in_order() -> None:
    parts = [soft_rows(random(n, INPUTS, name=f"x{n}"), k, n) for k, n in enumerate((2, 3))]
    both = concat(parts)
    for field in ("x", "target", "active", "weight", "temperature", "scale", "task"):
        assert torch.equal(getattr(both, field), torch.cat([getattr(part, field) for part in parts])), field
    assert concat(parts[:1]) is parts[0]


def test_rows_that_share_inputs_do_not_mix_with_others() -> None:
    x = random(3, INPUTS, name="x")
    shared = soft_rows(x, 0, 3, torch.arange(3))
    with pytest.raises(ValueError, match="share inputs"):
        concat([rows(1, 3), shared])
