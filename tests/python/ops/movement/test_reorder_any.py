"""bd.ops.reorder between any two descriptions, against a model in NumPy."""

import layout_model
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa
drawn = settings(max_examples=50)

DTYPES = ["float32", "bfloat16", "float16", "int32", "int8", "uint8"]
GROUPS = {}  # layouts of the same dimensions
for _layout in bd.TensorDesc.layouts():
    GROUPS.setdefault(layout_model.letters(_layout), []).append(_layout)


def as_numpy(dtype):
    return np.dtype(tf.dtypes.as_dtype(dtype).as_numpy_dtype)


@st.composite
def cases(draw):
    """(dims, src layout, dst layout), zero sizes among them."""
    letters = draw(st.sampled_from(sorted(GROUPS)))
    src, dst = draw(st.tuples(*[st.sampled_from(GROUPS[letters])] * 2))
    cut = layout_model.blocks(src) | layout_model.blocks(dst)
    least = draw(st.sampled_from([0, 1, 1, 1]))
    dims = [draw(st.integers(least, 40 if name in cut else 5)) for name in letters]
    return dims, src, dst


def values(dims, dtype, seed=0):
    """Numbers that every dtype can hold."""
    return np.random.default_rng(seed).integers(0, 128, dims).astype(as_numpy(dtype))


@drawn
@given(cases(), st.sampled_from(DTYPES))
def test_any_layout_to_any(case, dtype):
    dims, src, dst = case
    x = values(dims, dtype)
    src_desc, dst_desc = (bd.TensorDesc(dims, dtype, layout) for layout in (src, dst))
    there = bd.ops.reorder(layout_model.pack(x, src), src_desc, dst_desc)
    assert there.dtype == dtype
    np.testing.assert_array_equal(there, layout_model.pack(x, dst))
    back = bd.ops.reorder(there, dst_desc, src_desc)
    np.testing.assert_array_equal(back, layout_model.pack(x, src))


@drawn
@given(cases(), st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.integers(0, 9))
def test_any_type_to_any(case, src_dtype, dst_dtype, seed):
    dims, src, dst = case
    rng = np.random.default_rng(seed)
    x = rng.choice([0, 0.5, 1.5, 2.5, 126.5, 127.5, 255.5, 300, 65519, 65520, 3e9, 1e-7], dims)
    x = layout_model.convert(
        (x * rng.choice([1, -1], dims)).astype(np.float32), as_numpy(src_dtype)
    )
    y = bd.ops.reorder(
        layout_model.pack(x, src), bd.TensorDesc(dims, src_dtype, src), dst, dtype=dst_dtype
    )
    expected = x
    if src_dtype != dst_dtype:
        expected = layout_model.convert(x.astype(np.float32), as_numpy(dst_dtype))
    np.testing.assert_array_equal(y, layout_model.pack(expected, dst))


@drawn
@given(cases(), st.integers(0, 63), st.sampled_from(DTYPES), st.booleans(), st.integers(0, 9))
def test_scales_and_beta(case, mask, dtype, with_into, seed):
    dims, src, dst = case
    rng = np.random.default_rng(seed)
    x = rng.integers(-64, 64, dims).astype(np.float32)
    shape = [size if mask >> d & 1 else 1 for d, size in enumerate(dims)]
    scales = rng.choice([-0.5, 0.25, 3], shape).astype(np.float32)
    expected, more = x * scales, {}
    if with_into:
        into = rng.integers(0, 100, dims).astype(as_numpy(dtype))
        more = {"into": layout_model.pack(into, dst), "beta": -1.5}
        expected += np.float32(-1.5) * into.astype(np.float32)
    y = bd.ops.reorder(
        layout_model.pack(x, src),
        bd.TensorDesc(dims, layout=src),
        bd.TensorDesc(dims, dtype, dst),
        scales=scales,
        **more,
    )
    expected = layout_model.convert(expected, as_numpy(dtype))
    np.testing.assert_array_equal(y, layout_model.pack(expected, dst))


