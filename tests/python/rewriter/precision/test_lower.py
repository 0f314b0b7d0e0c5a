"""From calibration data to a function of bytes: errors, the report, files, a trained network."""

import json

import fresh
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn import Options
from tf_blockdnn.python.rewriter import optimize_concrete
from tf_blockdnn.python.rewriter.precision.quantize import snr


def images(count=24, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 12, 12, 3)).astype("float32")


@pytest.fixture(scope="module")
def function():
    rng = np.random.default_rng(2)
    shapes = [(3, 3, 3, 64), (3, 3, 64, 64), (3, 3, 64, 128)]
    weights = [
        tf.Variable((rng.standard_normal(s) / np.sqrt(np.prod(s[:-1]))).astype("float32"))
        for s in shapes
    ]

    def network(x):
        for w in weights:
            x = tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME"))
        return tf.reduce_mean(x, axis=[1, 2])

    network = tf.function(network, input_signature=[tf.TensorSpec([None, 12, 12, 3])])
    network.weights = weights
    return network


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": "int4"}, "precision must be one of"),
        ({"precision": "int8"}, "needs calibration: some dozens of typical inputs"),
        ({"precision": "bf16", "max_loss": 0.1}, "needs calibration"),
        ({"max_loss": 0.1}, "max_loss is for a precision"),
        ({"precision": "bf16", "max_loss": 2}, "between 0 and 1"),
        ({"precision": "bf16", "options": bd.Options(deterministic=True)}, "exclude each other"),
        ({"precision": "int8", "calibration": images()[:, :5]}, r"is \(6, 5, 12, 3\)"),
        ({"precision": "int8", "calibration": images() * np.nan}, "holds NaN"),
        ({"precision": "int8", "calibration": images()[:0]}, "holds no samples"),
    ],
)
def test_one_line_says_what_is_wrong(function, options, words):
    with pytest.raises(ValueError, match=words) as error:
        bd.optimize(function, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("data", "samples"), [([images(8)], 8), (images(1), 1), (images(24), 6)])
def test_one_batch_and_one_sample_are_enough(function, data, samples):
    report = bd.optimize(function, precision="int8", calibration=data).report
    assert report.precision.count == 3
    assert report.precision.samples == samples
    assert report.precision.outputs[0].snr > 30


def test_a_generator_is_read_by_each_function(function):
    """It yields once; every function of the target, and the check of options, reads all of it."""
    scaled, data = tf.function(lambda x, by: by * function(x)), [images(4), images(4, 1)]
    fast = bd.optimize(scaled, precision="int8", calibration=iter(data))
    for by in (1.0, 2.0):
        fast(data[0], by)
    concrete, options = function.get_concrete_function(), Options(precision="int8")
    alone = optimize_concrete(concrete, options=options, calibration=iter(data))
    for report in (*(call.report for call in fast.calls), alone.report):
        assert report.precision.count == 3 and report.precision.samples == 4


@pytest.mark.parametrize("value", [0.0, -0.25])
def test_data_of_one_number(function, value):
    """Ranges have no width, or one end at zero."""
    data = np.full((8, 12, 12, 3), value, np.float32)
    fast = bd.optimize(function, precision="int8", calibration=data)
    wanted, got = function(data).numpy(), fast(data).numpy()
    assert np.abs(got - wanted).max() <= 0.02 * np.abs(wanted).max()
    assert np.isfinite(fast(images(2)).numpy()).all()


@pytest.mark.parametrize(
    "precision", ["int8", "bf16", "int8-weights", "bf16-weights", "int4-weights"]
)
def test_an_empty_batch(function, precision):
    fast = bd.optimize(function, precision=precision, calibration=images())
    assert fast(images()[:0]).shape == (0, 128)


def test_values_that_overflow_are_named():
    filters = tf.fill((3, 3, 3, 16), 1e38)

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 3])])
    def network(x):
        y = tf.nn.conv2d(x, filters, 1, "SAME")
        return tf.nn.conv2d(y, tf.ones((1, 1, 16, 16)), 1, "SAME")

    with pytest.raises(ValueError, match="Conv2D: it becomes NaN or infinite"):
        bd.optimize(network, precision="int8", calibration=np.abs(images()) + 9)


