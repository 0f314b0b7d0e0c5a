"""The table in docs/scratchpad.md against what the library plans."""

import pathlib
import re

import hypothesis
import pytest
from hypothesis import strategies as st

import tf_blockdnn as bd

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "scratchpad.md"
ROW = r"^\| (\w+) \| (\w+) \| `(.+?)` \| `(.+?)` \| `(.+?)` \|$"
TABLE = re.findall(ROW, PAGE.read_text(), re.MULTILINE)


def blocks(channels):
    return -(-channels // 16)


def source_rows(strip_rows, kh, sh, dh):
    """Rows of each remainder modulo the stride lie together; their counts add up."""
    taps = [h * dh for h in range(kh)]
    of_remainder = [[t // sh for t in taps if t % sh == p] for p in range(sh)]
    return sum(max(steps) + strip_rows for steps in of_remainder if steps)


def expected(algorithm, names):
    """piece -> (copies, bytes) as the table says."""
    pieces = {}
    for row, piece, copies, floats, condition in TABLE:
        if row not in (algorithm, "any") or not eval(condition, dict(names)):
            continue
        copies, floats = eval(copies, dict(names)), eval(floats, dict(names))
        pieces[piece] = (copies, copies * -(-4 * floats // 64) * 64)
    return pieces


def check(plan, **names):
    """Compares a plan with the table; returns its algorithm."""
    names |= plan.blocking | {"threads": plan.threads, "algorithm": plan.algorithm}
    names |= {"CB": blocks(names["C"]), "OB": blocks(names["OC"])}
    if "strip_rows" in names:
        axis = names["strip_rows"], names["kh"], names["sh"], names["dh"]
        names["source_rows"] = source_rows(*axis)
    pieces = {name: (piece.copies, piece.bytes) for name, piece in plan.pieces.items()}
    assert pieces == expected(plan.algorithm, names), (plan, names)
    assert plan.scratchpad == sum(total for _, total in pieces.values())
    return plan.algorithm


def check_conv(
    *,
    n=1,
    h,
    w,
    c,
    oc,
    window=(3, 3),
    strides=(1, 1),
    dilations=(1, 1),
    groups=1,
    pad=True,
    bias=False,
    src_layout="nChw16c",
    dst_layout="nChw16c",
    how="auto",
    threads=None,
):
    (kh, kw), (sh, sw), (dh, dw) = window, strides, dilations
    src = (n, h, w, c) if src_layout == "nhwc" else (n, blocks(c), h, w, 16)
    arguments = {
        "strides": list(strides),
        "dilations": list(dilations),
        "padding": "SAME" if pad else "VALID",
        "groups": groups,
        "src_layout": src_layout,
        "dst_layout": dst_layout,
        "how": how,
    }
    if bias:
        arguments |= {"post_ops": "binary(add,channel,#0)", "args": [(oc,)]}
    plan = bd.ops.memory_plan("conv", src, (kh, kw, c // groups, oc), threads=threads, **arguments)
    return check(
        plan,
        **{"kh": kh, "kw": kw, "sh": sh, "sw": sw, "dh": dh, "dw": dw, "C": c, "OC": oc},
        IW=w,
        groups=groups,
        OH=-(-h // sh) if pad else -(-(h - (kh - 1) * dh) // sh),
        OW=-(-w // sw) if pad else -(-(w - (kw - 1) * dw) // sw),
        bias=bias,
        dst_nhwc=dst_layout == "nhwc",
        in_place=window == (1, 1) and (strides == (1, 1) or "strip_rows" not in plan.blocking),
    )


def test_the_table_is_there():
    assert len(TABLE) == 24


# Each algorithm, small and large, with and without tails.
@pytest.mark.parametrize("threads", [None, 3])
@pytest.mark.parametrize(
    ("algorithm", "arguments"),
    [
        ("direct", dict(h=56, w=56, c=64, oc=64, how="direct")),
        *(
            (algorithm, dict(arguments, how=algorithm))
            for algorithm in ("direct", "paired")
            for arguments in (
                dict(h=28, w=30, c=100, oc=33, bias=True, strides=(2, 2), window=(5, 3)),
                dict(h=56, w=56, c=64, oc=256, window=(1, 1)),
                dict(h=14, w=14, c=2048, oc=20, window=(1, 1), dst_layout="nhwc", bias=True),
            )
        ),
        ("direct", dict(h=17, w=19, c=96, oc=96, groups=4, dilations=(2, 3))),
        ("lanes", dict(h=17, w=19, c=96, oc=80, groups=4, dilations=(2, 3), how="direct")),
        (
            "lanes",
            dict(h=9, w=8, c=6, oc=9, groups=3, src_layout="nhwc", dst_layout="nhwc", bias=True)
            | dict(how="direct"),
        ),
        (
            "direct_plain",
            dict(h=224, w=224, c=3, oc=64, window=(5, 5), strides=(2, 2), src_layout="nhwc"),
        ),
        (
            "direct_plain",
            dict(h=9, w=8, c=5, oc=7, src_layout="nhwc", dst_layout="nhwc", bias=True),
        ),
        ("dot", dict(h=64, w=48, c=64, oc=1, dst_layout="nhwc")),
        ("dot", dict(h=9, w=9, c=40, oc=3, window=(1, 1), dst_layout="nhwc", bias=True)),
        ("winograd", dict(h=56, w=56, c=64, oc=64, how="winograd")),
        ("winograd", dict(n=8, h=7, w=9, c=500, oc=300, how="winograd", bias=True)),
        ("winograd", dict(h=512, w=512, c=16, oc=16, how="winograd")),
        ("winograd", dict(h=35, w=35, c=48, oc=64, window=(5, 5), how="winograd")),
        ("winograd", dict(h=17, w=19, c=160, oc=80, window=(1, 7), how="winograd")),
        ("winograd", dict(h=17, w=19, c=160, oc=80, window=(7, 1), how="winograd")),
        ("winograd", dict(h=8, w=9, c=300, oc=90, window=(1, 3), how="winograd")),
        (
            "winograd",
            dict(h=99, w=70, c=3, oc=64, window=(7, 7), strides=(2, 2), src_layout="nhwc")
            | dict(how="winograd"),
        ),
        ("winograd", dict(h=8, w=9, c=300, oc=90, window=(3, 1), how="winograd")),
        ("depthwise", dict(h=112, w=112, c=96, oc=96, groups=96, strides=(2, 2))),
        ("depthwise", dict(h=9, w=9, c=20, oc=20, groups=20, bias=True)),
    ],
)
def test_convolution(algorithm, arguments, threads):
    if algorithm == "paired" and not bd.info()["isa"].startswith("avx512"):
        pytest.skip("pairs are multiplied with AVX-512 only")
    assert check_conv(**arguments, threads=threads).startswith(algorithm)


@pytest.mark.parametrize("threads", [None, 3])
@pytest.mark.parametrize(
    ("algorithm", "src"),
    [("rows", (1, 512)), ("rows", (2, 512)), ("gemm", (3, 400, 512)), ("gemm", (40, 512))],
)
@pytest.mark.parametrize("oc", [10, 40, 1000, 1024])
def test_inner_product(algorithm, src, oc, threads):
    after = {"post_ops": "binary(add,channel,#0)", "args": [(oc,)]}
    plan = bd.ops.memory_plan("inner_product", src, (512, oc), threads=threads, **after)
    assert check(plan, C=512, OC=oc, bias=True, dst_nhwc=True, in_place=True) == algorithm


small = st.integers(1, 3)
layouts = st.sampled_from(["nhwc", "nChw16c"])


@hypothesis.settings(max_examples=150)
@hypothesis.given(st.data())
def test_any_convolution(data):
    draw = data.draw
    groups = draw(st.sampled_from([1, 1, 1, 2, 16, 20]))
    src_layout = "nChw16c" if groups > 1 else draw(layouts)
    window = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    dilations = draw(st.tuples(small, small))
    strides = (1, 1) if max(dilations) > 1 else draw(st.tuples(small, small))
    check_conv(
        n=draw(small),
        h=draw(st.integers(13, 60)),
        w=draw(st.integers(13, 60)),
        c=groups * draw(st.integers(1, 40)),
        oc=groups * draw(st.integers(1, 40)),
        window=window,
        strides=strides,
        dilations=dilations,
        groups=groups,
        pad=draw(st.booleans()),
        bias=draw(st.booleans()),
        src_layout=src_layout,
        dst_layout="nChw16c" if groups > 1 else draw(layouts),
        how=draw(st.sampled_from(["auto", "direct", "winograd", "paired"])),
        threads=draw(st.sampled_from([None, 1, 2, 7])),
    )
