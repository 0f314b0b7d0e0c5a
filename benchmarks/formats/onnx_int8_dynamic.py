"""ONNX in int8 by ONNX Runtime's dynamic quantization: each call finds the scales of inputs."""

from onnxruntime import quantization


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Quantizes the products of the file `source`, weights int8 for each output channel."""
    del shapes
    quantization.quantize_dynamic(
        source, target, per_channel=True, weight_type=quantization.QuantType.QInt8
    )
