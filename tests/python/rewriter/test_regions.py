"""Converted regions are one op each, in every graph: structure, numbers, callers, SavedModels."""

import numpy as np
import pytest
import tensorflow as tf
from graph_nodes import all_nodes
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd
from tf_blockdnn.python.graph import GraphView, Ref
from tf_blockdnn.python.rewriter.regions import REGION, form_regions
from tf_blockdnn.python.tensorflow_private import context

_SAME = {"strides": 1, "padding": "SAME"}


def outside(concrete):
    """Ops of the main graph; its functions are not looked into."""
    return [op.type for op in concrete.graph.get_operations()]


def image(n=1, size=9, seed=3):
    return tf.random.stateless_normal([n, size, size, 32], [seed, 5])


@pytest.fixture
def network():
    kernels = [tf.Variable(tf.random.stateless_normal([3, 3, 32, 32], [i, 7])) for i in range(3)]

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 32])])
    def function(x):
        for kernel in kernels:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel * 0.1, **_SAME) + x)
        return {"y": x, "scores": tf.nn.softmax(tf.reduce_mean(x, [1, 2]))}

    function.kernels = kernels
    return function


def test_a_network_is_one_region(network):
    fast = bd.optimize(network)
    assert outside(fast.concrete).count(REGION) == 1
    assert set(outside(fast.concrete)) <= {
        *(REGION, "Placeholder", "ReadVariableOp", "Identity", "NoOp")
    }
    (node,) = [op for op in fast.concrete.graph.get_operations() if op.type == REGION]
    assert [tensor.shape.rank for tensor in node.outputs] == [4, 2]
    body = node.get_attr("f").name
    functions = {f.signature.name for f in fast.concrete.graph.as_graph_def().library.function}
    assert body in functions
    assert [n.op for n in all_nodes(fast.concrete)].count("BlockdnnConv") == 3


def test_what_is_joined_in_a_region_needs_no_threads_of_tensorflow(rewrite, weights):
    """Heads of a detector; the order of words is joined outside, where nothing else is ours."""
    kernels = [weights(3, 3, 32, 12), weights(3, 3, 32, 24)]

    def function(x, words):
        heads = [tf.reshape(tf.nn.conv2d(x, k, **_SAME), [-1, 162, 6]) for k in kernels[:1]]
        heads += [tf.reshape(tf.nn.conv2d(x, k, **_SAME), [-1, 324, 6]) for k in kernels[1:]]
        return tf.concat(heads, 1), tf.strings.length(tf.concat([words, words], 0))

    result = rewrite(function, [None, 9, 9, 32], tf.TensorSpec([None], tf.string))
    assert (result.blockdnn["Join"], result.ops["ConcatV2"]) == (1, 1)
    result.assert_same(image(2), tf.constant(["of", "words"]))


def test_what_stays_with_tensorflow_stands_between_regions(rewrite, conv):
    def function(x):
        y = tf.nn.relu(conv(x, 32))
        y = tf.linalg.cholesky(tf.matmul(y, y, transpose_b=True) + 99.0 * tf.eye(9)) @ y
        return tf.nn.relu(conv(y, 32)) + x

    result = rewrite(function, [2, 9, 9, 32])
    assert outside(result.concrete).count(REGION) == 2
    result.assert_same(image(2) * 0.1, tolerance=1e-4)


def test_one_op_alone_is_no_region(rewrite, conv):
    result = rewrite(lambda x: tf.linalg.qr(conv(x, 32))[1], [1, 9, 9, 3])
    assert REGION not in outside(result.concrete) or result.blockdnn != {"Conv": 1}


