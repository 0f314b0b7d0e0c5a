"""The formats of peers that do not read SavedModels, a row of `FORMATS` each.

`python -m formats FORMAT SOURCE SHAPES TARGET [DATA]` writes one, in the interpreter the row names;
SHAPES is a JSON object of input names and shapes. DATA, an .npz with whole batches for each input,
calibrates what computes on bytes; without it made-up pictures do. Every writer is a module of this
package with a function `write(source, shapes, target)`.
"""

from __future__ import annotations

import dataclasses

SAVED_MODEL = "saved_model"


@dataclasses.dataclass(frozen=True)
class Format:
    """A format and the program that writes it.

    Attributes:
      writer: the module that does it.
      suffix: of the file's name; a folder has none.
      venv: whose interpreter it needs, as in `prepare.py`.
      source: the format it is made from.
      per_batch: whether the file is good for one batch only.
    """

    writer: str
    suffix: str
    venv: str | None = None
    source: str = SAVED_MODEL
    per_batch: bool = True


FORMATS = {
    "onnx": Format("onnx_file", ".onnx", venv="onnx"),
    "tflite": Format("tflite_file", ".tflite"),
    # OpenVINO reads SavedModels, too, but not those where a variable's name occurs twice (HED), nor
    # some with hundreds of variables (ResNet-50): "Cannot find requested variable".
    "frozen": Format("frozen_file", ".pb", per_batch=False),
    "openvino": Format("openvino_ir", "", venv="openvino", source="frozen", per_batch=False),
    "onnx_int8": Format("onnx_int8", ".onnx", venv="onnx", source="onnx"),
    "onnx_int8_dynamic": Format("onnx_int8_dynamic", ".onnx", venv="onnx", source="onnx"),
    "tflite_int8": Format("tflite_int8", ".tflite"),
    "openvino_int8": Format("openvino_int8", "", venv="openvino", source="openvino"),
    "weights": Format("weights_file", ".npz", per_batch=False),
    # tf2onnx takes more than 24 GB for VGG-16.
    "vgg16_onnx": Format("vgg16_onnx", ".onnx", venv="onnx", source="weights", per_batch=False),
    "vgg16_ncnn": Format("vgg16_ncnn", "", venv="ncnn", source="weights", per_batch=False),
}
