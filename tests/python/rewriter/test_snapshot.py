"""Weights are those of the moment of `optimize`, whatever reads them; what is assigned is live."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter import Options, optimize_concrete

_IMAGE, _ROWS, _STEPS = [None, 6, 6, 16], [None, 40], [None, 5, 8]
_VOLUME, _IDS = [None, 4, 4, 4, 16], tf.TensorSpec([None, 7], tf.int32)


def _conv(x, w, kernel=3, channels=16):
    return tf.nn.conv2d(x, w(kernel, kernel, x.shape[-1], channels), 1, "SAME")


def _transposed(x, w):
    shape = tf.stack([tf.shape(x)[0], 12, 12, 16])
    return tf.nn.conv2d_transpose(x, w(3, 3, 16, 16), shape, 2, "SAME")


def _pair(x, w):
    """Two convolutions in one op."""
    return tf.nn.depthwise_conv2d(_conv(x, w, 1, 32), w(3, 3, 32, 1), [1] * 4, "SAME")


def _pooled(x, w):
    """A convolution that stores maxima."""
    y = tf.nn.conv2d(tf.image.resize(x, [28, 28]), w(3, 3, 16, 64), 1, "SAME")
    return tf.nn.max_pool2d(tf.nn.conv2d(y, w(3, 3, 64, 64), 1, "SAME"), 2, 2, "VALID")


def _gated(x, w):
    y = _conv(x, w)
    mean = tf.reduce_mean(y, [1, 2], keepdims=True)
    return y * tf.sigmoid(_conv(tf.nn.relu(_conv(mean, w, 1, 8)), w, 1, 16))


def _norm(x, w):
    y = _conv(x, w)
    operands = (w(16), w(16), w(16), w(16, low=0.5, high=1.0))
    scale, offset, mean, variance = operands
    return tf.nn.batch_normalization(y, mean, variance, offset, scale, 1e-3)


def _layer_norm(x, w):
    y = _conv(x, w)
    mean, variance = tf.nn.moments(y, [3], keepdims=True)
    return tf.nn.batch_normalization(y, mean, variance, w(16), w(16), 0.1)


def _embedding(ids, w):
    """What reads a table by numbers, before a product of ours."""
    rows = tf.gather(w(30, 24), ids)
    return tf.matmul(tf.reduce_mean(rows, 1), w(24, 20))


def _loop(x, w):
    kernel, factor = w(3, 3, 16, 16), w(16)
    step = lambda y: tf.nn.conv2d(y, kernel, 1, "SAME") * tf.reduce_mean(factor)  # noqa: E731
    return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, step(y)), [0, x])[1]


def _branch(x, w):
    scale = w(6, 6, 16)
    y = _conv(x, w)
    return tf.cond(tf.reduce_sum(x) > 0, lambda: y * scale, lambda: y - scale)


def _double(x, w):
    """A product that stays with TensorFlow."""
    y = tf.matmul(tf.cast(x, tf.float64), tf.cast(w(40, 8), tf.float64))
    return tf.cast(y, tf.float32) @ w(8, 20)


def _three_kinds(x, w):
    y = tf.reduce_mean(_conv(x, w), [1, 2]) @ w(16, 32)
    return tf.sigmoid(y + w(32)) * w(32)


def _recurrent(kind, **options):
    def function(x, w):
        layer = w.keep(lambda: getattr(keras.layers, kind)(9, **options))
        return layer(x)

    return function


# name -> (function, signature, what is converted)
_KINDS = {
    "conv": (_conv, _IMAGE, "BlockdnnConv"),
    "conv with bias": (lambda x, w: _conv(x, w) + w(16), _IMAGE, "BlockdnnConv"),
    "conv 1x1 plain": (lambda x, w: _conv(x, w, 1, 32), _IMAGE, "BlockdnnConv"),
    "depthwise": (
        lambda x, w: tf.nn.depthwise_conv2d(_conv(x, w), w(3, 3, 16, 1), [1] * 4, "SAME"),
        _IMAGE,
        "BlockdnnConv",
    ),
    "1x1 and depthwise": (_pair, _IMAGE, "BlockdnnConvDepthwise"),
    "pooled": (_pooled, _IMAGE, "BlockdnnConv"),
    "squeeze and excite": (_gated, _IMAGE, "BlockdnnSqueezeExcite"),
    "transposed": (_transposed, _IMAGE, "BlockdnnConvTranspose"),
    "volume": (
        lambda x, w: tf.nn.conv3d(x, w(3, 3, 3, 16, 16), [1] * 5, "SAME"),
        _VOLUME,
        "BlockdnnConvVolume",
    ),
    "batch norm": (_norm, _IMAGE, "BlockdnnConv"),
    "layer norm": (_layer_norm, _IMAGE, "BlockdnnLayerNorm"),
    "dense": (lambda x, w: tf.nn.relu(x @ w(40, 24) + w(24)), _ROWS, "BlockdnnInnerProduct"),
    "dense on steps": (
        lambda x, w: tf.tensordot(x, w(8, 24), 1) + w(24),
        _STEPS,
        "BlockdnnInnerProduct",
    ),
    "dense, turned": (
        lambda x, w: tf.matmul(x, w(24, 40), transpose_b=True),
        _ROWS,
        "BlockdnnInnerProduct",
    ),
    "lstm": (_recurrent("LSTM"), _STEPS, "BlockdnnRnn"),
    "gru": (_recurrent("GRU", return_sequences=True), _STEPS, "BlockdnnRnn"),
    "gru, reset before": (_recurrent("GRU", reset_after=False), _STEPS, "BlockdnnRnn"),
    "vanilla": (_recurrent("SimpleRNN"), _STEPS, "BlockdnnRnn"),
    "embedding": (_embedding, _IDS, "BlockdnnInnerProduct"),
    "operand of each pixel": (lambda x, w: _conv(x, w) * w(6, 6, 16), _IMAGE, "BlockdnnConv"),
    "prelu": (
        lambda x, w: (lambda y: tf.nn.relu(y) - w(16) * tf.nn.relu(-y))(_conv(x, w)),
        _IMAGE,
        "BlockdnnConv",
    ),
    "three kinds": (_three_kinds, _IMAGE, "BlockdnnInnerProduct"),
    "loop": (_loop, _IMAGE, "BlockdnnConv"),
    "branch": (_branch, _IMAGE, "BlockdnnConv"),
    "left to TensorFlow": (_double, _ROWS, "BlockdnnInnerProduct"),
}


class _Weights:
    """Makes the variables at the first call of a function and hands them out again later."""

    def __init__(self, make):
        self._make, self._made, self._next = make, [], 0

    def restart(self):
        self._next = 0

    def keep(self, make):
        if self._next == len(self._made):
            self._made.append(make())
        self._next += 1
        return self._made[self._next - 1]

    def __call__(self, *shape, **bounds):
        return self.keep(lambda: self._make(*shape, **bounds))

    @property
    def variables(self):
        for item in self._made:
            yield from [item] if isinstance(item, tf.Variable) else item.weights


@pytest.fixture
def case(weights):
    """case(kind) -> (tf.function with a signature, its variables, an argument)."""

    def make(kind):
        build, spec, _ = _KINDS[kind]
        spec = spec if isinstance(spec, tf.TensorSpec) else tf.TensorSpec(spec)
        held = _Weights(weights)

        def function(x):
            held.restart()
            return build(x, held)

        rng, shape = np.random.default_rng(1), [2, *spec.shape[1:]]
        is_float = spec.dtype.is_floating
        x = rng.standard_normal(shape) if is_float else rng.integers(0, 30, shape)
        x = tf.constant(x, spec.dtype)
        function(x)
        module = tf.Module()
        module.held = list(held.variables)
        return tf.function(function, autograph=False, input_signature=[spec]), held, x

    return make


def _assign(held):
    for variable in held.variables:
        variable.assign(variable * 0.25 + 1.0)


@pytest.mark.parametrize("kind", _KINDS)
def test_assigning_to_the_original_changes_nothing(kind, case, tmp_path):
    function, held, x = case(kind)
    wanted = function(x).numpy()
    fast = bd.optimize(function)
    assert fast.report.count(_KINDS[kind][2]), fast.report.summary()
    fast.save(tmp_path / "fast")
    before = fast(x).numpy()
    np.testing.assert_allclose(before, wanted, atol=2e-5 * np.abs(wanted).max())
    _assign(held)
    assert np.abs(function(x).numpy() - wanted).max() > 1e-3  # The original follows.
    np.testing.assert_array_equal(fast(x), before)
    np.testing.assert_array_equal(fast.concrete(x), before)
    loaded = tf.saved_model.load(tmp_path / "fast").signatures["serving_default"]
    np.testing.assert_array_equal(list(loaded(x).values())[0], before)


@pytest.mark.parametrize("kind", ["three kinds", "lstm", "embedding", "loop"])
def test_saved_after_an_assignment_it_is_still_the_snapshot(kind, case, tmp_path):
    function, held, x = case(kind)
    fast = bd.optimize(function)
    before = fast(x).numpy()
    _assign(held)
    fast.save(tmp_path / "fast")
    loaded = tf.saved_model.load(tmp_path / "fast").signatures["serving_default"]
    np.testing.assert_array_equal(list(loaded(x).values())[0], before)


def test_a_copy_is_made_once_for_all_signatures(weights, tmp_path):
    table = weights(50, 16)
    ids = tf.TensorSpec([None], tf.int32, name="ids")
    module = tf.Module()
    module.table = table
    first = tf.function(lambda ids: {"y": tf.gather(table, ids)}, input_signature=[ids])
    second = tf.function(lambda ids: {"y": -tf.gather(table, ids)}, input_signature=[ids])
    tf.saved_model.save(module, tmp_path / "two", signatures={"a": first, "b": second})
    fast = bd.optimize(tf.saved_model.load(tmp_path / "two"))
    copies = {id(v) for f in fast.signatures.values() for v in f.trackables}
    assert len(copies) == 1


def test_each_signature_of_a_polymorphic_function_is_one_snapshot(weights, image):
    """The first call of a signature, whenever it is, takes the weights of `optimize`."""
    kernel, scale = weights(3, 3, 16, 16), weights(6, 6, 16)
    function = tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME") * scale)
    fast = bd.optimize(function)
    single, pair = image(1, 6, 6, 16), image(2, 6, 6, 16)
    before, of_two = fast(single).numpy(), function(pair)
    kernel.assign(kernel * 2.0)
    scale.assign(scale + 1.0)
    np.testing.assert_allclose(fast(pair), of_two, atol=1e-4)
    np.testing.assert_array_equal(fast(single), before)


def _assigned_in(function, held):
    """A function that also assigns to the variable `held`."""

    def assigning(x):
        y = function(x)
        held.assign(held * 0.5)
        return y, function(x)

    return assigning


@pytest.mark.parametrize(
    "kind", ["conv", "dense", "embedding", "three kinds", "left to TensorFlow"]
)
def test_what_the_function_assigns_is_live(kind, weights):
    """Everything reads the variable where it did: before, and after, its own assignment."""
    build, spec, _ = _KINDS[kind]
    held = _Weights(weights)
    spec = spec if isinstance(spec, tf.TensorSpec) else tf.TensorSpec(spec)
    x = tf.ones([2, *spec.shape[1:]], spec.dtype)
    build(x, held)
    last = list(held.variables)[-1]

    def function(x):
        held.restart()
        return build(x, held)

    function = tf.function(_assigned_in(function, last), autograph=False)
    concrete = function.get_concrete_function(spec)
    start = last.numpy()
    fast = optimize_concrete(concrete).concrete
    for _ in range(2):
        now = last.numpy()
        wanted = [y.numpy() for y in concrete(x)]
        after = last.numpy()
        last.assign(now)
        got = [y.numpy() for y in fast(x)]
        np.testing.assert_array_equal(last, after)
        for a, b in zip(wanted, got, strict=True):
            np.testing.assert_allclose(b, a, atol=2e-5 * np.abs(a).max())
    np.testing.assert_allclose(last, 0.25 * start)
    last.assign(start * 3.0)  # From outside, too.
    a = concrete(x)[0].numpy()
    last.assign(start * 3.0)
    np.testing.assert_allclose(fast(x)[0], a, atol=2e-5 * np.abs(a).max())


def test_a_state_and_weights_in_one_function(weights, image):
    """The counter counts, the weights beside it stay those of `optimize`."""
    kernel, count = weights(3, 3, 16, 16), tf.Variable(0.0)

    def function(x):
        count.assign_add(1.0)
        return tf.nn.conv2d(x, kernel, 1, "SAME") + count

    concrete = tf.function(function).get_concrete_function(tf.TensorSpec([1, 6, 6, 16]))
    rewritten = optimize_concrete(concrete)
    assert rewritten.report.count("BlockdnnConv") == 1
    x = image(1, 6, 6, 16)
    first = rewritten.concrete(x).numpy()
    kernel.assign(tf.zeros_like(kernel))
    np.testing.assert_allclose(rewritten.concrete(x), first + 1.0, atol=1e-5)
    assert count.numpy() == 2.0


def test_a_variable_that_only_a_branch_assigns_is_live(weights, image):
    kernel = weights(3, 3, 16, 16)

    def function(x):
        def change():
            kernel.assign(kernel * 0.0)
            return 0

        tf.cond(tf.reduce_max(x) > 50.0, change, lambda: 1)
        return tf.nn.conv2d(x, kernel, 1, "SAME")

    concrete = tf.function(function).get_concrete_function(tf.TensorSpec([1, 6, 6, 16]))
    rewritten = optimize_concrete(concrete)
    assert rewritten.report.count("BlockdnnConv") == 0
    x = image(1, 6, 6, 16)
    np.testing.assert_allclose(rewritten.concrete(x), tf.nn.conv2d(x, kernel, 1, "SAME"), atol=1e-5)
    assert not rewritten.concrete(100.0 + x).numpy().any()
    assert not rewritten.concrete(x).numpy().any()


@pytest.mark.parametrize("is_left", [False, True])
def test_a_number_that_is_a_variable_is_named(is_left, conv):
    """Whether a pass folds it, or an op of TensorFlow's reads it."""
    temperature = tf.Variable(0.5, name="temperature")

    def function(x):
        y = conv(x, 16)
        return (
            tf.math.bessel_i0e(tf.math.bessel_i0e(y) / temperature) if is_left else y * temperature
        )

    concrete = tf.function(function).get_concrete_function(tf.TensorSpec([1, 6, 6, 16]))
    for options, count in ((Options(), 1), (Options(weights="live"), 0)):
        rewritten = optimize_concrete(concrete, options=options)
        assert rewritten.report.count("BlockdnnConv") == 1
        said = [note for note in rewritten.report.notes if "of one number" in note]
        assert len(said) == count and all(note.startswith("temperature: ") for note in said)