def test_the_report_says_what_is_lost(function):
    report = bd.optimize(function, precision="int8", calibration=images()).report
    text = report.summary()
    assert "int8: 3 of 3 layers" in text
    assert " dB, same class 100 % (6 samples)" in text
    fields = json.loads(report.to_json())["precision"]
    assert [layer["dtype"] for layer in fields["layers"]] == ["uint8"] * 3
    assert fields["layers"][0]["scale"] > 0
    assert fields["outputs"][0]["agreement"] == 1.0
    assert "precision:" in report.summary(all=True)


def test_nothing_is_judged_without_data(function):
    report = bd.optimize(function, precision="bf16").report
    assert report.precision.outputs == [] and report.precision.count == 3


def test_attempts_name_nodes_alike(function):
    """What was observed is found again by the names of nodes, so that these have to be the same."""
    data = images()
    first = bd.optimize(function, precision="int8", calibration=data).report.precision
    again = bd.optimize(function, precision="int8", calibration=data).report.precision
    plain = bd.optimize(function).report
    assert first == again
    assert [layer.node for layer in first.layers] == [
        item.node for item in plain.converted if item.op == "BlockdnnConv"
    ]


def test_the_numbers_are_verified(function):
    data = images()
    fast = bd.optimize(function, precision="int8", calibration=data, verify=True)
    assert fast.report.precision.count == 3


def test_a_weight_that_is_no_number_stays_float32():
    filters = np.ones((3, 3, 3, 16), np.float32)
    filters[0, 0, 0, 0] = np.inf

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 3])])
    def network(x):
        return tf.nn.conv2d(x, filters, 1, "SAME")

    assert bd.optimize(network, precision="int8", calibration=images()).report.precision.count == 0


def test_several_signatures_and_a_size_of_a_quarter(function, tmp_path):
    module = tf.Module()
    module.network, module.weights = function, function.weights
    signatures = {"one": function, "two": function}
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=signatures)
    sizes = {}
    for precision in (None, "bf16", "int8"):
        options = {"precision": precision, "calibration": None if precision is None else images()}
        report = bd.optimize_saved_model(tmp_path / "model", tmp_path / str(precision), **options)
        assert (report.signatures["one"].precision is None) == (precision is None)
        files = (tmp_path / str(precision) / "variables").iterdir()
        sizes[precision] = sum(f.stat().st_size for f in files)
    assert sizes["bf16"] < 0.55 * sizes[None]
    assert sizes["int8"] < 0.3 * sizes[None]
    code = (
        "import sys, numpy as np, tensorflow as tf, tf_blockdnn as bd\n"
        "fast = bd.load(sys.argv[1])\n"
        "x = np.load(sys.argv[2])\n"
        "np.save(sys.argv[3], list(fast.signatures['two'](tf.constant(x)).values())[0])\n"
    )
    np.save(tmp_path / "x.npy", images(4, seed=5))
    fresh.run(code, tmp_path / "int8", tmp_path / "x.npy", tmp_path / "y.npy")
    wanted = function(images(4, seed=5)).numpy()
    got = np.load(tmp_path / "y.npy")
    assert np.abs(wanted - got).max() < 0.02 * np.abs(wanted).max()


def test_the_same_bytes_whatever_the_batch(function):
    fast = bd.optimize(function, precision="int8", calibration=images())
    batch = tf.constant(images(5, seed=3))
    apart = tf.concat([fast(batch[i : i + 1]) for i in range(5)], axis=0)
    assert np.abs(fast(batch) - apart).max() < 1e-5


@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_a_trained_network_loses_no_accuracy(precision):
    """Digits of 8x8 pixels, 600 of them held back."""
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    pictures = (digits.images[..., None] / 16).astype("float32")
    keras = tf.keras
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(16, 3, padding="same", use_bias=False),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss)
    model.fit(pictures[:1200], digits.target[:1200], epochs=10, batch_size=32, verbose=0)
    fast = bd.optimize(model, precision=precision, calibration=pictures[:200])
    test, labels = pictures[1200:], digits.target[1200:]
    accuracy = np.mean(model.predict(test, verbose=0).argmax(1) == labels)
    assert accuracy > 0.9
    assert np.mean(fast.predict(test, verbose=0).argmax(1) == labels) > accuracy - 0.002
    (output,) = fast.report.precision.outputs
    assert output.agreement > 0.98 and output.snr > 25


