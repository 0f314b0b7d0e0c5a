"""Symbolic shapes: equal branches are proven equal for any input size."""

import functools

import keras
import pytest
import tensorflow as tf

from tf_blockdnn.python.graph import GraphView, Ref, Shapes
from tf_blockdnn.python.graph.symbolic import Expr
from tf_blockdnn.python.rewriter.capture import capture, static_shapes

_POOLS = tf.nn.max_pool3d, tf.nn.avg_pool3d


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


def _sizes(build, shape=(None, None, None, 8), asked=None):
    """The shape of x, and those of the tensors that `build` makes of it, in their structure."""
    result = []
    shapes = _shapes(lambda x: result.extend([x, build(x)]), shape, asked)
    return tf.nest.map_structure(lambda tensor: shapes.shape(Ref.parse(tensor.name)), result)


def _never(*_):
    pytest.fail("asked TensorFlow")


def _conv(x, channels, kernel, stride, padding="SAME"):
    return tf.nn.conv2d(x, tf.zeros([kernel, kernel, x.shape[-1], channels]), stride, padding)


def test_residual_branches_are_equal_for_any_size():
    _, (long, short) = _sizes(
        lambda x: [_conv(_conv(x, 4, 3, 2), 16, 1, 1), _conv(x, 16, 1, 2, "VALID")]
    )
    assert long == short


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_volumes_keep_their_batch(padding):
    def network(x):
        y = tf.nn.conv3d(x, tf.zeros([3, 3, 1, 8, 16]), [1, 2, 1, 1, 1], padding)
        return [y, *(pool(y, [2, 2, 1], [2, 1, 1], padding) for pool in _POOLS)]

    x, volumes = _sizes(network, (None, 9, 8, 7, 8), _never)
    assert {volume[0] for volume in volumes} == {x[0]}
    sizes = [(5, 8), (3, 8), (3, 8)] if padding == "SAME" else [(4, 6), (2, 5), (2, 5)]
    assert [volume[1:3] for volume in volumes] == sizes
    assert all(volume[3:] == (7, 16) for volume in volumes)


def test_branches_that_differ_by_a_pixel_are_not_equal():
    _, (valid, same) = _sizes(lambda x: [_conv(x, 16, 3, 1, "VALID"), _conv(x, 16, 3, 1)])
    assert valid != same


def test_an_unknown_size_is_not_taken_for_one():
    x, mean = _sizes(lambda x: tf.reduce_mean(x, [1, 2], keepdims=True))
    assert mean == (x[0], 1, 1, 8) != x


def test_two_inputs_are_not_equal():
    shapes = _shapes(lambda x: tf.compat.v1.placeholder(tf.float32, [None, None, None, 8], "y"))
    assert not shapes.equal(Ref("x"), Ref("y")) and shapes.equal(Ref("x"), Ref("x"))


def test_an_unknown_rank_is_equal_to_nothing():
    shapes = _shapes(lambda x: tf.nn.relu(x, name="r"), shape=None)
    assert shapes.shape(Ref("r")) is None
    assert not shapes.equal(Ref("r"), Ref("x"))


@pytest.mark.parametrize("padding, sizes", [("SAME", (6, 6)), ("VALID", (5, 5))])
def test_pools_follow_windows(padding, sizes):
    _, pooled = _sizes(lambda x: tf.nn.max_pool2d(x, 3, 2, padding), (2, 11, 12, 8))
    assert pooled == (2, *sizes, 8)


def test_pads_add_to_unknown_sizes():
    pads = [[0, 0], [1, 1], [1, 1], [0, 0]]
    x, y = _sizes(lambda x: _conv(tf.pad(x, pads), 8, 3, 1, "VALID"))
    assert x == y


def test_reshape_to_a_computed_batch():
    def build(x):
        mean = tf.reduce_mean(x, [1, 2])
        return tf.reshape(mean, tf.stack([tf.shape(mean)[0], 1, 1, 8]))

    x, y = _sizes(build)
    assert y == (x[0], 1, 1, 8)


def test_flattening_fills_in_the_batch():
    x, y = _sizes(lambda x: tf.reshape(x, [-1, 5 * 7 * 8]), (None, 5, 7, 8))
    assert y == (x[0], 280)


def test_concat_adds_channels_and_keeps_unknown_sizes():
    x, y = _sizes(lambda x: tf.concat([x, x, tf.nn.relu(x)], 3))
    assert y == (*x[:3], 24)


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
        return tf.nn.softmax(tf.matmul(tf.reduce_mean(y, [1, 2]), tf.zeros([8, 4])))

    x, y = _sizes(ruled, asked=_never)
    assert y == (x[0], 4)
    _, y = _sizes(tf.image.rgb_to_hsv, (None, 5, 5, 3))
    assert y[1:] == (5, 5, 3)


def test_squeezing_an_axis_of_unknown_size_drops_it():
    x, y = _sizes(lambda x: tf.squeeze(x, [1, 2]))
    assert y == (x[0], 8)
    assert _sizes(tf.squeeze, (1, 1, 5, 8))[1] == (5, 8)


