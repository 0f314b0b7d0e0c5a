"""Symbolic shapes: equal branches are proven equal for any input size."""

import functools

import keras
import pytest
import tensorflow as tf

from tf_blockdnn.python.graph import GraphView, Ref, Shapes
from tf_blockdnn.python.graph.symbolic import Expr
from tf_blockdnn.python.rewriter.capture import capture, static_shapes


def _shapes(build, shape=(None, None, None, 8), asked=None):
    graph = tf.Graph()
    with graph.as_default():
        build(tf.compat.v1.placeholder(tf.float32, shape, name="x"))
    static = {
        op.name: [None if t.shape.rank is None else tuple(t.shape.as_list()) for t in op.outputs]
        for op in graph.get_operations()
    }
    known = {
        op.name: static[op.name][0] for op in graph.get_operations() if op.type == "Placeholder"
    }
    return Shapes(GraphView(graph.as_graph_def(), []), known, asked or (lambda *_: static))


def _conv(x, channels, kernel, stride, padding="SAME", name=None):
    weights = tf.zeros([kernel, kernel, x.shape[-1], channels])
    return tf.nn.conv2d(x, weights, stride, padding, name=name)


def test_residual_branches_are_equal_for_any_size():
    def build(x):
        _conv(_conv(x, 4, 3, 2), 16, 1, 1, name="long")
        _conv(x, 16, 1, 2, "VALID", name="short")

    shapes = _shapes(build)
    assert shapes.equal(Ref("long"), Ref("short"))


def test_branches_that_differ_by_a_pixel_are_not_equal():
    def build(x):
        _conv(x, 16, 3, 1, "VALID", name="valid")
        _conv(x, 16, 3, 1, "SAME", name="same")

    assert not _shapes(build).equal(Ref("valid"), Ref("same"))


def test_an_unknown_size_is_not_taken_for_one():
    def build(x):
        tf.reduce_mean(x, [1, 2], keepdims=True, name="mean")
        tf.identity(x, name="same")

    shapes = _shapes(build)
    assert not shapes.equal(Ref("mean"), Ref("x"))
    assert shapes.shape(Ref("mean"))[1:] == (1, 1, 8)
    assert shapes.shape(Ref("mean"))[0] == shapes.shape(Ref("x"))[0]


def test_two_inputs_are_not_equal():
    def build(x):
        tf.compat.v1.placeholder(tf.float32, [None, None, None, 8], name="y")

    assert not _shapes(build).equal(Ref("x"), Ref("y"))


def test_an_unknown_rank_is_equal_to_nothing():
    shapes = _shapes(lambda x: tf.nn.relu(x, name="r"), shape=None)
    assert shapes.shape(Ref("r")) is None
    assert not shapes.equal(Ref("r"), Ref("x"))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pools_follow_windows(padding):
    shapes = _shapes(lambda x: tf.nn.max_pool2d(x, 3, 2, padding, name="p"), (2, 11, 12, 8))
    expected = (2, 6, 6, 8) if padding == "SAME" else (2, 5, 5, 8)
    assert shapes.shape(Ref("p")) == expected


def test_pads_add_to_unknown_sizes():
    def build(x):
        padded = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        _conv(padded, 8, 3, 1, "VALID", name="c")

    shapes = _shapes(build)
    assert shapes.equal(Ref("c"), Ref("x"))


def test_reshape_to_a_computed_batch():
    def build(x):
        mean = tf.reduce_mean(x, [1, 2])
        tf.reshape(mean, tf.stack([tf.shape(mean)[0], 1, 1, 8]), name="r")

    shapes = _shapes(build)
    assert shapes.shape(Ref("r")) == (shapes.shape(Ref("x"))[0], 1, 1, 8)


def test_flattening_fills_in_the_batch():
    shapes = _shapes(lambda x: tf.reshape(x, [-1, 5 * 7 * 8], name="r"), (None, 5, 7, 8))
    assert shapes.shape(Ref("r")) == (shapes.shape(Ref("x"))[0], 280)