def test_a_failing_pass_costs_only_itself(function, monkeypatch):
    monkeypatch.setattr("tf_blockdnn.python.rewriter.rewrite.judge", lambda run: 1 / 0)
    concrete = function.get_concrete_function()
    with pytest.warns(RuntimeWarning, match="division by zero"):
        made = optimize_concrete(
            concrete, options=Options(precision="int8", strict=False), calibration=images()
        )
    assert made.concrete is concrete


@pytest.mark.parametrize(("precision", "part"), [("bf16-weights", 0.55), ("int8-weights", 0.3)])
def test_weights_alone_shrink_the_file(precision, part, tmp_path):
    """Of convolutions, depthwise ones and products; tensors and arithmetic stay float32."""
    keras = tf.keras
    model = keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.Conv2D(96, 1, activation="relu"),
            keras.layers.DepthwiseConv2D(3),
            keras.layers.Conv2D(256, 3),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(512),
        ]
    )
    sizes = {}
    for name, options in (("float", {}), ("low precision", {"precision": precision})):
        fast = bd.optimize(model, **options)
        bd_folder = tmp_path / f"{name}_saved"
        fast.save(bd_folder)
        files = (bd_folder / "variables").glob("*.data-*")
        sizes[name] = sum(file.stat().st_size for file in files)
    assert sizes["low precision"] < part * sizes["float"]
    assert fast.report.precision.count == 5 and not fast.report.declined
    x = images(4)
    wanted, got = model(x).numpy(), np.asarray(bd.load(bd_folder)(x)["output_0"])
    assert 0 < np.abs(got - wanted).max() < 0.02 * np.abs(wanted).max()


def _softmax(x):
    return tf.nn.softmax(x)


def _products(x):
    """An attention, a product of computed tensors, and two by weights."""
    scores = tf.nn.softmax(tf.matmul(x, x, transpose_b=True))
    weights = np.random.default_rng(0).standard_normal((4, 12, 12)).astype("float32")
    return tf.matmul(tf.matmul(scores, x)[:, None] @ tf.sin(x)[:, None], weights) @ weights[0]


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (_softmax, {"precision": "bf16"}, "no layer with weights that could be"),
        (_products, {"precision": "bf16", "exclude": [".*"]}, "stay float32: excluded by '.*'"),
        (_products, {"precision": "int8-weights", "exclude": [".*"]}, "excluded by"),
        (
            _products,
            {"precision": "bf16-weights", "options": bd.Options(only=[])},
            "not among those that",
        ),
    ],
)
def test_a_precision_that_changes_nothing_is_a_warning(function, options, words):
    """Then the result has the bits of float32."""
    function = tf.function(function, input_signature=[tf.TensorSpec([2, 12, 12])])
    names = {name: value for name, value in options.items() if name != "precision"}
    with pytest.warns(RuntimeWarning, match="changed nothing") as caught:
        fast = bd.optimize(function, **options)
    (warning,) = (w for w in fast.report.warnings if "changed nothing" in w)
    assert words in warning and "\n" not in warning and options["precision"] in warning
    assert [str(w.message) for w in caught] == [warning] and caught[0].filename == __file__
    x = images(2)[..., 0]
    np.testing.assert_array_equal(fast(x), bd.optimize(function, **names)(x))


@pytest.mark.parametrize(
    "precision", ["int8", "bf16", "int8-dynamic", "int8-weights", "bf16-weights", "int4-weights"]
)
def test_products_that_stay_float32_are_named(precision):
    function = tf.function(_products, input_signature=[tf.TensorSpec([2, 12, 12])])
    report = bd.optimize(function, precision=precision, calibration=[images(2)[..., 0]]).report
    left, layers = dict(report.precision.left), [layer.node for layer in report.precision.layers]
    assert len(left) + len(layers) == 4 and not left.keys() & set(layers)
    assert len(layers) == (1 if precision.endswith("weights") else 2)
    reasons = " ".join(left.values())
    assert "computed tensors" in reasons and ("attention" in reasons) == (len(layers) == 1)
    assert "left in float32" in report.summary()


