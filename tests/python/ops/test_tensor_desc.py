"""bd.TensorDesc, against formulas written out and a model in NumPy."""

import copy
import math
import pickle

import layout_model
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd

LAYOUTS = bd.TensorDesc.layouts()
drawn = settings(max_examples=60)


@st.composite
def dense(draw, most=6):
    """A description in any layout; dimensions that are cut are larger, zero is possible."""
    layout = draw(st.sampled_from(LAYOUTS))
    cut = layout_model.blocks(layout)
    dims = [
        draw(st.integers(0, 40 if name in cut else most)) for name in layout_model.letters(layout)
    ]
    return bd.TensorDesc(dims, layout=layout)


def test_the_layouts_asked_for():
    for spatial in ("w", "hw", "dhw"):
        names = f"nc{spatial} n{spatial}c c{spatial}n nC{spatial}8c nC{spatial}16c oi{spatial}"
        names += f" {spatial}io OI{spatial}8i8o OI{spatial}16i16o goi{spatial} gOI{spatial}8i8o"
        names += f" gOI{spatial}16i16o Goi{spatial}8g Goi{spatial}16g {spatial}igo"
        assert set(names.split()) <= set(LAYOUTS)


@pytest.mark.parametrize("block", [1, 8, 16])
@pytest.mark.parametrize("dims", [(2, 17, 5, 4), (1, 16, 2, 3), (3, 1, 1, 1)])
def test_the_documents_formulas(dims, block):
    N, C, H, W = dims
    n, c, h, w = np.indices(dims)
    if block == 1:
        expected = {
            "nchw": n * C * H * W + c * H * W + h * W + w,
            "nhwc": n * H * W * C + h * W * C + w * C + c,
            "chwn": c * H * W * N + h * W * N + w * N + n,
        }
    else:
        Cp = -(-C // block) * block
        blocked = n * Cp * H * W + (c // block) * H * W * block + h * W * block + w * block
        expected = {f"nChw{block}c": blocked + c % block}
    for layout, offsets in expected.items():
        np.testing.assert_array_equal(bd.TensorDesc(dims, layout=layout).offsets(), offsets)


def test_channels_17_in_blocks_of_8():
    desc = bd.TensorDesc((2, 17, 5, 4), "float32", "nChw8c")
    assert desc.padded_dims == (2, 24, 5, 4)
    assert desc.shape == (2, 3, 5, 4, 8)
    assert desc.blocks == (1, 8, 1, 1)
    assert (desc.size, desc.size_bytes) == (960, 3840)
    assert desc.strides == (480, 160, 32, 8)
    assert desc.is_dense and desc.is_whole
    assert desc.offset(1, 16, 2, 3) == 480 + 2 * 160 + 2 * 32 + 3 * 8
    assert desc.offset(1, 23, 4, 3) == 959  # the last of the tail


@drawn
@given(dense())
def test_offsets_are_a_bijection(desc):
    assert sorted(desc.offsets(padded=True).ravel()) == list(range(desc.size))
    logical = desc.offsets(padded=True)[tuple(map(slice, desc.dims))]
    np.testing.assert_array_equal(desc.offsets(), logical)
    assert desc.is_dense
    assert math.prod(desc.shape) == math.prod(desc.padded_dims) == desc.size


@drawn
@given(dense(), st.randoms())
def test_offsets_are_those_of_the_model(desc, random):
    x = np.arange(1, 1 + math.prod(desc.dims), dtype=np.float32).reshape(desc.dims)
    packed = layout_model.pack(x, desc.layout)
    assert packed.shape == desc.shape
    np.testing.assert_array_equal(packed.ravel()[desc.offsets()], x)
    if x.size:
        index = tuple(random.randrange(size) for size in desc.dims)
        assert packed.ravel()[desc.offset(*index)] == x[index]


@drawn
@given(
    dims=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    data=st.data(),
    offset=st.integers(0, 50),
)
def test_strides(dims, data, offset):
    strides = data.draw(st.lists(st.integers(0, 99), min_size=len(dims), max_size=len(dims)))
    desc = bd.TensorDesc(dims, tf.int8, strides=strides, offset=offset)
    index = np.indices(dims)
    np.testing.assert_array_equal(
        desc.offsets(), offset + sum(i * s for i, s in zip(index, strides, strict=True))
    )
    assert desc.size == desc.offsets().max() + 1
    assert desc.shape == (desc.size,)
    assert desc.layout is None


@drawn
@given(dense(), st.data())
def test_submemory(desc, data):
    dims, offsets = [], []
    for size, block in zip(desc.dims, desc.blocks, strict=True):
        first = data.draw(st.integers(0, size // block)) * block
        last = data.draw(st.integers(first // block, size // block)) * block
        if data.draw(st.booleans()):
            last = size
        dims.append(last - first)
        offsets.append(first)
    part = desc.submemory(dims, offsets)
    where = tuple(slice(o, o + d) for o, d in zip(offsets, dims, strict=True))
    np.testing.assert_array_equal(part.offsets(), desc.offsets()[where])
    assert part.size <= desc.size
    assert (part.strides, part.dtype, part.layout) == (desc.strides, desc.dtype, desc.layout)


@drawn
@given(dense())
def test_equal_hashed_printed_pickled(desc):
    same = eval(repr(desc), {"TensorDesc": bd.TensorDesc})
    for other in (same, copy.deepcopy(desc), pickle.loads(pickle.dumps(desc))):
        assert other == desc and hash(other) == hash(desc) and repr(other) == repr(desc)
    assert desc != bd.TensorDesc(desc.dims, "int8", desc.layout)
    assert desc != desc.dims


def test_a_part_is_printed_with_strides():
    part = bd.TensorDesc((1, 3, 8, 10), layout="nhwc").submemory((1, 3, 2, 4), (0, 0, 1, 1))
    assert repr(part) == (
        "TensorDesc((1, 3, 2, 4), 'float32', 'nhwc', strides=(240, 1, 30, 3), offset=33)"
    )
    assert eval(repr(part), {"TensorDesc": bd.TensorDesc}) == part
    assert pickle.loads(pickle.dumps(part)) == part
    assert not part.is_whole and not part.is_dense


@pytest.mark.parametrize(
    "dtype,bytes_each",
    [
        (tf.float32, 4),
        ("bfloat16", 2),
        (tf.bfloat16, 2),
        (np.float16, 2),
        ("int32", 4),
        (np.dtype("int8"), 1),
        (tf.uint8, 1),
    ],
)
def test_data_types(dtype, bytes_each):
    desc = bd.TensorDesc((2, 17), dtype, "nC16c")
    assert desc.dtype == tf.dtypes.as_dtype(dtype)
    assert desc.size_bytes == 64 * bytes_each


@pytest.mark.parametrize("layout", LAYOUTS)
def test_zero_sizes(layout):
    for axis in range(len(layout_model.letters(layout))):
        dims = [17] * len(layout_model.letters(layout))
        dims[axis] = 0
        desc = bd.TensorDesc(dims, layout=layout)
        assert desc.size == desc.size_bytes == 0
        assert desc.is_dense
        assert desc.offsets().size == 0


def desc8():
    return bd.TensorDesc((2, 17, 5, 4), layout="nChw8c")


ERRORS = {
    "a tensor needs a layout, or strides": lambda: bd.TensorDesc((2, 3)),
    'unknown layout "NC": names are like nhwc, nChw16c, OIhw16i16o': lambda: bd.TensorDesc(
        (2, 3), layout="NC"
    ),
    r"layout nchw has 4 dimensions, n, c, h, w; got dims \[2, 3\]": lambda: bd.TensorDesc(
        (2, 3), layout="nchw"
    ),
    "a tensor has 1 to 6 dimensions": lambda: bd.TensorDesc((1,) * 7, strides=(1,) * 7),
    "a tensor needs a layout, or strid": lambda: bd.TensorDesc((), strides=()),
    "dtype must be float32, bfloat16, float16, int32, int8 or uint8; got float64": lambda: (
        bd.TensorDesc((2, 3), "float64", "nc")
    ),
    "dtype must be .* got nc": lambda: bd.TensorDesc((2, 3), "nc"),
    r"dims must not be negative; got \[2, -3\]": lambda: bd.TensorDesc((2, -3), layout="nc"),
    "dims must be a list of integers; got 5": lambda: bd.TensorDesc(5, layout="x"),
    "dims must be a list of integers": lambda: bd.TensorDesc("23", layout="nc"),
    r"dims must be integers; got \[2, 1.5\]": lambda: bd.TensorDesc((2, 1.5), layout="nc"),
    r"dims must be integers; got \[2, None\]": lambda: bd.TensorDesc(
        tf.TensorShape((2, None)), layout="nc"
    ),
    r"dims must fit into 64 bits; got \[2, 9223372036854775808\]": lambda: bd.TensorDesc(
        (2, 2**63), layout="nc"
    ),
    r"a tensor of dims \[1099511627776, 1.*\] is too large: its size exceeds 2\^47": lambda: (
        bd.TensorDesc((2**40, 2**40), layout="nc")
    ),
    r"strides must be one number for each of the 2 dimensions; got \[1\]": lambda: bd.TensorDesc(
        (2, 3), strides=(1,)
    ),
    r"strides must not be negative; got \[3, -1\]": lambda: bd.TensorDesc((2, 3), strides=(3, -1)),
    "offset must not be negative; got -1": lambda: bd.TensorDesc((2, 3), layout="nc", offset=-1),
    "offset takes 4 indices, one a dimension; got 2": lambda: desc8().offset(1, 2),
    r"index \(0, 24, 0, 0\) is outside the padded dims \(2, 24, 5, 4\)": lambda: desc8().offset(
        0, 24, 0, 0
    ),
    "is outside the padded dims": lambda: desc8().offset(0, -1, 0, 0),
    r"submemory: 0 \+ 5 elements of dimension 3 reach beyond its 4": lambda: desc8().submemory(
        (1, 8, 5, 5), (0, 0, 0, 0)
    ),
    r"submemory: 4 \+ 8 elements of dimension 1 cut a block: it must start and end at a "
    "multiple of 8, or end with the dimension, 17": lambda: desc8().submemory(
        (1, 8, 5, 4), (0, 4, 0, 0)
    ),
    "submemory: dims must be one number for each of the 4 dimensions": lambda: desc8().submemory(
        (1, 8, 5), (0, 0, 0)
    ),
    "dims": lambda: setattr(desc8(), "dims", (1,)),
}


@pytest.mark.parametrize("message, call", ERRORS.items())
def test_errors(message, call):
    with pytest.raises((ValueError, IndexError, AttributeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
