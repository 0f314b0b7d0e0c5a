"""OpenVINO's own form, in float32."""

import pathlib

import openvino as ov


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the folder `target` with model.xml and model.bin, for any shapes that it takes."""
    del shapes
    folder = pathlib.Path(target)
    folder.mkdir()
    model = ov.Core().read_model(source)
    for tensor in model.inputs:
        tensor.set_names({tensor.any_name.partition(":")[0]})  # The graph's, less its ":0".
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
