import dataclasses
import re
import string

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd
from tf_blockdnn.python.native import library
from tf_blockdnn.python.ops.post_op_entry import BINARY, ELTWISE, SHAPES
from tf_blockdnn.python.ops.post_ops import PostOps

GOOD = [
    ("", ""),
    ("  ", ""),
    (" eltwise( relu ) ; sum( #0 , scale = 2 ) ", "eltwise(relu);sum(#0,scale=2)"),
    ("eltwise(softplus)", "eltwise(soft_relu)"),
    ("eltwise(silu,alpha=1,scale=1)", "eltwise(swish)"),
    ("eltwise(relu,alpha=0)", "eltwise(relu)"),
    ("eltwise(linear,scale=2,beta=3,alpha=4)", "eltwise(linear,alpha=4,beta=3,scale=2)"),
    ("eltwise(hard_sigmoid,alpha=0.2)", "eltwise(hard_sigmoid,alpha=0.200000003)"),
    ("eltwise(leaky_relu,alpha=1e-3)", "eltwise(leaky_relu,alpha=0.00100000005)"),
    ("eltwise(leaky_relu,alpha=1e-5)", "eltwise(leaky_relu,alpha=9.99999975e-06)"),
    ("eltwise(clip,alpha=-.5,beta=6.)", "eltwise(clip,alpha=-0.5,beta=6)"),
    ("binary(max,sample_channel,#3@0)", "binary(max,sample_channel,#3)"),
    ("binary(add,channel,#007@2304)", "binary(add,channel,#7@2304)"),
]
# A sum without operand is nothing the op can read: wrappers name their `dst` first.
SUMS = [("sum( )", "sum()"), (" sum(scale=0.5)", "sum(scale=0.5)"), ("sum(scale=1)", "sum()")]

BAD = [
    "eltwise(reluu)",
    "eltwise(relu);eltwise()",
    "eltwise(leaky_relu)",
    "eltwise(clip,alpha=1)",
    "eltwise(tanh,alpha=1)",
    "eltwise(elu,alpha=1,alpha=2)",
    "eltwise(elu,alpha)",
    "eltwise(elu,alpha=)",
    "eltwise(elu,alpha=1x)",
    "eltwise(elu,alpha=+1)",
    "eltwise(elu,alpha=nan)",
    "eltwise(elu,alpha=inf)",
    "eltwise(elu,alpha=0x10)",
    "eltwise(elu,alpha=1e)",
    "eltwise(elu,alpha=1e50)",
    "eltwise(elu,alpha=1e-60)",
    "sum(,scale=2)",
    "sum(0)",
    "sum(scale)",
    "sum(#)",
    "sum(#-1)",
    "sum(#99999999999)",
    "sum(#0@)",
    "sum(#0,alpha=2)",
    "sum(#0,scale=1,scale=1)",
    "binary(add,channel)",
    "binary(plus,channel,#0)",
    "binary(add,rows,#0)",
    "binary(add,channel,0)",
    "binary(add,channel,#0@9999999999999999999)",
    "eltwise(relu)eltwise(tanh)",
    "eltwise(relu);",
    "relu",
    ")(",
    "conv(relu)",
    ";".join(["eltwise(abs)"] * 33),
]


@pytest.mark.parametrize("text, canonical", GOOD + SUMS)
def test_parse_gives_the_canonical_text(text, canonical):
    assert PostOps.parse(text).to_text() == canonical
    assert str(PostOps.parse(canonical)) == canonical


@pytest.mark.parametrize("text, _", GOOD)
def test_the_op_takes_what_python_parses(text, _):
    args = [tf.ones([1, 2, 2, 16])] * 3 + [tf.ones([1, 1, 1, 16])] * 4 + [tf.ones([4096])]
    dst = bd.ops.eltwise(tf.ones([1, 2, 2, 16]), text, args=args, layout="nhwc")
    canonical = bd.ops.eltwise(
        tf.ones([1, 2, 2, 16]), PostOps.parse(text), args=args, layout="nhwc"
    )
    np.testing.assert_array_equal(dst, canonical)


