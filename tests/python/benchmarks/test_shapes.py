"""The shape files of the layer benchmark, and the script that writes them."""

import keras
import pytest

COUNTS = {
    "resnet50": 53,
    "vgg16": 13,
    "mobilenetv2": 52,
    "efficientnetb0": 81,
    "inceptionv3": 94,
    "densenet121": 120,
}
# Giga multiply-adds of the convolutions, as the papers and model cards round them.
GIGA_MULTIPLY_ADDS = {
    "resnet50": 3.9,
    "vgg16": 15.3,
    "mobilenetv2": 0.30,
    "efficientnetb0": 0.39,
    "inceptionv3": 5.7,
    "densenet121": 2.8,
}


@pytest.fixture
def make_shapes():
    import make_shapes

    return make_shapes


def rows(benchmarks, name):
    lines = (benchmarks / "shapes" / f"{name}.txt").read_text().splitlines()
    header = lines[1].removeprefix("# ").split()
    return [
        {"name": name} | dict(zip(header[1:], map(int, cells), strict=True))
        for name, *cells in (line.split() for line in lines[2:])
    ]


@pytest.mark.parametrize("name", COUNTS)
def test_files_hold_every_convolution(benchmarks, name):
    table = rows(benchmarks, name)
    assert sum(row["count"] for row in table) == COUNTS[name]
    multiply_adds = 0
    for row in table:
        oh = (row["ih"] + row["pad_top"] + row["pad_bottom"] - row["kh"]) // row["sh"] + 1
        ow = (row["iw"] + row["pad_left"] + row["pad_right"] - row["kw"]) // row["sw"] + 1
        taps = row["kh"] * row["kw"] * row["ic"] // row["groups"]
        multiply_adds += row["count"] * oh * ow * row["oc"] * taps
    assert multiply_adds / 1e9 == pytest.approx(GIGA_MULTIPLY_ADDS[name], rel=0.03)


def test_the_script_writes_the_stored_file(benchmarks, make_shapes):
    stored = benchmarks / "shapes" / "mobilenetv2.txt"
    assert make_shapes.table("MobileNetV2") == stored.read_text()


def test_padding_is_resolved_and_explicit_padding_folded(make_shapes):
    layers = keras.layers
    x = inputs = keras.Input((9, 10, 4))
    x = layers.ZeroPadding2D(((1, 2), (3, 0)))(x)
    x = layers.Conv2D(6, (3, 1), strides=2, groups=2, name="padded")(x)
    x = layers.DepthwiseConv2D(3, strides=2, padding="same", name="same")(x)
    x = layers.ZeroPadding2D(1)(x)
    x = layers.Conv2D(8, 3, padding="same", name="both")(x)
    model = keras.Model(inputs, x)
    names, shapes = zip(*make_shapes.convolutions(model), strict=True)
    assert names == ("padded", "same", "both")
    assert shapes[0] == (4, 9, 10, 6, 3, 1, 2, 2, 1, 3, 2, 0, 2)
    assert shapes[1] == (6, 5, 7, 6, 3, 3, 2, 2, 1, 1, 1, 1, 6)
    assert shapes[2] == (6, 5, 6, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1)


def test_dilation_has_no_column(make_shapes):
    inputs = keras.Input((8, 8, 3))
    model = keras.Model(inputs, keras.layers.Conv2D(4, 3, dilation_rate=2, name="a_trous")(inputs))
    with pytest.raises(ValueError, match="a_trous"):
        list(make_shapes.convolutions(model))
