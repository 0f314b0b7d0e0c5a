"""ONNX in int8 by ONNX Runtime's static quantization, as pairs of QuantizeLinear and Dequantize."""

import pathlib
import tempfile

from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

from .samples import samples


class _Reader(quantization.CalibrationDataReader):
    def __init__(self, shapes: dict[str, list[int]]):
        self._left = samples(shapes)

    def get_next(self) -> dict | None:
        return next(self._left, None)


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Quantizes the file `source`: activations uint8, weights int8 for each output channel."""
    with tempfile.TemporaryDirectory() as place:
        prepared = pathlib.Path(place) / "prepared.onnx"
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantization.quantize_static(
            prepared,
            target,
            _Reader(shapes),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
