r"""The diagonal of the Fisher information of a classifier, exact, in one batched pass.

The gradient of a sample's log-likelihood with respect to a linear layer's weights is the outer product of g, the
gradient at the layer's output, and a, the layer's input. Its square is the outer product of the squares, so the sum
over samples is one matrix product, :math:`(g^2)^\top (a^2)`: no loop over samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import torch
from torch import Tensor, split
from torch.nn.functional import one_hot

from relive.losses import masked
from relive.networks import Classifier

Labels = Literal["true", "predicted", "expected"]


@torch.no_grad()
def fisher_sum(
    net: Classifier, batches: Iterable[tuple[Tensor, Tensor]], active: Tensor, labels: Labels
) -> dict[str, Tensor]:
    r"""Return :math:`\sum_x (\partial \log p_\theta(Y=y|x) / \partial \theta_i)^2` for every parameter.

    Parameters
    ----------
    net
        The classifier, at the parameters where the information is wanted.
    batches
        Inputs (n, inputs) with their true units (n,), any number of samples at a time.
    active
        (units,) bool, the units that the softmax runs over.
    labels
        Which y: the ``"true"`` one, the most likely one (``"predicted"``), or all of them, each weighted with its
        probability (``"expected"``: the Fisher information itself).
    """
    blocks = net.head.blocks
    layers = {"encoder.layer1": net.encoder.layer1, "encoder.layer2": net.encoder.layer2, "head": net.head}
    total = {name: torch.zeros_like(p) for name, p in net.named_parameters() if name.rsplit(".", 1)[0] in layers}
    for x, unit in batches:
        a1 = net.encoder.layer1(x).relu_()
        a2 = net.encoder.layer2(a1).relu_()
        p = masked(net.head(a2), active).softmax(1)
        for y, share in _label_choices(p, unit, active, labels):
            g3 = p - one_hot(y, p.shape[1]).to(p.dtype)  # (n, units): minus the gradient of log p at the logits
            g2 = (g3 @ net.head.weight) * (a2 > 0)
            g1 = (g2 @ net.encoder.layer2.weight) * (a1 > 0)
            for name, g, a in zip(layers, (g1, g2, g3), (x, a1, a2), strict=True):
                squared, a_squared = g.square() * share.unsqueeze(1), a.square()
                sizes = blocks if name == "head" else [g.shape[1]]
                totals = split(total[f"{name}.weight"], sizes), split(total[f"{name}.bias"], sizes)
                for part, weights, biases in zip(split(squared, sizes, 1), *totals, strict=True):
                    weights += part.T @ a_squared
                    biases += part.sum(0)
    return total


def _label_choices(p: Tensor, unit: Tensor, active: Tensor, labels: Labels) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the labels (n,) to take the gradient for, with the weight (n,) of each sample's."""
    if labels == "expected":
        for c in active.nonzero().flatten():
            yield c.expand(len(p)), p[:, c]
    else:
        yield (unit if labels == "true" else p.argmax(1)), torch.ones(len(p), dtype=p.dtype)