_MASK = np.zeros((1, 12, 12, 1), np.float32)
_MASK[0, 3:5] = 1
# What hides values from a maximum or a minimum.
_HIDING = {
    "pad": lambda x, far: tf.nn.max_pool2d(_pad(x, -far), 3, 2, "VALID"),
    "pad of a minimum": lambda x, far: -tf.nn.max_pool2d(-_pad(x, far), 3, 2, "VALID"),
    "mask": lambda x, far: tf.nn.max_pool2d(tf.sin(x) - far * _MASK, 3, 2, "SAME"),
    "choice": lambda x, far: tf.nn.max_pool2d(tf.where(_MASK > 0, -far, x), 3, 2, "SAME"),
}


def _pad(x, value):
    return tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], constant_values=value)


@pytest.mark.parametrize(
    "how, far",
    [
        ("pad", 1e4),
        ("pad", np.inf),
        ("pad of a minimum", 3.4028235e38),
        ("mask", 1e9),
        ("mask", 1e30),  # 0 times infinity is NaN.
        ("choice", 1e4),
        ("choice", np.inf),
    ],
)
def test_sentinels_of_maxima_enter_no_range(how, far):
    weights = np.random.default_rng(2).standard_normal((2, 3, 3, 3, 3)).astype("float32")
    weights = np.repeat(np.repeat(weights, 6, 3), 6, 4)[..., :16, :16] / 20

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 16])])
    def function(x):
        x = _HIDING[how](tf.nn.conv2d(x, weights[0], 1, "SAME"), np.float32(far))
        return tf.nn.conv2d(x, weights[1], 1, "SAME")

    x = np.random.default_rng(1).standard_normal((16, 12, 12, 16)).astype("float32")
    report = bd.optimize(
        function, precision="int8", calibration=x, options=bd.Options(strict=True)
    ).report
    assert [layer.dtype for layer in report.precision.layers] == ["uint8"] * 2
    assert report.precision.outputs[0].snr > 30


@pytest.mark.parametrize(
    "precision, where, far",
    [
        ("int8", (5,), -1e9),
        ("int8", (5, 3), 3e38),
        ("int8", (5, 3, 2, 1), -1e9),
        ("int8", (slice(0, 24, 4),), 3e38),
        ("bf16", (5,), 3e38),
        ("bf16", (slice(0, 24, 4),), -1e9),
    ],
)
def test_samples_that_reach_far_beyond_most_enter_no_range(function, precision, where, far):
    """A sample, a row of pixels or an element of data says what is missing by -1e9."""
    data = images()
    data[where] = far
    with pytest.warns(RuntimeWarning, match="values of x beyond 1.* count as 0"):
        fast = bd.optimize(
            function, precision=precision, calibration=data, options=bd.Options(strict=True)
        )
    x = images(8, seed=1)
    assert fast.report.precision.outputs[0].snr > 30
    assert snr(function(x), fast(x)) > 30


@pytest.mark.parametrize("far", [-1e9, 1e4, 3e30])
def test_sentinels_in_every_sample_are_a_warning(function, far):
    """A row of each; bytes that hold it hold nothing else, and its own error is small."""
    data = images()
    data[:, 2] = far
    with pytest.warns(RuntimeWarning, match="a part of x is so far from all other values"):
        bd.optimize(function, precision="int8", calibration=data, options=bd.Options(strict=True))
    data[:, 2] = 40.0  # outliers, for which bytes have a step
    found = bd.optimize(
        function, precision="int8", calibration=data, options=bd.Options(strict=True)
    ).report
    assert not any("so far from all" in line for line in found.warnings)


@pytest.mark.parametrize("options", [{}, {"max_loss": 0.2}])
def test_an_output_that_loses_most_of_its_signal_is_a_warning(options):
    """It names the layer: the only one of which one channel drowns all others."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((3, 3, 3, 16, 16)).astype("float32") / 12

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 16])])
    def function(x):
        x = tf.nn.conv2d(tf.nn.conv2d(x, weights[0], 1, "SAME"), weights[1], 1, "SAME")
        drowning = x * np.float32([1] * 15 + [1e5])
        return tf.nn.conv2d(drowning, weights[2] * np.float32([1] * 15 + [0])[:, None], 1, "SAME")

    x = rng.standard_normal((16, 12, 12, 16)).astype("float32")
    found = bd.optimize(function, precision="int8", calibration=x, **options).report
    warnings = [line for line in found.warnings if "leaves output 0 at" in line]
    assert len(warnings) == (not options) and (found.precision.outputs[0].snr < 10) == (not options)
    assert all("mostly by Conv2D_2" in line and "\n" not in line for line in warnings)