def test_blocked_tail_is_not_copied():
    garbage = np.full((1, 2, 2, 2, 16), np.nan, np.float32)
    garbage[:, 0] = 1
    garbage[:, 1, ..., 0] = 2
    plain = bd.ops.reorder(garbage, "nChw16c", "nhwc", channels=17)
    np.testing.assert_array_equal(plain, np.r_[np.ones(16), 2] * np.ones((1, 2, 2, 1)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_and_saturation(dtype):
    x = np.array([2.5, 3.5, -2.5, 1e10, -1e10, np.inf, -np.inf, np.nan, 2**31, -0.0, 254.5, 128])
    x = x.astype(np.float32)
    y = bd.ops.reorder(x, "x", "x", dtype=dtype)
    expected = layout_model.convert(x, as_numpy(dtype))
    np.testing.assert_array_equal(y.numpy().astype(np.float64), expected.astype(np.float64))
    if dtype == "int32":
        assert y.numpy().tolist()[3:9] == [2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0, 2**31 - 1]


def test_int32_keeps_every_digit():
    x = np.array([2**31 - 1, -(2**31), 2**24 + 1], np.int32)
    np.testing.assert_array_equal(bd.ops.reorder(x, "x", "x"), x)
    scaled = bd.ops.reorder(x, "x", "x", scales=1.0)  # in float32
    np.testing.assert_array_equal(scaled, [2**31 - 1, -(2**31), 2**24])


def test_a_part_of_an_image():
    image = np.arange(8 * 10 * 3, dtype=np.float32).reshape(1, 8, 10, 3)
    whole = bd.TensorDesc((1, 3, 8, 10), layout="nhwc")
    part = whole.submemory((1, 3, 2, 4), (0, 0, 5, 6))
    dense = bd.TensorDesc(part.dims, layout="nhwc")
    cut = bd.ops.reorder(image, part, dense)
    np.testing.assert_array_equal(cut, image[:, 5:7, 6:10])

    placed = bd.ops.reorder(cut * 0 - 1, dense, part, into=image)
    expected = image.copy()
    expected[:, 5:7, 6:10] = -1
    np.testing.assert_array_equal(placed, expected)
    np.testing.assert_array_equal(image, np.arange(240).reshape(1, 8, 10, 3))

    alone = bd.ops.reorder(cut, dense, part)
    flat = np.zeros(part.size, np.float32)
    flat[part.offsets()] = image[:, 5:7, 6:10].transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(alone, flat)


def test_a_padded_leading_dimension():
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    padded = bd.TensorDesc((3, 5), strides=(8, 1))
    there = bd.ops.reorder(x, bd.TensorDesc((3, 5), layout="nc"), padded)
    np.testing.assert_array_equal(there, np.pad(x, ((0, 0), (0, 3))).ravel()[: padded.size])
    np.testing.assert_array_equal(bd.ops.reorder(there, padded, "cn"), x.T)


def test_into_is_a_tensor_of_the_callers():
    """Its memory is taken over only where nobody else reads it."""
    into = tf.constant(np.full((4, 3), 2, np.float32))
    x = np.ones((3, 4), np.float32)
    src, dst = (bd.TensorDesc((3, 4), layout=layout) for layout in ("nc", "cn"))

    @tf.function
    def added(into):
        return bd.ops.reorder(x, src, dst, into=into + 1, beta=1.0)

    np.testing.assert_array_equal(bd.ops.reorder(x, src, dst, into=into, beta=1.0), 3)
    np.testing.assert_array_equal(added(into), 4)
    np.testing.assert_array_equal(into, 2)
    same = tf.constant(np.eye(3, dtype=np.float32) + 1)
    square = bd.TensorDesc((3, 3), layout="nc")
    y = bd.ops.reorder(same, square, bd.TensorDesc((3, 3), layout="cn"), into=same, beta=1.0)
    np.testing.assert_array_equal(y, 2 * same)


def test_dynamic_shapes_by_name():
    @tf.function(input_signature=[tf.TensorSpec([None, 17, None, 4], tf.int8)])
    def there(x):
        y = bd.ops.reorder(x, "nchw", "nChw8c", dtype=tf.float32)
        assert y.shape.as_list() == [None, 3, None, 4, 8]
        assert bd.ops.reorder(x, "nchw", "chwn").shape.as_list() == [17, None, 4, None]
        return y

    for n, h in [(1, 2), (3, 1), (0, 2)] + [(1, i) for i in range(3, 40)]:  # more than plans kept
        x = values((n, 17, h, 4), "int8")
        np.testing.assert_array_equal(there(x), layout_model.pack(x, "nChw8c"))


def test_unknown_channels_by_name():
    @tf.function(input_signature=[tf.TensorSpec([1, None, None])])
    def there(x):
        y = bd.ops.reorder(x, "nwc", "nCw16c")
        assert y.shape.as_list() == [1, None, None, 16]
        return y

    for w, c in [(2, 17), (3, 16), (1, 0)]:
        x = values((1, w, c), "float32")
        np.testing.assert_array_equal(there(x), layout_model.pack(x.transpose(0, 2, 1), "nCw16c"))


def test_shapes_are_known_while_a_graph_is_built():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None])
        strided = bd.TensorDesc((3, 4), strides=(8, 1))
        y = bd.ops.reorder(x, strided, bd.TensorDesc((3, 4), "int8", "nC16c"))
        assert (y.shape, y.dtype) == ((3, 1, 16), tf.int8)
        assert bd.ops.reorder(y, bd.TensorDesc((3, 4), "int8", "nC16c"), strided).shape == (20,)
        z = bd.ops.reorder(x, strided, strided, into=tf.zeros((5, 5)))
        assert z.shape == (5, 5)


@pytest.mark.parametrize("src,dst", [("nhwc", "nChw16c"), ("nChw16c", "nhwc")])
def test_graphs_of_before_there_were_more_attributes(src, dst):
    """A node with no more than T, src_layout, dst_layout and channels, as SavedModels have it."""
    plain = np.random.default_rng(3).standard_normal((1, 2, 3, 20)).astype(np.float32)
    by_layout = {
        "nhwc": plain,
        "nChw16c": layout_model.pack(plain.transpose(0, 3, 1, 2), "nChw16c"),
    }
    graph_def = tf.compat.v1.GraphDef()
    x = graph_def.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = tf.float32.as_datatype_enum
    node = graph_def.node.add(name="y", op="BlockdnnReorder", input=["x"])
    node.attr["T"].type = tf.float32.as_datatype_enum
    node.attr["src_layout"].s = src.encode()
    node.attr["dst_layout"].s = dst.encode()
    node.attr["channels"].i = 20

    @tf.function
    def run(x):
        return tf.graph_util.import_graph_def(graph_def, {"x": x}, ["y:0"])[0]

    np.testing.assert_array_equal(run(by_layout[src]), by_layout[dst])
