"""``relive export``: a model as an ONNX file, for programs that do not use relive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relive._util.errors import InputError, ReliveError
from relive.cli import models
from relive.cli.console import out

OUTPUT = Annotated[Path, typer.Argument(metavar="FILE.onnx", help="The file to write; an existing one is replaced.")]

EXAMPLES = """Examples:

relive export flowers.safetensors flowers.onnx

python -c "import onnxruntime as o; print(o.InferenceSession('flowers.onnx').run(None, {'samples': [[5.1, 3.5, 1.4]]}))"
"""


def command(model: models.MODEL, output: OUTPUT) -> None:
    """Write a model as ONNX: samples in, labels and probabilities out, equal within 1e-5.

    Samples are float64, scaled as when the model was trained; bytes are divided by 255. In Task-IL a second input is
    each sample's task number. An ONNX file cannot be trained further.
    """
    if output.suffix != ".onnx" or not output.parent.is_dir():
        raise InputError(f"{output}: give a file that ends with .onnx, in an existing directory")

    from relive.inference.predictor import NeedsTorchError, predictor_of

    try:
        from relive.inference.onnxfile import write_onnx
    except ImportError as error:
        raise ReliveError(
            f"relive export needs {error.name}, which is not installed: pip install 'relive[onnx]'"
        ) from error
    try:
        predictor = predictor_of(models.real(model))
    except NeedsTorchError as error:
        raise InputError(f"{model} cannot be exported: {error}, which ONNX cannot represent") from error
    try:
        write_onnx(predictor, output)
    except OSError as error:
        raise ReliveError(f"cannot write {output}: {error.strerror or error}") from error
    out.print(f"written   {output}, {models.size_of(output)}")
