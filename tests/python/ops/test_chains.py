"""A chain is the composition of its single steps, behind every form of convolution.

The sums of products are integers, and a chain runs the same code on a convolution's
result as BlockdnnEltwise on a tensor: hence equal bits, but for Winograd.
"""

from typing import NamedTuple

import numpy as np
import pytest
import references
from blocked_numpy import Blocked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd
from tf_blockdnn.python.ops.post_op_entry import BINARY, ELTWISE

pytestmark = pytest.mark.each_isa

PLAIN, BLOCKED = "nhwc", "nChw16c"


class Form(NamedTuple):
    src_layout: str = BLOCKED
    dst_layout: str = BLOCKED
    ic: int = 20
    oc: int = 37
    k: int = 3
    groups: int = 1
    algorithm: str = "direct"


CONV_FORMS = {
    "direct": Form(),
    "pointwise": Form(k=1),
    "several chunks": Form(ic=400),
    "plain src": Form(src_layout=PLAIN, ic=3),
    "plain dst": Form(dst_layout=PLAIN),
    "both plain": Form(PLAIN, PLAIN, ic=3),
    "dot": Form(dst_layout=PLAIN, oc=3),
    "groups": Form(ic=21, oc=33, groups=3),
    "groups, plain dst": Form(dst_layout=PLAIN, ic=21, oc=33, groups=3),
    "depthwise": Form(ic=37, groups=37),
    "winograd": Form(algorithm="winograd"),
}
ROWS = {"rows": (7, 20), "samples of rows": (2, 3, 20), "many inputs": (3, 300), "one row": (20,)}

# Winograd rounds differently, so its steps must not enlarge a difference.
SMOOTH = ("relu", "relu6", "abs", "tanh", "elu", "soft_relu")
# name -> its alpha and beta
PARAMETERS = {
    "relu": (0.5, None),
    "leaky_relu": (0.25, None),
    "bounded_relu": (90, None),
    "clip": (1, 60),
    "linear": (-1, 2),
    "pow": (0.5, 2),
}


def integers(rng, *shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


@st.composite
def chains(draw, dst_shape, smooth=False):
    """(entries as (method of PostOps, its arguments), what dst held before or None)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, c = dst_shape[0], dst_shape[-1]
    shapes = [(), (c,), dst_shape] + ([(n, c)] if len(dst_shape) > 1 else [])
    entries, previous = [], None
    for kind in draw(st.lists(st.sampled_from(["eltwise", "sum", "binary"]), max_size=7)):
        if kind == "eltwise":
            alg = draw(st.sampled_from(SMOOTH if smooth else sorted(ELTWISE)))
            alpha, beta = PARAMETERS.get(alg, (None, None))
            arguments = {"alg": alg, "alpha": alpha, "beta": beta}
        elif kind == "binary":
            alg = draw(st.sampled_from(("add", "sub", "max", "min") if smooth else list(BINARY)))
            arguments = {"alg": alg, "operand": integers(rng, *draw(st.sampled_from(shapes)))}
        else:
            arguments = {"scale": draw(st.sampled_from([1.0, 0.5, -2.0])), "operand": None}
            if draw(st.booleans()):
                arguments["operand"] = integers(rng, *dst_shape)
            elif previous is None:
                previous = integers(rng, *dst_shape)
        entries.append((kind, arguments))
    return entries, previous


def together(entries):
    chain = bd.PostOps()
    for kind, arguments in entries:
        chain = getattr(chain, kind)(**arguments)
    return chain


def one_by_one(result, entries, previous):
    """Each entry by itself, with BlockdnnEltwise on [N, rows, 1, C]."""
    shape = result.shape
    n = shape[0] if len(shape) > 1 else 1

    def as_image(value):
        return np.reshape(value, (n, -1, 1, shape[-1]))

    result = as_image(result)
    for kind, arguments in entries:
        operand = arguments.get("operand")
        if kind == "sum" and operand is None:
            operand = previous
        if operand is not None:
            whole = operand.shape == shape
            arguments = arguments | {"operand": as_image(operand) if whole else operand}
        result = bd.ops.eltwise(result, together([(kind, arguments)]), layout=PLAIN)
    return np.reshape(result, shape)


relaxed = settings(max_examples=25, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", CONV_FORMS)
def test_behind_a_convolution(name):
    form = CONV_FORMS[name]
    rng = np.random.default_rng(3)
    x = integers(rng, 2, 6, 7, form.ic)
    weights = integers(rng, form.k, form.k, form.ic // form.groups, form.oc)
    plain = references.conv(x, weights, groups=form.groups)
    winograd = form.algorithm == "winograd"

    @given(chains(plain.shape, smooth=winograd))
    @relaxed
    def check(drawn):
        entries, previous = drawn
        ours = bd.ops.conv(
            Blocked.pack(x) if form.src_layout == BLOCKED else x,
            weights,
            groups=form.groups,
            post_ops=together(entries),
            dst=previous,
            src_layout=form.src_layout,
            dst_layout=form.dst_layout,
            how=form.algorithm,
            padding="SAME",
        )
        ours = Blocked.unpack(ours, form.oc) if form.dst_layout == BLOCKED else ours.numpy()
        expected = one_by_one(plain, entries, previous)
        if winograd:
            np.testing.assert_allclose(ours, expected, rtol=0, atol=0.02)
        else:
            np.testing.assert_array_equal(ours, expected)

    check()


@pytest.mark.parametrize("name", ROWS)
def test_behind_an_inner_product(name):
    rng = np.random.default_rng(4)
    x = integers(rng, *ROWS[name])
    weights = integers(rng, x.shape[-1], 32)
    plain = np.asarray(np.matmul(x, weights))

    @given(chains(plain.shape))
    @relaxed
    def check(drawn):
        entries, previous = drawn
        ours = bd.ops.inner_product(x, weights, post_ops=together(entries), dst=previous)
        np.testing.assert_array_equal(ours, one_by_one(plain, entries, previous))

    check()
