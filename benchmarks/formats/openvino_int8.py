"""OpenVINO's own form in int8 by NNCF's quantization after training."""

import pathlib

import nncf
import openvino as ov

from .samples import samples


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the folder `target` with model.xml and model.bin from the folder `source`."""
    model = ov.Core().read_model(f"{source}/model.xml")
    model.reshape({name: ov.PartialShape(shape) for name, shape in shapes.items()})
    data = list(samples(shapes))
    quantized = nncf.quantize(model, nncf.Dataset(data), subset_size=len(data))
    folder = pathlib.Path(target)
    folder.mkdir()
    ov.save_model(quantized, folder / "model.xml", compress_to_fp16=False)