# Random graphs of ops that may join a region, ops that may not, and constants.
@settings(max_examples=20)
@given(st.data())
def test_random_graphs_keep_their_values(data):
    steps = data.draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 99), st.integers(0, 99)),
            min_size=2,
            max_size=20,
        )
    )
    returned = data.draw(st.lists(st.integers(0, 99), min_size=1, max_size=3))
    ops = [tf.add, tf.multiply, tf.maximum, lambda a, b: tf.sin(a) + b, lambda a, b: tf.cos(b)]
    ops.append(lambda a, b: tf.split(a, 2)[1] if a.shape == [2] else tf.concat([a, b], 0)[:2])

    def body(x):
        values = [x, tf.constant([0.5, -1.0])]
        for op, a, b in steps:
            a, b = values[a % len(values)], values[b % len(values)]
            values.append(tf.reshape(ops[op](a, b), [-1])[:2] + tf.zeros([2]))
        return [values[i % len(values)] for i in returned]

    concrete = tf.function(body).get_concrete_function(tf.TensorSpec([2]))
    graph_def = concrete.graph.as_graph_def()
    # Additions stand for ops of ours.
    view = GraphView(graph_def, [Ref.parse(t.name) for t in concrete.outputs])
    shapes = {op.name: op.outputs for op in concrete.graph.get_operations()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "tf_blockdnn.python.rewriter.regions.is_ours", lambda node: node.op == "AddV2"
        )
        bodies = form_regions(view, lambda ref: shapes[ref.node][ref.port].shape)
    view.library.function.extend(bodies)
    for definition in bodies:  # as rebuilding does: importing a graph does not tell the runtime
        context.context().add_function_def(definition)
    (argument,) = (tensor.op.name for tensor in concrete.inputs)

    def rewritten(x):
        graph_def = view.to_graph_def()
        graph_def.node.remove(next(n for n in graph_def.node if n.name == argument))
        return tf.graph_util.import_graph_def(
            graph_def, {f"{argument}:0": x}, [f"{r.node}:{r.port}" for r in view.fetches], name=""
        )

    x = tf.constant([0.25, 1.5])
    is_read = any(ref.node == argument for node in view for ref in node.inputs)
    if not is_read or any(ref.node == argument for ref in view.fetches):
        return  # nothing to hand x to, or x itself is a result
    # One function, since another of the same graph would take the region's body with it.
    function = tf.function(rewritten, autograph=False)
    # Eagerly: Grappler of TensorFlow 2.21 makes x of maximum(x, x + x + 0).
    expected = body(x)
    for _ in range(2):
        for got, wanted in zip(function(x), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_saved_loaded_and_called_in_other_functions(network, tmp_path):
    fast = bd.optimize(network)
    wanted = fast(image(2))
    fast.save(tmp_path / "fast")
    loaded = tf.saved_model.load(str(tmp_path / "fast")).signatures["serving_default"]
    inside = tf.function(lambda x: fast(x))
    for call in (loaded, inside, fast.concrete):
        for _ in range(4):  # op by op, recorded, planned
            tf.nest.map_structure(np.testing.assert_array_equal, call(image(2)), wanted)
    for n, size in ((1, 9), (3, 7), (2, 9)):
        tf.nest.map_structure(
            np.testing.assert_array_equal, loaded(image(n, size)), fast(image(n, size))
        )


def test_in_a_map_of_a_dataset(network):
    fast = bd.optimize(network)
    images = tf.concat([image(1, seed=seed) for seed in range(12)], 0)
    wanted = [fast(x[None])["scores"].numpy()[0] for x in images]
    dataset = tf.data.Dataset.from_tensor_slices(images).map(
        lambda x: fast(x[None])["scores"][0], num_parallel_calls=4
    )
    for got, want in zip(dataset, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_several_callers_of_one_graph(network, in_threads):
    fast = bd.optimize(network)
    inside = tf.function(lambda x: fast(x)["y"])
    inputs = [image(1 + i % 2, seed=i) for i in range(6)]
    wanted = [inside(x).numpy() for x in inputs]

    def run(i):
        for _ in range(30):
            np.testing.assert_array_equal(inside(inputs[i]), wanted[i])

    in_threads(6, run)


def test_a_new_value_of_a_variable_is_read(network):
    fast = bd.optimize(network, options=bd.Options(algorithm="direct"))
    inside = tf.function(lambda x: fast(x)["y"])
    (bundle,) = (v for v in fast.trackables if isinstance(v, tf.Variable))
    before = [inside(image()).numpy() for _ in range(4)][-1]
    bundle.assign(bundle * 0.0)
    after = inside(image()).numpy()
    assert not np.array_equal(before, after)
    np.testing.assert_allclose(after, tf.nn.relu(image()), atol=1e-6)