def test_concat_adds_channels_and_keeps_unknown_sizes():
    shapes = _shapes(lambda x: tf.concat([x, x, tf.nn.relu(x)], 3, name="c"))
    assert shapes.shape(Ref("c")) == (*shapes.shape(Ref("x"))[:3], 24)


def test_rounding_up_to_a_multiple_stays_symbolic_and_cancels():
    def build(x):
        height = tf.shape(x)[1]
        extra = tf.math.floormod(2 - tf.math.floormod(height, 2), 2)
        tf.identity(tf.stack([height + extra, extra]), name="sizes")

    padded, extra = _shapes(build).value(Ref("sizes"))
    assert isinstance(padded, Expr) and isinstance(extra, Expr)
    assert padded - extra == _shapes(build).shape(Ref("x"))[1]


def test_tensorflow_is_asked_only_about_ops_without_a_rule():
    def ruled(x):
        y = tf.nn.relu(_conv(x, 8, 3, 2))
        tf.nn.softmax(tf.matmul(tf.reduce_mean(y, [1, 2]), tf.zeros([8, 4])), name="out")

    def never():
        raise AssertionError("asked")

    shapes = _shapes(ruled, asked=never)
    assert shapes.shape(Ref("out")) == (shapes.shape(Ref("x"))[0], 4)

    shapes = _shapes(lambda x: tf.image.rgb_to_hsv(x, name="out"), (None, 5, 5, 3))
    assert shapes.shape(Ref("out"))[1:] == (5, 5, 3)


def test_squeezing_an_axis_of_unknown_size_drops_it():
    shapes = _shapes(lambda x: tf.squeeze(x, [1, 2], name="s"))
    assert shapes.shape(Ref("s")) == (shapes.shape(Ref("x"))[0], 8)
    shapes = _shapes(lambda x: tf.squeeze(x, name="s"), (1, 1, 5, 8))
    assert shapes.shape(Ref("s")) == (5, 8)


def test_products_of_heads_keep_unknown_sizes():
    def build(x):
        y = tf.transpose(x, [0, 2, 1, 3])
        scores = tf.matmul(y, y, transpose_b=True, name="matmul")
        tf.einsum("btnh,bsnh->bnts", x, x, name="einsum")
        tf.where(tf.fill(tf.shape(scores), True), scores, 0.0, name="select")

    shapes = _shapes(build, (None, None, 4, 8))
    batch, rows, _, _ = shapes.shape(Ref("x"))
    for name in ("matmul", "einsum/Einsum", "select"):
        assert shapes.shape(Ref(name)) == (batch, 4, rows, rows)


def test_new_axes_and_repeated_heads_keep_unknown_sizes():
    def build(x):
        tf.identity(x[:, None, ..., :], name="ellipsis")
        tf.identity(x[None, :, :, :, None], name="axes")
        tf.tile(x, [1, 1, 3, 1], name="tile")
        tf.broadcast_to(
            x[:, :, :, None], tf.shape(tf.tile(x[:, :, :, None], [1, 1, 1, 3, 1])), "to"
        )

    shapes = _shapes(build, (None, None, 4, 8))
    batch, rows, _, _ = shapes.shape(Ref("x"))
    assert shapes.shape(Ref("axes")) == (1, batch, rows, 4, 1, 8)
    assert shapes.shape(Ref("tile")) == (batch, rows, 12, 8)
    assert shapes.shape(Ref("to")) == (batch, rows, 4, 3, 8)


def test_a_slice_of_an_axis_is_of_another_size():
    def build(x):
        tf.identity(x[:, 1:], name="part")
        tf.identity(x[:, ::2], name="every_second")

    shapes = _shapes(build, (None, None, 4, 8))
    for name in ("part", "every_second"):
        assert shapes.shape(Ref(name))[1] != shapes.shape(Ref("x"))[1]