def test_products_of_heads_keep_unknown_sizes():
    def build(x):
        y = tf.transpose(x, [0, 2, 1, 3])
        scores = tf.matmul(y, y, transpose_b=True)
        selected = tf.where(tf.fill(tf.shape(scores), True), scores, 0.0)
        return [scores, tf.einsum("btnh,bsnh->bnts", x, x), selected]

    (batch, rows, _, _), result = _sizes(build, (None, None, 4, 8))
    assert result == [(batch, 4, rows, rows)] * 3


def test_new_axes_and_repeated_heads_keep_unknown_sizes():
    def build(x):
        wide = x[:, :, :, None]
        return {
            "ellipsis": x[:, None, ..., :],
            "axes": x[None, :, :, :, None],
            "tile": tf.tile(x, [1, 1, 3, 1]),
            "to": tf.broadcast_to(wide, tf.shape(tf.tile(wide, [1, 1, 1, 3, 1]))),
        }

    (batch, rows, _, _), result = _sizes(build, (None, None, 4, 8))
    assert result == {
        "ellipsis": (batch, 1, rows, 4, 8),
        "axes": (1, batch, rows, 4, 1, 8),
        "tile": (batch, rows, 12, 8),
        "to": (batch, rows, 4, 3, 8),
    }


def test_a_slice_of_an_axis_is_of_another_size():
    x, result = _sizes(lambda x: [x[:, 1:], x[:, ::2]], (None, None, 4, 8))
    assert x[1] not in [y[1] for y in result]


@pytest.mark.parametrize(
    "build",
    [
        lambda x, at: tf.slice(x, [0, at, 0, 0], [2, 1, 9, 8]),
        lambda x, at: keras.ops.slice_update(x, [0, at, 0, 0], x[:, :1]),
        lambda x, at: tf.gather(x, at + [[1, 2, 3]], axis=1),
        lambda x, at: tf.gather(x, at, axis=-1),
        lambda x, at: tf.gather(x, at + tf.zeros([2, 5], tf.int32), axis=1, batch_dims=1),
        lambda x, at: x[1:, ::2, -3:, :5],
        lambda x, at: x[::-1, 5:1:-2, 8::-3, ::-1],
        lambda x, at: x[1:1, 9:, -20:2, 3],
        lambda x, at: x[..., tf.newaxis, 2:-2],
    ],
)
def test_parts_of_known_sizes_ask_nobody(build):
    """Slices, and updates and gathers at computed places."""
    known = []

    def noted(x):
        y = build(x, tf.cast(tf.reduce_max(x), tf.int32))
        known.append(tuple(y.shape))
        return y

    assert _sizes(noted, (2, 7, 9, 8), _never)[1] == known[0]


def test_windows_and_parts_of_pictures_come_back_as_the_batch():
    def build(x):
        windows = tf.reshape(x, [-1, 8, 7, 8, 7, 8])
        windows = tf.reshape(tf.transpose(windows, [0, 1, 3, 2, 4, 5]), [-1, 49, 8])
        count = tf.shape(windows)[0]
        parts = tf.unstack(tf.transpose(tf.reshape(windows, [count, 49, 2, 4]), [2, 0, 1, 3]))
        return [*parts, tf.reshape(parts[0], [count // 64, 64 * 49, 4])]

    (batch, *_), result = _sizes(build, (None, 56, 56, 8), _never)
    assert result == [(64 * batch, 49, 4)] * 2 + [(batch, 64 * 49, 4)]


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
        others = tf.range(batch - 2), tf.range(1, batch), tf.range(0, batch, 2)
        return tf.range(batch), others

    (batch, *_), (counted, others) = _sizes(build)
    assert counted == (batch,)
    assert not {size for (size,) in others} & {batch, batch - 2, batch - 1}


def test_the_largest_of_each_row():
    def build(x):
        most = tf.reduce_any(tf.zeros_like(x) > 0, [1])
        return [*tf.math.top_k(x, 3), tf.argmax(x, -1), most]

    (batch, rows, *_), result = _sizes(build, (None, None, 4, 8), _never)
    assert result == [(batch, rows, 4, 3)] * 2 + [(batch, rows, 4), (batch, 4, 8)]


def test_tensorflow_is_asked_about_one_op_with_the_constants_that_it_reads():
    asked = []

    def static(graph_def, inputs):
        nodes = {node.name: node for node in graph_def.node}
        assert len(nodes) == len(graph_def.node)
        asked.append([(nodes[name].op, inputs.get(name)) for name in nodes["out"].input])
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
        rows = tf.reshape(x, [batch * 64, 8])
        tensors = tf.TensorArray(tf.float32, 2, element_shape=[3, 4]).write(1, x[0, 0, :3, :4])
        tf.no_op()
        return [
            tf.slice(tf.reshape(x, [8 * batch, 16, 4]), begin, [8 * batch, 3, 4]),
            tf.split(x, 4, -1)[3],
            tf.reshape(rows, tf.stack([batch, 64, -1])),
            tf.raw_ops.RandomUniform(shape=tf.stack([batch, 3]), dtype=tf.float32),
            tf.broadcast_to(x[:, :1, :1], [tf.maximum(batch, tf.shape(x)[0]), 3, 4, 8]),
            tensors.stack(),
        ]

    (batch, *_), result = _sizes(build, (None, 8, 8, 8), _never)
    assert result[:3] == [(8 * batch, 3, 4), (batch, 8, 8, 2), (batch, 64, 8)]
    assert result[3:] == [(batch, 3), (batch, 3, 4, 8), (2, 3, 4)]
