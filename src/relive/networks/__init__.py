"""The networks: an encoder, a head that grows, and for generative methods a decoder back to the input.

Names are imported on first use: ``relive.networks.catalogue`` can be read without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relive.networks.conditional import ConditionalClassifier, mixture_latent
    from relive.networks.encoders import MLP, Sizes, linear, mlp, mlp_of, trainable
    from relive.networks.feedback import Feedback, latent
    from relive.networks.head import Head, masked
    from relive.networks.models import (
        VAE,
        Answers,
        Classifier,
        ClassifierWithVAE,
        FeedbackClassifier,
        GenerativeClassifier,
        ReconstructingClassifier,
    )
    from relive.networks.per_class import VAEPerClass
    from relive.networks.products import Linear, affine

_HOMES = {
    "conditional": ("ConditionalClassifier", "mixture_latent"),
    "encoders": ("MLP", "Sizes", "linear", "mlp", "mlp_of", "trainable"),
    "feedback": ("Feedback", "latent"),
    "head": ("Head", "masked"),
    "models": (
        *("VAE", "Answers", "Classifier", "ClassifierWithVAE", "FeedbackClassifier"),
        *("GenerativeClassifier", "ReconstructingClassifier"),
    ),
    "per_class": ("VAEPerClass",),
    "products": ("Linear", "affine"),
}

__all__ = [
    "MLP",
    "VAE",
    "Answers",
    "Classifier",
    "ClassifierWithVAE",
    "ConditionalClassifier",
    "Feedback",
    "FeedbackClassifier",
    "GenerativeClassifier",
    "Head",
    "Linear",
    "ReconstructingClassifier",
    "Sizes",
    "VAEPerClass",
    "affine",
    "latent",
    "linear",
    "masked",
    "mixture_latent",
    "mlp",
    "mlp_of",
    "trainable",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
