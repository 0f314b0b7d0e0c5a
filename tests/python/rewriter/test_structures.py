"""Whatever a function takes and returns stays: structures, side effects, control flow."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.rewriter import capture, optimize_concrete

_SAME = {"strides": 1, "padding": "SAME"}


def test_nested_inputs_and_outputs(image, conv):
    @tf.function
    def function(inputs, scale, *, flag=True):
        y = conv(inputs["image"], 8)
        return {"a": [y, None], "b": (inputs["other"][0] * scale, {"c": inputs["other"][1]})}

    spec = {
        "other": [tf.TensorSpec([2]), tf.TensorSpec([], tf.int32)],
        "image": tf.TensorSpec([None, 6, 6, 3]),
    }
    concrete = function.get_concrete_function(spec, tf.TensorSpec([]), flag=True)
    rewritten = optimize_concrete(concrete).concrete
    assert str(rewritten.structured_input_signature) == str(concrete.structured_input_signature)
    assert rewritten._arg_keywords == concrete._arg_keywords  # as signatures name the tensors
    inputs = {"image": image(1, 6, 6, 3), "other": [tf.constant([1.0, 2.0]), tf.constant(7)]}
    wanted = concrete(inputs, tf.constant(3.0), flag=True)
    got = rewritten(inputs, tf.constant(3.0), flag=True)
    tf.nest.assert_same_structure(wanted, got)
    assert got["a"][1] is None
    np.testing.assert_allclose(wanted["a"][0], got["a"][0], atol=1e-5)
    np.testing.assert_array_equal(got["b"][0], [3.0, 6.0])
    assert got["b"][1]["c"].numpy() == 7


def test_keyword_arguments(result_of, image, conv):
    @tf.function
    def function(*, x, y):
        return conv(x, 8) * y

    result = result_of(function, x=tf.TensorSpec([1, 6, 6, 3]), y=tf.TensorSpec([]))
    result.assert_same(x=image(1, 6, 6, 3), y=tf.constant(2.0))


def test_an_input_returned_as_it_is_and_an_unused_one(rewrite, image, conv):
    result = rewrite(lambda x, unused: (x, conv(x, 8)), [1, 6, 6, 3], [5])
    result.assert_same(image(1, 6, 6, 3), tf.zeros([5]))


def test_the_same_output_twice(rewrite, image, conv):
    def function(x):
        y = conv(x, 16)
        return [y, y]

    rewrite(function, [1, 6, 6, 16]).assert_same(image(1, 6, 6, 16))


def test_static_output_shapes_are_kept(rewrite, conv):
    result = rewrite(lambda x: conv(x, 20, 3, 2), [None, 9, None, 3])
    assert result.concrete.outputs[0].shape.as_list() == [None, 5, None, 20]


def test_while_and_if(result_of, image, conv):
    @tf.function
    def function(x, n):
        y = tf.nn.relu(conv(x, 16))
        i = tf.constant(0)
        while i < n:
            y = y * 0.5 + 1.0
            i += 1
        if tf.reduce_sum(y) > 0.0:
            y = -y
        return conv(y, 16)

    result = result_of(function, tf.TensorSpec([None, 6, 6, 16]), tf.TensorSpec([], tf.int32))
    assert result.blockdnn["Conv"] == 2
    assert {"While", "StatelessWhile"} & set(result.ops)
    assert {"If", "StatelessIf"} & set(result.ops)
    for n in (0, 3):
        result.assert_same(image(2, 6, 6, 16), tf.constant(n))


@pytest.mark.parametrize("assigns", [False, True])
def test_weights_passed_into_a_loop_are_read_only_unless_it_assigns(
    assigns, rewrite, weights, image
):
    kernel = weights(3, 3, 16, 16)

    def body(i, y):
        if assigns:
            kernel.assign(kernel * 0.5)
        return i + 1, y * tf.reduce_mean(kernel)

    def function(x):
        y = tf.while_loop(lambda i, y: i < 2, body, [0, x])[1]
        return tf.nn.conv2d(y, kernel, **_SAME)

    result = rewrite(function, [1, 6, 6, 16], tolerance=None)
    assert result.blockdnn.get("Conv", 0) == (0 if assigns else 1)


def test_a_hash_table(weights, image):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.kernel = weights(3, 3, 3, 8)
            initializer = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0])
            self.table = tf.lookup.StaticHashTable(initializer, 0.0)

        @tf.function(
            input_signature=[tf.TensorSpec([1, 6, 6, 3]), tf.TensorSpec([None], tf.string)]
        )
        def __call__(self, x, keys):
            return tf.nn.conv2d(x, self.kernel, **_SAME), self.table.lookup(keys)

    model = Model()
    concrete = model.__call__.get_concrete_function()
    rewritten = optimize_concrete(concrete, roots=[model])
    got = rewritten.concrete(image(1, 6, 6, 3), tf.constant(["b", "?"]))
    np.testing.assert_array_equal(got[1], [2.0, 0.0])
    assert any(item is model.table for item in rewritten.trackables)


def test_nested_functions_are_inlined(result_of, image, conv):
    @tf.function
    def inner(x):
        return tf.nn.relu(conv(x, 16))

    @tf.function
    def function(x):
        return inner(inner(x))

    result = result_of(function, tf.TensorSpec([None, 6, 6, 16]))
    assert result.blockdnn == {"Conv": 2, "Reorder": 2}
    result.assert_same(image(1, 6, 6, 16))


def test_captured_tensors_are_constants(result_of, image, monkeypatch):
    random = np.random.default_rng(0)
    kernel, scale = (
        tf.constant(random.standard_normal(shape), tf.float32) for shape in ([3, 3, 3, 8], [8])
    )
    table = tf.constant(random.standard_normal([300, 8]), tf.float32)
    order = tf.reverse(tf.range(8), [0])
    monkeypatch.setattr(capture, "_MAX_EMBEDDED_BYTES", 300 * 8 * 4 - 1)

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 3]), tf.TensorSpec([], tf.int32)])
    def function(x, row):
        y = tf.nn.conv2d(x, kernel, **_SAME) / scale
        return tf.gather(y, order, axis=3) + tf.gather(table, row)

    concrete = function.get_concrete_function()
    assert {id(kernel), id(table)} <= {id(tensor) for tensor in concrete.captured_inputs}
    result = result_of(concrete)
    assert result.blockdnn["Conv"] == 1
    assert "RealDiv" not in result.ops
    captured = [id(tensor) for tensor in result.concrete.captured_inputs]
    assert id(table) in captured and id(kernel) not in captured
    result.assert_same(image(2, 6, 6, 3), tf.constant(7))


def test_rewriting_twice_changes_nothing(rewrite, image, conv):
    result = rewrite(lambda x: tf.nn.relu(conv(x, 16)), [1, 6, 6, 16])
    again = optimize_concrete(result.concrete)
    assert again.report.converted == []
    x = image(1, 6, 6, 16)
    np.testing.assert_array_equal(again.concrete(x), result.concrete(x))


def _version_1_graph():
    """A loop and a condition as TensorFlow 1 wrote them: Enter, Switch, Merge, Exit."""
    rng = np.random.default_rng(3)
    kernel = rng.standard_normal([3, 3, 16, 16]).astype(np.float32) * 0.1
    with tf.Graph().as_default() as graph:
        tf.compat.v1.disable_control_flow_v2()
        x = tf.compat.v1.placeholder(tf.float32, [None, 6, 6, 16], name="x")
        y = tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME))
        _, y = tf.compat.v1.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, y * 0.9), [tf.constant(0), y]
        )
        y = tf.cond(tf.reduce_sum(y) > 0.0, lambda: -y, lambda: y)
        tf.nn.conv2d(tf.reshape(y, [-1, 6, 6, 16]), kernel, **_SAME, name="out")
        tf.compat.v1.enable_control_flow_v2()
    return graph.as_graph_def()


def test_control_flow_of_version_1(image):
    graph_def = _version_1_graph()
    assert {"Enter", "Switch", "Merge"} <= {node.op for node in graph_def.node}
    imported = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(graph_def, name=""), [])
    original = imported.prune("x:0", "out:0")
    rewritten = optimize_concrete(original)
    assert rewritten.report.count("BlockdnnConv") == 2
    x = image(2, 6, 6, 16)
    np.testing.assert_allclose(rewritten.concrete(x), original(x), atol=1e-5)


def test_ragged_inputs_and_sparse_outputs(image, conv):
    @tf.function
    def function(x, ragged):
        sparse = tf.sparse.from_dense(ragged.to_tensor())
        return {"y": conv(x, 16), "twice": ragged * 2.0, "sparse": sparse}

    concrete = function.get_concrete_function(
        tf.TensorSpec([None, 6, 6, 16]), tf.RaggedTensorSpec([None, None], tf.float32)
    )
    rewritten = optimize_concrete(concrete)
    result = rewritten.concrete(image(1, 6, 6, 16), tf.ragged.constant([[1.0, 2.0], [3.0]]))
    assert result["twice"].to_list() == [[2.0, 4.0], [6.0]]
    np.testing.assert_array_equal(result["sparse"].values, [1.0, 2.0, 3.0])
    assert rewritten.report.count("BlockdnnConv") == 1


def test_assertions_still_fire(rewrite, image, conv):
    def function(x):
        tf.debugging.assert_less(tf.reduce_max(x), 100.0)
        return conv(x, 16)

    result = rewrite(function, [None, 6, 6, 16])
    with pytest.raises(tf.errors.InvalidArgumentError):
        result.concrete(image(1, 6, 6, 16) + 1000.0)


def _xla_attributes(result):
    graph_def = result.concrete.graph.as_graph_def()
    return [f.signature.name for f in graph_def.library.function if f.attr["_XlaMustCompile"].b]


@pytest.mark.parametrize("calls", [1, 3])
def test_what_users_compile_by_xla_is_converted_where_all_sums_are(result_of, image, calls, conv):
    @tf.function
    def layer(x):
        return tf.nn.relu(conv(x, 16))

    compiled = tf.function(lambda x: layer(x) * 0.5, jit_compile=True)

    @tf.function
    def function(x):
        for _ in range(calls):
            x = compiled(x)
        return x

    result = result_of(function, tf.TensorSpec([1, 6, 6, 16]))
    assert result.blockdnn["Conv"] == calls
    assert not _xla_attributes(result) and not result.report.declined
    result.assert_same(image(1, 6, 6, 16))


@pytest.mark.parametrize(
    "left",
    [
        lambda x: tf.nn.conv2d(x, x[0, :3, :3, :, None] * tf.ones([16]), 1, "SAME"),
        tf.nn.relu,
    ],
    ids=["sum", "no sum"],
)
def test_what_else_users_compile_by_xla_stays_compiled(result_of, image, conv, left):
    plain = tf.function(lambda x: conv(x, 16))
    both = left if left is tf.nn.relu else lambda x: left(conv(x, 16))
    compiled = tf.function(both, jit_compile=True)
    result = result_of(tf.function(lambda x: plain(compiled(x))), tf.TensorSpec([1, 6, 6, 16]))
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    assert len(_xla_attributes(result)) == 1
    assert any("XLA compiles it" in reason for _, reason in result.report.declined)
    result.assert_same(image(1, 6, 6, 16))


def test_a_function_compiled_by_xla_is_kept(conv):
    function = tf.function(lambda x: conv(x, 16), jit_compile=True)
    concrete = function.get_concrete_function(tf.TensorSpec([1, 6, 6, 16]))
    rewritten = optimize_concrete(concrete)
    assert rewritten.concrete is concrete
    ((name, reason),) = rewritten.report.declined
    assert "jit_compile" in reason and isinstance(name, str)


def _of_unknown_shape(x):
    """The same image, of which no op tells the shape."""
    return tf.reshape(x, tf.shape(x) + tf.cast(0.0 * x[0, 0, 0, 0], tf.int32))


def _stated(y):
    y.set_shape([None, 6, 6, 16])
    return y


_STATED = {
    "the tensor": lambda x: _stated(_of_unknown_shape(x)),
    "an identity of it": lambda x: _stated(tf.identity(_of_unknown_shape(x))),
    "what Python makes": lambda x: _stated(tf.numpy_function(np.copy, [x], tf.float32)),
    "in a function of its own": lambda x: tf.function(lambda y: _STATED["the tensor"](y))(x),
    "channels alone": lambda x: _stated(_of_unknown_shape(x)) * 2.0,
}


@pytest.mark.parametrize("what", _STATED)
def test_a_shape_that_was_stated_is_known(what, rewrite, weights, tmp_path):
    """`set_shape` is no op, and no graph definition has it."""
    kernel = weights(3, 3, 16, 16)
    function = lambda x: tf.nn.conv2d(_STATED[what](x), kernel, **_SAME)  # noqa: E731
    result = rewrite(function, [None, 6, 6, 16])
    assert result.report.count("BlockdnnConv") == 1, result.report.summary()
    assert result.concrete.output_shapes == [None, 6, 6, 16]
    if what == "what Python makes":
        return  # No SavedModel has it.
    module = tf.Module()
    module.kernel = kernel
    module.function = tf.function(function, input_signature=[tf.TensorSpec([None, 6, 6, 16])])
    tf.saved_model.save(module, tmp_path, signatures=module.function)
    loaded = tf.saved_model.load(tmp_path)
    rewritten = optimize_concrete(loaded.signatures["serving_default"])
    assert rewritten.report.count("BlockdnnConv") == 1, rewritten.report.summary()


def test_a_spectrogram_is_convolved(rewrite, floats, conv):
    """tf.signal states the frames' length, which it computes."""

    def function(sound):
        picture = tf.abs(tf.signal.stft(sound, 64, 32))[..., None]
        return conv(picture, 16)

    result = rewrite(function, [None, None], tolerance=None)
    assert result.report.count("BlockdnnConv") == 1, result.report.summary()
    result.assert_same(floats(2, 640), tolerance=2e-5)