def test_weights_of_text_and_of_numbers_of_other_kinds(image, conv):
    words, order = tf.Variable([b"a", b"b"]), tf.Variable(np.arange(16)[::-1].copy())
    switch = tf.Variable(True)

    def function(x):
        y = tf.gather(conv(x, 16), order, axis=3)
        return tf.where(switch, y, -y), words.read_value()

    concrete = tf.function(function).get_concrete_function(tf.TensorSpec([1, 6, 6, 16]))
    rewritten = optimize_concrete(concrete).concrete
    x = image(1, 6, 6, 16)
    wanted = concrete(x)[0].numpy()
    words.assign([b"c", b"d"])
    order.assign(order[::-1])
    switch.assign(False)
    got, text = rewritten(x)
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    assert text.numpy().tolist() == [b"a", b"b"]


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_assigns_beside_weights_that_it_reads(image, flag, conv):
    """Grappler orders the arguments of branches anew, and a note keeps their old numbers."""
    log = tf.Variable(1, dtype=tf.int64)

    def model(x, flag):
        y = conv(x, 16)

        def yes():
            log.assign(log * 31 + 11)
            return conv(y, 16)

        def no():
            log.assign(log * 31 + 13)
            return tf.nn.relu(y)

        return tf.cond(flag, yes, no)

    specs = tf.TensorSpec([None, 6, 6, 16]), tf.TensorSpec([], tf.bool)
    original = tf.function(model, autograph=False).get_concrete_function(*specs)
    optimize_concrete(original).concrete(image(1, 6, 6, 16), tf.constant(flag))
    assert int(log) == (42 if flag else 44)


def _check_live(fast, function, x):
    """Calls that find a change, that repeat what it led to, and that repeat a plan of that."""
    wanted = function(x).numpy()
    for _ in range(4):
        np.testing.assert_allclose(fast(x), wanted, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("kind", _KINDS)
def test_live_weights_follow_the_original(kind, case, tmp_path):
    function, held, x = case(kind)
    fast = bd.optimize(function, weights="live")
    assert fast.report.count(_KINDS[kind][2]), fast.report.summary()
    outer = tf.function(lambda x: fast(x))
    for variable in [None, *held.variables]:  # each is noticed by itself
        if variable is not None:
            variable.assign(variable * 0.25 + 0.5)
            wanted = function(x).numpy()
            bound = 1e-4 + 1e-6 * np.abs(wanted).max()  # sums of some weights are thousands
            np.testing.assert_allclose(outer(x), wanted, rtol=1e-4, atol=bound)
        _check_live(fast, function, x)
    fast.save(tmp_path / "fast")
    loaded = tf.saved_model.load(tmp_path / "fast").signatures["serving_default"]
    np.testing.assert_array_equal(list(loaded(x).values())[0], fast(x))
