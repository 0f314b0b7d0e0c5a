"""Writes shapes/*.txt: every distinct convolution of a Keras application, with its count.

    python benchmarks/make_shapes.py [resnet50 vgg16 …]

A convolution that reads an explicit ZeroPadding2D gets that padding as its own: that is how it
runs once the two are one.
"""

from __future__ import annotations

import argparse
import os
import pathlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

SHAPES = pathlib.Path(__file__).resolve().parent / "shapes"
APPLICATIONS = {
    "resnet50": "ResNet50",
    "vgg16": "VGG16",
    "mobilenetv2": "MobileNetV2",
    "efficientnetb0": "EfficientNetB0",
    "inceptionv3": "InceptionV3",
    "densenet121": "DenseNet121",
}


class Shape(NamedTuple):
    """A convolution of one image; `groups` == `ic` is depthwise. Padding is in elements."""

    ic: int
    ih: int
    iw: int
    oc: int
    kh: int
    kw: int
    sh: int
    sw: int
    pad_top: int
    pad_left: int
    pad_bottom: int
    pad_right: int
    groups: int


def convolutions(model) -> Iterator[tuple[str, Shape]]:
    """(layer name, shape) of each Conv2D and DepthwiseConv2D of a Keras model, in its order.

    Raises ValueError for a dilated one: the files have no column for it.
    """
    import keras

    for layer in model.layers:
        if not isinstance(layer, (keras.layers.Conv2D, keras.layers.DepthwiseConv2D)):
            continue
        if layer.dilation_rate != (1, 1):
            raise ValueError(f"{layer.name}: dilation_rate {layer.dilation_rate}")
        source, pads = _source(layer)
        _, ih, iw, ic = source.shape
        (top, bottom), (left, right) = pads
        depthwise = isinstance(layer, keras.layers.DepthwiseConv2D)
        yield (
            layer.name,
            Shape(
                *(ic, ih, iw, layer.output.shape[-1]),
                *layer.kernel_size,
                *layer.strides,
                *(top, left, bottom, right),
                ic if depthwise else layer.groups,
            ),
        )


def _source(layer):
    """The tensor that a convolution reads if explicit padding is its own, and that padding."""
    import keras

    tensor = layer.input
    if layer.padding == "same":
        sizes = zip(tensor.shape[1:3], layer.kernel_size, layer.strides, strict=True)
        return tensor, [_same(*size) for size in sizes]
    producer = tensor._keras_history.operation
    if isinstance(producer, keras.layers.ZeroPadding2D):
        return producer.input, producer.padding
    return tensor, [(0, 0), (0, 0)]


def _same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    total = max(0, (-(-size // stride) - 1) * stride + kernel - size)
    return total // 2, total - total // 2


def table(application: str) -> str:
    """The file of a Keras application: a title, a header line, a row for each distinct shape."""
    import keras

    model = getattr(keras.applications, application)(weights=None)
    names: dict[Shape, str] = {}
    counts: Counter[Shape] = Counter()
    for name, shape in convolutions(model):
        names.setdefault(shape, name)
        counts[shape] += 1
    rows = [("# name", "n", *Shape._fields, "count")]
    rows += [(name, 1, *shape, counts[shape]) for shape, name in names.items()]
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    height, width = model.input_shape[1:3]
    title = f"# {application} at {height}x{width}: its {sum(counts.values())} convolutions.\n"
    return title + "".join(
        " ".join(
            [str(name).ljust(widths[0])]
            + [str(c).rjust(w) for c, w in zip(cells, widths[1:], strict=True)]
        )
        + "\n"
        for name, *cells in rows
    )


def main() -> None:
    """Writes the files named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", default=list(APPLICATIONS), help=f"of {', '.join(APPLICATIONS)}"
    )
    names = parser.parse_args().names
    if unknown := set(names) - set(APPLICATIONS):
        parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(APPLICATIONS)}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    SHAPES.mkdir(exist_ok=True)
    for name in names:
        path = SHAPES / f"{name}.txt"
        path.write_text(table(APPLICATIONS[name]))
        print(path)


if __name__ == "__main__":
    main()
