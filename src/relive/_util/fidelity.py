"""Where the paper's text and its 2018 code differ: one named choice each, and the two consistent sets of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from relive._util.errors import InputError, unknown
from relive._util.records import LATER, to_json


@dataclass(frozen=True)
class Fidelity:
    """The choices that change results; the defaults are what the 2018 code did (``AS_RUN``).

    Attributes
    ----------
    generative_loss
        ``"per_pixel"`` divides the VAE's loss (reconstruction and latent term) by the number of pixels, as the
        code did; ``"summed"`` sums over pixels and latents, as printed. It moves the balance between generating
        and classifying by a factor of 784 (split) or 1024 (permuted).
    distillation_loss
        T² times the ``"mean"`` over the active classes (code) or the ``"sum"`` over them (paper).
    fisher_labels
        Labels of EWC's Fisher information: the model's own ``"predicted"`` ones (code), the ``"true"`` ones
        (paper), or the exact expectation over the model's own distribution (``"expected"``, in neither).
    fisher_divisor
        The Fisher sum over N samples is divided by ``"n_minus_1"`` (code) or ``"n"`` (paper).
    online_ewc
        ``"half_gamma_twice"``: ½ as in EWC and γ once more inside the penalty (code);
        ``"no_half_gamma_once"``: no ½, γ on accumulation only (paper).
    xdg_gate
        ``"before_bias"``: the gate multiplies xWᵀ, so a gated unit emits ReLU(bias) (code);
        ``"activation"``: a gated unit emits 0 (paper).
    class_order
        Split protocol: ``"shuffled_unless_seed_0"`` (code), the same ``"shuffled_by_numpy"``, so that a seed gives
        the digits of each task that it gives in the code, or always ``"in_order"`` (figure 1).
    permutations
        Permuted protocol: task 1 is unpermuted ``"first_unpermuted_if_seed_0"`` (code) or always,
        ``"first_unpermuted"`` (figure 6). For a fully connected network it only affects the last bits and the
        draw of its weights: permuting pixels and weights together gives the same losses.
    adam_epsilon
        Adam's ε is added ``"after_correction"`` of the bias (Kingma & Ba, and PyTorch today) or
        ``"before_correction"`` (PyTorch in 2018, hence what the code did).
        Today's is the default of both sets of choices.
    """

    generative_loss: Literal["per_pixel", "summed"] = "per_pixel"
    distillation_loss: Literal["mean", "sum"] = "mean"
    fisher_labels: Literal["predicted", "true", "expected"] = "predicted"
    fisher_divisor: Literal["n_minus_1", "n"] = "n_minus_1"
    online_ewc: Literal["half_gamma_twice", "no_half_gamma_once"] = "half_gamma_twice"
    xdg_gate: Literal["before_bias", "activation"] = "before_bias"
    class_order: Literal["shuffled_unless_seed_0", "shuffled_by_numpy", "in_order"] = "shuffled_unless_seed_0"
    permutations: Literal["first_unpermuted_if_seed_0", "first_unpermuted"] = "first_unpermuted_if_seed_0"
    adam_epsilon: Literal["after_correction", "before_correction"] = field(default="after_correction", metadata=LATER)

    def __post_init__(self) -> None:
        for name, options in CHOICES.items():
            value = getattr(self, name)
            if value not in options:
                raise InputError(f"fidelity choice {name} = {value!r}: choose one of {', '.join(options)}")

    def choose(self, choices: Mapping[str, str]) -> Fidelity:
        """Return a copy with some choices changed by name.

        >>> AS_RUN.choose({"fisher_labels": "true"}).fisher_labels
        'true'
        """
        for name in choices:
            if name not in CHOICES:
                raise unknown("fidelity choice", name, CHOICES)
        return replace(self, **dict[str, Any](choices))

    def to_json(self) -> dict[str, str]:
        """Return the choices by name, without those added later that are at their default."""
        return to_json(self)


CHOICES: dict[str, tuple[str, ...]] = {
    field.name: get_args(get_type_hints(Fidelity)[field.name]) for field in fields(Fidelity)
}
AS_RUN = Fidelity()
AS_WRITTEN = Fidelity(
    generative_loss="summed",
    distillation_loss="sum",
    fisher_labels="true",
    fisher_divisor="n",
    online_ewc="no_half_gamma_once",
    xdg_gate="activation",
    class_order="in_order",
    permutations="first_unpermuted",
)
FIDELITIES: dict[str, Fidelity] = {"as_run": AS_RUN, "as_written": AS_WRITTEN}


def fidelity_of(name: str) -> Fidelity:
    """Return the set of choices with that name.

    >>> fidelity_of("as_written") is AS_WRITTEN
    True
    """
    if name not in FIDELITIES:
        raise InputError(f"fidelity = {name!r}: choose one of {', '.join(FIDELITIES)}")
    return FIDELITIES[name]


def name_of(fidelity: Fidelity) -> str:
    """Return a short name for a set of choices: its preset and any deviations.

    >>> name_of(AS_WRITTEN), name_of(AS_RUN.choose({"xdg_gate": "activation"}))
    ('as_written', 'as_run,xdg_gate=activation')
    """

    def departures(preset: str) -> list[str]:
        base = FIDELITIES[preset]
        chosen = {name: getattr(fidelity, name) for name in CHOICES}
        return [f"{name}={value}" for name, value in chosen.items() if value != getattr(base, name)]

    nearest = min(FIDELITIES, key=lambda preset: len(departures(preset)))
    return ",".join([nearest, *departures(nearest)])
