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
    # A network with attention has more than one softmax; NNCF has a preset for these.
    attention = sum(node.get_type_name() == "Softmax" for node in model.get_ops()) > 1
    quantized = nncf.quantize(
        model,
        nncf.Dataset(data),
        subset_size=len(data),
        model_type=nncf.ModelType.TRANSFORMER if attention else None,
    )
    folder = pathlib.Path(target)
    folder.mkdir()
    ov.save_model(quantized, folder / "model.xml", compress_to_fp16=False)