def test_slices_updates_and_gathers_at_computed_places_ask_nobody():
    made = {}

    def build(x):
        at = tf.cast(tf.reduce_max(x), tf.int32)
        made["part"] = tf.slice(x, [0, at, 0, 0], [2, 1, 9, 8])
        made["cache"] = keras.ops.slice_update(x, [0, at, 0, 0], x[:, :1])
        made["rows"] = tf.gather(x, at + [[1, 2, 3]], axis=1)
        made["one"] = tf.gather(x, at, axis=-1)
        made["each"] = tf.gather(x, at + tf.zeros([2, 5], tf.int32), axis=1, batch_dims=1)

    shapes = _shapes(build, (2, 7, 9, 8), asked=lambda *_: pytest.fail("asked TensorFlow"))
    for name, tensor in made.items():
        assert shapes.shape(Ref(tensor.op.name)) == tuple(tensor.shape), name


def test_slices_of_known_sizes_ask_nobody():
    slices = {
        "some": lambda x: x[1:, ::2, -3:, :5],
        "back": lambda x: x[::-1, 5:1:-2, 8::-3, ::-1],
        "none": lambda x: x[1:1, 9:, -20:2, 3],
        "more": lambda x: x[..., tf.newaxis, 2:-2],
    }
    made = {}

    def build(x):
        made.update((name, cut(x)) for name, cut in slices.items())

    shapes = _shapes(build, (2, 7, 9, 8), asked=lambda *_: pytest.fail("asked TensorFlow"))
    for name, tensor in made.items():
        assert shapes.shape(Ref(tensor.op.name)) == tuple(tensor.shape), name


def test_windows_and_parts_of_pictures_come_back_as_the_batch():
    def build(x):
        windows = tf.reshape(x, [-1, 8, 7, 8, 7, 8])
        windows = tf.reshape(tf.transpose(windows, [0, 1, 3, 2, 4, 5]), [-1, 49, 8])
        count = tf.shape(windows)[0]
        parts = tf.transpose(tf.reshape(windows, [count, 49, 2, 4]), [2, 0, 1, 3])
        first, _ = tf.unstack(parts, name="parts")
        tf.reshape(first, [count // 64, 64 * 49, 4], name="back")

    shapes = _shapes(build, (None, 56, 56, 8), lambda *_: pytest.fail("asked"))
    batch = shapes.shape(Ref("x"))[0]
    assert shapes.shape(Ref("parts")) == shapes.shape(Ref("parts", 1)) == (64 * batch, 49, 4)
    assert shapes.shape(Ref("back")) == (batch, 64 * 49, 4)


def test_lists_have_the_length_with_which_they_were_made():
    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 8])])
    def stacked(x):
        mapped = tf.map_fn(lambda row: tf.reduce_sum(row, [0, 1]), x)
        scanned = tf.scan(lambda sum, row: sum + row, x)
        return mapped, scanned, _written(x, tf.TensorArray(tf.float32, 0, dynamic_size=True))

    body = capture(stacked.get_concrete_function()).main
    batch = body.shapes.shape(Ref(body.inputs[0]))[0]
    mapped, scanned, grown = map(body.shapes.shape, body.view.fetches)
    assert mapped == (batch, 8)
    assert scanned == (batch, 6, 6, 8)
    assert grown[0] not in (batch, 0) and grown[1:] == (6, 6, 8)


def _written(x, array):
    """The rows of x, and zeros behind them, as an array of any length takes them."""
    written = tf.while_loop(
        lambda i, array: i <= tf.shape(x)[0],
        lambda i, array: (i + 1, array.write(i, tf.zeros([6, 6, 8]))),
        (0, array),
    )
    return written[1].stack()


def test_what_counts_to_a_size_is_of_that_size():
    def build(x):
        batch = tf.shape(x)[0]
        tf.range(batch, name="all")
        tf.range(batch - 2, name="less")
        tf.range(1, batch, name="from_one")
        tf.range(0, batch, 2, name="even")

    shapes = _shapes(build)
    batch = shapes.shape(Ref("x"))[0]
    assert shapes.shape(Ref("all")) == (batch,)
    for name in ("less", "from_one", "even"):
        (size,) = shapes.shape(Ref(name))
        assert size not in (batch, batch - 2, batch - 1)


