"""VGG-16 for ncnn: a PyTorch definition, traced, through pnnx."""

import pathlib
import subprocess
import tempfile

import pnnx
import torch
from torch import nn

from . import vgg16


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the folder `target` with model.param and model.bin, for one picture [3, H, W]."""
    ((_, (_, height, width, depth)),) = shapes.items()
    folder = pathlib.Path(target).resolve()
    folder.mkdir()
    network = nn.Sequential(*[part for layer in vgg16.layers(source) for part in _parts(layer)])
    network.eval()
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        # pnnx leaves half a dozen files beside the one it reads.
        traced = pathlib.Path(scratch, "vgg16.pt")
        torch.jit.trace(network, torch.zeros(1, depth, height, width)).save(traced)
        command = [
            pnnx.EXEC_PATH,
            traced,
            f"inputshape=[1,{depth},{height},{width}]",
            f"ncnnparam={folder / 'model.param'}",
            f"ncnnbin={folder / 'model.bin'}",
            "fp16=0",
        ]
        subprocess.run(command, check=True)


def _parts(layer: vgg16.Layer) -> list[nn.Module]:
    if layer.kind == "pool":
        return [nn.MaxPool2d(2)]
    if layer.kind == "flatten":
        return [nn.Flatten()]
    outputs, inputs = layer.weights.shape[:2]
    if layer.kind == "conv":
        part = nn.Conv2d(inputs, outputs, 3, padding=1)
    else:
        part = nn.Linear(inputs, outputs)
    with torch.no_grad():
        part.weight.copy_(torch.from_numpy(layer.weights))
        part.bias.copy_(torch.from_numpy(layer.bias))
    return [part, nn.ReLU()] if layer.relu else [part]
