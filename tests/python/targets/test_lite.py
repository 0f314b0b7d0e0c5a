"""LiteRT files: the numbers of LiteRT's interpreter, on our kernels."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python import lite
from tf_blockdnn.python.errors import SavedModelError

SIZE = (16, 16, 3)


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("TF_BLOCKDNN_STRICT", "1")


def _network():
    """A MobileNet in small, whose normalisations are no identities."""
    keras.utils.set_random_seed(7)
    layers = keras.layers
    image = keras.Input(SIZE)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(16, 3, 2, "same")(image)))
    y = layers.ReLU(6.0)(layers.DepthwiseConv2D(3, padding="same")(x))
    x = layers.Add()([x, layers.Conv2D(16, 1)(y)])
    x = layers.Concatenate()([layers.MaxPooling2D()(x), layers.AveragePooling2D(2)(x)])
    x = layers.Conv2DTranspose(16, 2, 2, activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(layers.ZeroPadding2D()(x))
    return keras.Model(image, layers.Softmax()(layers.Dense(10)(x)))


def _ops(image):
    """What networks do beside convolutions."""
    x = tf.nn.conv2d(image, tf.ones((3, 3, 3, 8)) * 0.1, 1, "SAME")
    x = x * tf.sigmoid(x) + tf.nn.leaky_relu(x, 0.1) - tf.nn.elu(x) / 2.0
    x = tf.image.resize(x, (24, 24)) + tf.image.resize(x, (24, 24), "nearest")
    x = tf.nn.space_to_depth(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"), 2)
    left, right = tf.split(tf.transpose(x, (0, 2, 1, 3)), 2, -1)
    x = tf.maximum(left[:, 1:, ::2], tf.tanh(right)[:, 1:, ::2]) + tf.nn.gelu(right[:, 1:, ::2])
    x = tf.reshape(tf.nn.relu6(x + 3.0) * x / 6.0, (1, -1, 16))
    x = tf.concat([x, tf.gather(x, [1, 0], axis=1)], 1)
    scores = tf.nn.softmax(tf.matmul(x, x, transpose_b=True) * 0.1)
    x = tf.matmul(scores, x)
    mean = tf.reduce_mean(x, -1, keepdims=True)
    x = (x - mean) * tf.math.rsqrt(tf.reduce_mean(tf.square(x - mean), -1, keepdims=True) + 1e-3)
    return {"numbers": x, "best": tf.argmax(x, -1), "most": tf.reduce_max(x, (0, 2))}


def _images(count=8):
    return np.random.default_rng(0).standard_normal((count, *SIZE)).astype(np.float32)


def _write(path, function, kind="float"):
    spec = tf.TensorSpec((1, *SIZE), name="image")
    concrete = tf.function(function).get_concrete_function(spec)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], concrete)
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind.startswith("int8"):
        converter.representative_dataset = lambda: ([x[None]] for x in _images(64))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if kind == "int8 alone":
        converter.inference_input_type = converter.inference_output_type = tf.int8
    path.write_bytes(converter.convert())
    return str(path)


def _interpreted(path, image):
    """The result by LiteRT, and the largest step of its results."""
    interpreter = tf.lite.Interpreter(path)
    interpreter.allocate_tensors()
    (source,), results = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(source["index"], _as(source, image))
    interpreter.invoke()
    return [interpreter.get_tensor(one["index"]) for one in results]


def _as(details, image):
    if details["dtype"] == np.float32:
        return image
    scale, zero = details["quantization"]
    return np.clip(np.round(image / scale) + zero, -128, 127).astype(np.int8)


def _ours(fast, path, image):
    source = tf.lite.Interpreter(path).get_input_details()[0]
    results = fast(tf.constant(_as(source, image)))
    return [results[name].numpy() for name in sorted(results)]


@pytest.mark.parametrize("kind", ["float", "float16", "dynamic"])
def test_floats(kind, tmp_path):
    path = _write(tmp_path / "model.tflite", _network(), kind)
    fast = bd.optimize(path)
    for image in _images(3):
        (wanted,), (got,) = _interpreted(path, image[None]), _ours(fast, path, image[None])
        # The interpreter rounds rows where weights alone are bytes.
        atol = 1e-5 if kind != "dynamic" else 0.02
        np.testing.assert_allclose(got, wanted, rtol=0, atol=atol)
    assert fast.report.count("BlockdnnConv") == 3 and not fast.report.declined


@pytest.mark.parametrize("kind", ["int8", "int8 alone"])
def test_bytes_are_those_of_the_interpreter(kind, tmp_path):
    path = _write(tmp_path / "model.tflite", _network(), kind)
    fast = bd.optimize(path)
    step = 1 / 256 if kind == "int8" else 1
    for image in _images(8):
        (wanted,), (got,) = _interpreted(path, image[None]), _ours(fast, path, image[None])
        assert got.dtype == wanted.dtype
        off = np.abs(got.astype(np.float64) - wanted) / step
        assert off.max() <= 1.001 and (off < 0.5).mean() >= 0.7
    assert [layer.dtype for layer in fast.report.precision.layers].count("uint8") == 3


def test_other_ops(tmp_path):
    path = _write(tmp_path / "model.tflite", _ops)
    fast = bd.optimize(path)
    image = _images(1)
    got = fast(tf.constant(image))
    wanted = {tuple(x.shape): x for x in _interpreted(path, image)}
    for result in got.values():
        np.testing.assert_allclose(result, wanted[tuple(result.shape)], atol=1e-4)
    assert len(wanted) == len(got) == 3


def test_is_written_as_a_saved_model(tmp_path):
    path = _write(tmp_path / "model.tflite", _network())
    report = bd.optimize_saved_model(path, tmp_path / "fast")
    assert len(report.converted) > 5
    image = _images(1)
    got = bd.load(tmp_path / "fast")(tf.constant(image))
    np.testing.assert_allclose(*got.values(), _interpreted(path, image)[0], atol=1e-5)


def test_what_cannot_be_read_is_one_line(tmp_path, monkeypatch):
    path = _write(tmp_path / "model.tflite", _network())
    monkeypatch.delitem(lite.OPS, "DEPTHWISE_CONV_2D")
    with pytest.raises(SavedModelError, match=r"model.tflite: op \d is DEPTHWISE_CONV_2D, which"):
        bd.optimize(path)
    data = (tmp_path / "model.tflite").read_bytes()
    for bad in (b"", b"nothing at all", data[: len(data) // 2], data[:8] + b"\xff" * 64):
        (tmp_path / "bad.tflite").write_bytes(bad)
        with pytest.raises(SavedModelError, match="bad.tflite: not a LiteRT file"):
            bd.optimize(tmp_path / "bad.tflite")