@pytest.mark.parametrize("text", BAD)
def test_errors_are_those_of_the_op(text):
    with pytest.raises(ValueError) as ours:
        PostOps.parse(text)
    assert "\n" not in str(ours.value)
    with pytest.raises(tf.errors.InvalidArgumentError) as op:
        library().blockdnn_eltwise(
            tf.ones([1, 2, 2, 16]), [], [], [], layout="nhwc", channels=16, post_ops=text
        )
    assert str(ours.value) in str(op.value)


def test_errors_name_the_entry_and_the_remedy():
    with pytest.raises(ValueError) as error:
        PostOps.parse("eltwise(relu);binary(plus,channel,#0)")
    assert str(error.value) == (
        'entry 1 "binary(plus,channel,#0)": unknown algorithm "plus"; '
        f"known are {', '.join(BINARY)}"
    )
    with pytest.raises(ValueError, match="entry 32 .*at most 32 entries; split it over two ops"):
        PostOps.parse(BAD[-1])


def test_methods_write_the_text():
    chain = (
        PostOps()
        .binary("add", "#0@2304", "channel")
        .sum(0.5, "#1")
        .eltwise("sigmoid")
        .eltwise("clip", alpha=-1, beta=6, scale=2)
        .eltwise("hard_swish", 1 / 6, 0.5)
        .sum(2)
    )
    assert chain.to_text() == (
        "binary(add,channel,#0@2304);sum(#1,scale=0.5);eltwise(logistic);"
        "eltwise(clip,alpha=-1,beta=6,scale=2);eltwise(hard_swish);sum(scale=2)"
    )
    assert len(chain) == 6
    assert [chain.kind(i) for i in range(3)] == ["binary", "sum", "eltwise"]
    assert repr(PostOps().eltwise("tanh")) == 'PostOps.parse("eltwise(tanh)")'


@pytest.mark.parametrize(
    "append, message",
    [
        (
            lambda c: c.eltwise("reluu"),
            'entry 1 "eltwise(reluu)": unknown algorithm "reluu"; known are relu, leaky_relu,',
        ),
        (
            lambda c: c.eltwise("clip", alpha=1),
            'entry 1 "eltwise(clip,alpha=1)": clip needs beta=...',
        ),
        (
            lambda c: c.eltwise("tanh", 1, scale=2),
            'entry 1 "eltwise(tanh,alpha=1,scale=2)": tanh does not take "alpha=1"; it takes each ',
        ),
        (lambda c: c.eltwise("elu", 1e50), 'alpha = "1e+50" is no finite float'),
        (lambda c: c.eltwise("elu", scale=float("nan")), 'scale = "nan" is no finite float'),
        (lambda c: c.sum("big"), 'entry 1 "sum(scale=big)": could not convert string to float'),
        (lambda c: c.sum(1, "#-1"), 'entry 1 "sum(#-1)": "#-1" is no operand; write the args'),
        (lambda c: c.sum(1, tf.zeros(3, tf.int32)), "the operand is int32, not float32; cast it"),
        (lambda c: c.binary("add", "#0"), 'entry 1 "binary(add,#0)": operand #0 needs shape=, one'),
        (
            lambda c: c.binary("plus", 0, shape="channel"),
            'entry 1 "binary(plus,channel,...)": unknown algorithm "plus"; known are add',
        ),
        (lambda c: c.binary("add", 0, "rows"), 'unknown operand shape "rows"; known are sc'),
        (lambda c: c.binary("add", [[1], [2, 3]]), 'entry 1 "binary(add,...)": setting an array'),
    ],
)
def test_methods_check(append, message):
    """It is the InvalidArgument of the ops, running (the first) or in a graph (the second)."""
    for error in (tf.errors.InvalidArgumentError, ValueError):
        with pytest.raises(error, match=re.escape(message)) as raised:
            append(PostOps().eltwise("abs"))
        assert "\n" not in str(raised.value)


