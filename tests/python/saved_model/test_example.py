"""Sizes that a SavedModel leaves open, closed by an example."""

import numpy as np
import pytest
import tensorflow as tf
from saved_models import save_tiny

import tf_blockdnn as bd
from tf_blockdnn.python.errors import SavedModelError
from tf_blockdnn.python.saved_model import optimize_saved_model


@pytest.fixture(scope="module")
def open_sizes(tmp_path_factory):
    """Signatures of unknown height and width; one of them takes words, too."""
    return save_tiny(tmp_path_factory.mktemp("open") / "model")


def _image(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype("float32")


def _same(got, want):
    np.testing.assert_allclose(got["features"], want["features"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("example", [{"image": _image(1, 12, 10, 3)}, [_image(1, 12, 10, 3)]])
def test_a_written_model_takes_the_sizes_of_an_example(open_sizes, tmp_path, example):
    report = optimize_saved_model(
        open_sizes,
        tmp_path / "fast",
        signatures=["serving_default"],
        example=example,
        verify=True,
        options=bd.Options(strict=True),
    )
    (note, *_) = report.signatures["serving_default"].notes
    assert note == "takes the sizes of example alone: image (None, 12, 10, 3)"
    assert report.signatures["serving_default"].count("BlockdnnConv") == 2
    loaded = tf.saved_model.load(tmp_path / "fast").signatures
    original = tf.saved_model.load(open_sizes).signatures["serving_default"]
    known = loaded["serving_default"].structured_input_signature[1]["image"]
    assert known.shape.as_list() == [None, 12, 10, 3]
    assert loaded["serving_default"].structured_outputs["features"].shape[1:] == [6, 5, 20]
    assert loaded["read"].structured_input_signature[1]["image"].shape[1] is None
    for batch in (1, 3):
        image = tf.constant(_image(batch, 12, 10, 3))
        _same(loaded["serving_default"](image=image), original(image=image))


def test_in_python_other_sizes_are_converted_when_they_come(open_sizes, tmp_path):
    loaded = tf.saved_model.load(open_sizes)
    original = loaded.signatures["serving_default"]
    only = tf.Module()
    only.signatures = {"serving_default": original}
    fast = bd.optimize(
        only, example={"image": _image(1, 12, 10, 3)}, options=bd.Options(strict=True)
    )
    assert fast.report.notes[0].startswith(
        "converted for the sizes of example, image (None, 12, 10, 3), and for others at the first"
    )
    assert fast.concrete.structured_input_signature[1]["image"].shape.as_list()[1:3] == [12, 10]
    function = fast.signatures["serving_default"]
    assert len(function.calls) == 1
    for shape in ((2, 12, 10, 3), (1, 8, 9, 3), (1, 12, 10, 3), (1, 5, 7, 3)):
        image = _image(*shape)
        _same(fast(image=tf.constant(image)), original(image=tf.constant(image)))
        _same(fast(tf.constant(image)), original(image=tf.constant(image)))
    assert len(function.calls) == 2  # All other sizes share one.
    assert all(one.report.count("BlockdnnConv") == 2 for one in function.calls)
    fast.save(tmp_path / "saved")
    image = _image(1, 12, 10, 3)
    _same(bd.load(tmp_path / "saved")(image), original(image=tf.constant(image)))


def test_an_example_that_a_signature_does_not_take(open_sizes, tmp_path):
    for example, message in (
        (
            {"picture": _image(1, 4, 4, 3)},
            r"example has \['picture'\], the arguments are \['image'\]",
        ),
        (_image(1, 4, 4, 5), r"example: image is \(None, None, None, 3\), not \(1, 4, 4, 5\)"),
        ([_image(1, 4, 4, 3)] * 2, "example must hold 1 tensors, one for each argument, not 2"),
    ):
        with pytest.raises(ValueError, match=message):
            optimize_saved_model(
                open_sizes, tmp_path / "fast", signatures=["serving_default"], example=example
            )
    with pytest.raises(ValueError, match="example must hold 2 tensors"):
        optimize_saved_model(open_sizes, tmp_path / "fast", example=_image(1, 4, 4, 3))
    assert not (tmp_path / "fast").exists()


def test_a_keras_file_that_needs_known_sizes(tmp_path):
    keras = pytest.importorskip("keras")
    x = keras.Input([None, None, 8])
    y = keras.layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    model = keras.Model(x, keras.layers.UpSampling2D(interpolation="bilinear")(y))
    model.save(tmp_path / "up.keras")
    with pytest.raises(SavedModelError, match="^[^\n]*up.keras: Keras cannot trace [^\n]* known"):
        optimize_saved_model(tmp_path / "up.keras", tmp_path / "fast")
    image = _image(1, 6, 5, 8)
    report = optimize_saved_model(tmp_path / "up.keras", tmp_path / "fast", example=image)
    (name,) = report.signatures
    assert report.signatures[name].notes[0].endswith("(None, 6, 5, 8)")
    for batch in (1, 2):
        values = _image(batch, 6, 5, 8)
        (got,) = bd.load(tmp_path / "fast")(values).values()
        np.testing.assert_allclose(got, model(values), rtol=0, atol=1e-5)


def test_without_open_sizes_nothing_is_said(tmp_path):
    function = tf.function(lambda image: {"features": tf.nn.relu(image)})
    spec = tf.TensorSpec([None, 4, 4, 3], name="image")
    tf.saved_model.save(tf.Module(), tmp_path / "m", function.get_concrete_function(spec))
    report = optimize_saved_model(tmp_path / "m", tmp_path / "fast", example=_image(1, 4, 4, 3))
    assert not any("example" in note for note in report.signatures["serving_default"].notes)