def test_the_largest_of_each_row():
    def build(x):
        tf.math.top_k(x, 3, name="top")
        tf.argmax(x, -1, name="place")
        tf.reduce_any(tf.zeros_like(x) > 0, [1], name="any")

    shapes = _shapes(build, (None, None, 4, 8), lambda *_: pytest.fail("asked"))
    batch, rows, *_ = shapes.shape(Ref("x"))
    assert shapes.shape(Ref("top")) == shapes.shape(Ref("top", 1)) == (batch, rows, 4, 3)
    assert shapes.shape(Ref("place")) == (batch, rows, 4)
    assert shapes.shape(Ref("any")) == (batch, 4, 8)


def test_tensorflow_is_asked_about_one_op_with_the_constants_that_it_reads():
    asked = []

    def static(graph_def, given):
        nodes = {node.name: node for node in graph_def.node}
        assert len(nodes) == len(graph_def.node)
        asked.append([(nodes[name].op, given.get(name)) for name in nodes["out"].input])
        return {"out": [(5, 3)]}

    def build(x):
        rows = tf.raw_ops.Abs(x=x, name="rows")
        sums = tf.raw_ops.Neg(x=x, name="rows/0")  # which would stand for the rows
        tf.raw_ops.UnsortedSegmentSum(data=rows, segment_ids=[1], num_segments=5, name="out")
        tf.raw_ops.Abs(x=sums, name="others")

    shapes = _shapes(build, (1, None), asked=static)
    assert shapes.shape(Ref("out")) == (5, 3)
    assert asked == [[("Placeholder", (1, (1, None))), ("Const", None), ("Const", None)]]


def test_tensorflow_is_told_the_sizes_that_are_known_of_a_shape():
    """By what it is asked, it must itself be able to tell what it could of the whole graph."""

    def build(x):
        batch, some = tf.shape(x)[0], tf.shape(tf.where(x > 0))[0]
        for name, rows in ("symbol", batch), ("no_symbol", some // batch):
            shape = tf.stack([rows, 4, 5])
            tf.raw_ops.ParameterizedTruncatedNormal(
                shape=shape, means=0.0, stdevs=1.0, minvals=-1.0, maxvals=1.0, name=name
            )

    shapes = _shapes(build, (None, 4), asked=functools.partial(static_shapes, {}, {}))
    for name in "symbol", "no_symbol":
        assert shapes.shape(Ref(name))[1:] == (4, 5), name


def test_sizes_that_tensorflow_does_not_tell_are_no_questions():
    """Slices of computed sizes, even parts, and a reshape to a part of a product of sizes."""

    def build(x):
        batch, begin = tf.shape(x)[0], tf.compat.v1.placeholder(tf.int32, [3])
        tf.slice(tf.reshape(x, [8 * batch, 16, 4]), begin, [8 * batch, 3, 4], name="cut")
        tf.split(x, 4, -1, name="even")
        rows = tf.reshape(x, [batch * 64, 8])
        tf.reshape(rows, tf.stack([batch, 64, -1]), name="parts")
        tf.raw_ops.RandomUniform(shape=tf.stack([batch, 3]), dtype=tf.float32, name="random")
        tensors = tf.TensorArray(tf.float32, 2, element_shape=[3, 4]).write(1, x[0, 0, :3, :4])
        made["stacked"] = tensors.stack()
        tf.broadcast_to(x[:, :1, :1], [tf.maximum(batch, tf.shape(x)[0]), 3, 4, 8], name="spread")
        tf.no_op()

    made = {}
    shapes = _shapes(build, (None, 8, 8, 8), lambda *_: pytest.fail("asked"))
    batch = shapes.shape(Ref("x"))[0]
    assert shapes.shape(Ref("cut")) == (8 * batch, 3, 4)
    assert shapes.shape(Ref("even")) == shapes.shape(Ref("even", 3)) == (batch, 8, 8, 2)
    assert shapes.shape(Ref("parts")) == (batch, 64, 8)
    assert shapes.shape(Ref("random")) == (batch, 3)
    assert shapes.shape(Ref("spread")) == (batch, 3, 4, 8)
    assert shapes.shape(Ref(made["stacked"].op.name)) == (2, 3, 4)