def test_at_most_32_entries():
    chain = PostOps()
    for _ in range(32):
        chain = chain.eltwise("abs")
    with pytest.raises(ValueError, match=r'entry 32 "sum\(\)": a chain has at most 32 entries'):
        chain.sum()


def test_a_chain_never_changes():
    relu = PostOps().eltwise("relu")
    longer = relu.sum()
    assert (len(relu), len(longer)) == (1, 2)
    assert relu == PostOps.parse("eltwise(relu)")
    assert relu != longer
    assert hash(relu) == hash(PostOps.parse(" eltwise(relu,alpha=0)"))
    assert relu != "eltwise(relu)"
    with pytest.raises(AttributeError):
        relu.scale = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        relu.entries[0].name = "tanh"


def test_tensors_are_compared_and_copied():
    values, tensor, variable = np.arange(3.0), tf.ones(3), tf.Variable(tf.ones(3))
    chain = PostOps().binary("add", values)
    assert chain == PostOps().binary("add", [0, 1, 2])
    assert hash(chain) == hash(PostOps().binary("add", [0, 1, 2]))
    assert chain != PostOps().binary("add", [[0, 1, 2]])
    assert chain != PostOps().binary("add", "#0", "channel")
    values[0] = 7  # the chain has its own copy
    assert chain == PostOps().binary("add", [0, 1, 2])
    assert chain != PostOps().binary("add", values)
    for other in (tensor, variable):
        assert PostOps().sum(1, other) == PostOps().sum(1, other)
        assert PostOps().sum(1, other) != PostOps().sum(1, tf.ones(3))


def test_tensors_have_no_text():
    chain = PostOps().eltwise("relu").binary("mul", [[1, 2]]).sum(0.5, tf.zeros(4)).sum(3)
    assert str(chain) == (
        "eltwise(relu);binary(mul,float32[1,2]);sum(float32[4],scale=0.5);sum(scale=3)"
    )
    assert repr(chain) == f"<PostOps {chain}>"
    with pytest.raises(
        ValueError, match=r'entry 1 "binary\(mul,float32\[1,2\]\)": a tensor has no'
    ):
        chain.to_text()


@st.composite
def chains(draw):
    """Any chain, by its methods."""
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    operands = st.builds("#{}@{}".format, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
    chain = PostOps()
    for kind in draw(st.lists(st.sampled_from(["eltwise", "sum", "binary"]), max_size=8)):
        if kind == "eltwise":
            name = draw(st.sampled_from(sorted(ELTWISE)))
            taken = zip(("alpha", "beta"), ELTWISE[name], strict=True)
            values = {key: draw(numbers) for key, default in taken if default is not None}
            chain = chain.eltwise(name, **values, scale=draw(numbers))
        elif kind == "sum":
            chain = chain.sum(draw(numbers), draw(st.none() | operands))
        else:
            alg, shape = draw(st.sampled_from(list(BINARY))), draw(st.sampled_from(SHAPES))
            chain = chain.binary(alg, draw(operands), shape)
    return chain


@given(chains())
def test_text_comes_back(chain):
    assert PostOps.parse(chain.to_text()) == chain


@given(st.text(string.ascii_letters + "()#@=,;-. 019", max_size=40))
@settings(max_examples=300)
def test_any_text_is_parsed_or_gives_one_line(text):
    try:
        chain = PostOps.parse(text)
    except ValueError as error:
        assert str(error).startswith("entry ") and "\n" not in str(error)
    else:
        assert PostOps.parse(chain.to_text()) == chain


@given(st.integers(0, 2**32 - 1))
def test_floats_come_back_bit_for_bit(bits):
    value = np.uint32(bits).view(np.float32)
    if not np.isfinite(value):
        return
    chain = PostOps().eltwise("leaky_relu", alpha=value)
    written = chain.to_text().removeprefix("eltwise(leaky_relu,alpha=").removesuffix(")")
    assert np.float32(written).tobytes() == value.tobytes()
