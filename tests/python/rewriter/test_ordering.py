"""Effects happen once a call and in their order; nothing waits for what has none."""

import pytest
import tensorflow as tf

from tf_blockdnn import Options
from tf_blockdnn.python.targets import optimize

_SAME = {"strides": 1, "padding": "SAME"}


def test_side_effects_happen_once_a_call(rewrite, image, conv):
    count = tf.Variable(0)

    def function(x):
        count.assign_add(1)
        return conv(x, 8), count.read_value()

    result = rewrite(function, [1, 6, 6, 3], tolerance=None)
    x = image(1, 6, 6, 3)
    assert [result.concrete(x)[1].numpy() for _ in range(3)] == [1, 2, 3]
    assert count.numpy() == 3
    assert any(item is count for item in result.trackables)


@pytest.mark.parametrize("by", ["an edge", "data"])
def test_effects_that_only_a_read_of_weights_orders(by, rewrite, weights):
    """The read waits for nothing once it is a constant; what stood behind it still waits."""
    first, second = tf.Variable(0.0), tf.Variable(0.0)

    def function(x):
        with tf.control_dependencies([first.assign_add(1.0, read_value=False)]):
            read = weights(3, 3, 16, 16).read_value()
        if by == "data":
            second.assign(read[0, 0, 0, 0])
        else:
            with tf.control_dependencies([read]):
                second.assign(2.0)
        return tf.nn.conv2d(x, read, **_SAME)

    result = rewrite(function, [1, 6, 6, 16])
    reached = [op for op in result.concrete.graph.get_operations() if op.type == "AssignVariableOp"]
    assert len(reached) == 1
    for op in reached:
        sources = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
        reached += [source for source in sources if source not in reached]
    assert "AssignAddVariableOp" in {op.type for op in reached}
    assert result.blockdnn["Conv"] == 1


def test_nobody_waits_for_a_node_without_effects(rewrite, conv):
    """As outputs do beside an inlined call that TensorFlow lists as stateful."""

    def function(x):
        padded = tf.pad(conv(x, 16), [[0, 0], [1, 1], [2, 2], [0, 0]])
        with tf.control_dependencies([padded]):
            other = tf.identity(2.0 * x)
        return conv(padded, 16, 3, 1, "VALID"), other

    result = rewrite(function, [1, 6, 7, 8], options=Options(strict=True))
    assert result.blockdnn["Conv"] == 2 and not result.ops["Pad"]
    assert not result.report.declined
    assert not any(op.control_inputs for op in result.concrete.graph.get_operations())


def test_effects_behind_and_before_nodes_without_effects_keep_their_order(rewrite, image, conv):
    state = tf.Variable(1.0)

    def function(x):
        before = state.read_value()
        y = conv(before * x, 16, 1)
        with tf.control_dependencies([y]):  # the read comes before the assignment
            assigned = state.assign(3.0)
        with tf.control_dependencies([tf.nn.relu(assigned)]):
            after = state.read_value()
        return y, after

    result = rewrite(function, [1, 6, 7, 8], options=Options(strict=True), tolerance=None)
    x = image(1, 6, 7, 8)
    for _ in range(2):
        state.assign(1.0)
        y, after = result.concrete(x)
        state.assign(1.0)
        wanted, _ = result.original(x)
        assert after.numpy() == 3.0
        tf.debugging.assert_near(y, wanted, 1e-5, 1e-5)


@pytest.fixture
def fetching(weights):
    """fetching(*names) -> a pruned function and the numbers that it notes.

    It fetches a convolution and the named operations, which have no effects of their own: each
    reads or awaits one that notes a number.
    """

    def pruned(*names):
        kernel, table, notes = weights(3, 3, 16, 16), weights(4, 8), []

        def note(number):
            notes.append(int(number))
            return tf.constant(0)

        def noted(number):
            return tf.py_function(note, [number], tf.int32)

        def function(x):
            tf.nn.conv2d(x, kernel, **_SAME, name="conv")
            tf.identity(noted(1), name="identity")
            tf.identity_n([tf.constant(0), noted(2) + 1], name="identities")
            tf.raw_ops.ResourceGather(
                resource=table.handle, indices=noted(3), dtype=tf.float32, name="gather"
            )
            with tf.control_dependencies([noted(4)]):
                tf.constant(1.0, name="constant")
                tf.raw_ops.ReadVariableOp(resource=table.handle, dtype=tf.float32, name="read")

        wrapped = tf.compat.v1.wrap_function(function, [tf.TensorSpec([1, 6, 6, 16], name="x")])
        effects = [wrapped.graph.get_operation_by_name(name) for name in names]
        return wrapped.prune("x:0", ["conv:0", *effects]), notes

    return pruned


@pytest.mark.parametrize(
    ("name", "number"),
    [("identity", 1), ("identities", 2), ("gather", 3), ("constant", 4), ("read", 4)],
)
def test_effects_behind_a_fetched_operation_without_any(name, number, fetching, result_of, image):
    function, notes = fetching(name)
    result = result_of(function, options=Options(strict=True))
    assert result.blockdnn["Conv"] == 1
    result.concrete(image(1, 6, 6, 16))
    assert notes == [number]


@pytest.mark.parametrize("kind", ["call", "branch", "loop"])
def test_they_happen_inside_of_another_function(kind, fetching, image):
    function, notes = fetching("identity", "identities", "constant")

    @tf.function(input_signature=[tf.TensorSpec([1, 6, 6, 16])], autograph=False)
    def model(x):
        if kind == "call":
            return function(x)[0]
        if kind == "branch":
            return tf.cond(x[0, 0, 0, 0] < 1e9, lambda: function(x)[0], lambda: x)
        return tf.while_loop(lambda i, x: i < 1, lambda i, x: (i + 1, function(x)[0]), [0, x])[1]

    fast = optimize(model, options=Options(strict=True))
    assert fast.report.count("BlockdnnConv") == 1
    fast(image(1, 6, 6, 16))
    assert sorted(notes) == [1, 2, 4]
