"""Writes docs/support.md from the registered ops and the patterns: `python docs/make_support.py`.

Types come from the registrations, ranks from running each op on a source of every rank, gradients
from their formulas, and what `optimize` converts from the patterns.
`tests/python/docs/test_stated_facts.py` compares the page.
"""

from __future__ import annotations

import inspect
import itertools
import pathlib
import re
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # The checkout first.

import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

import tf_blockdnn as bd  # noqa: E402
from tf_blockdnn.python import gradients  # noqa: E402
from tf_blockdnn.python.native import library  # noqa: E402
from tf_blockdnn.python.rewriter.passes.canonical import replace_loops  # noqa: E402
from tf_blockdnn.python.rewriter.patterns import PATTERNS  # noqa: E402
from tf_blockdnn.python.rewriter.patterns.pixels import elementwise  # noqa: E402
from tf_blockdnn.python.tensorflow_private import registered_ops  # noqa: E402

PAGE = pathlib.Path(__file__).with_name("support.md")
# What has no default in the registrations: attributes, and shapes other than the source's.
ATTRIBUTES = {
    "channels": 16,
    "depth": 1,
    "epsilon": 1e-3,
    "ksize": [1, 1],
    "paddings": [0, 0, 0, 0],
    "post_ops": "eltwise(relu)",
    "squeezed": 4,
    "axis": 0,
    "group": 1,
    "weights_shape": [1, 1, 16, 16],
    "depthwise_weights_shape": [1, 1, 1, 16],
}
SHAPES = {
    "weights": [1, 1, 16, 16],
    "depthwise_weights": [1, 1, 16, 1],
    **dict.fromkeys(("gamma", "beta", "expand_bias"), [16]),
    **dict.fromkeys(("b", "kernel", "recurrent_kernel"), [16, 16]),
    "reduce_weights": [16, 4],
    "reduce_bias": [4],
    "expand_weights": [4, 16],
}
OF_ONE_OP = {
    "BlockdnnConcat": {"channels": [16]},
    "BlockdnnConvVolume": {"weights_shape": [1, 1, 1, 16, 16]},
    "BlockdnnInnerProduct": {"weights_shape": [16, 16]},
    "BlockdnnResize": {"scales": [1, 1]},
}
INTERNAL = (
    "Grad",
    "BackwardWeights",
    "Region",
    "Threads",
    "Follow",
    "FoldBatchNorm",
    "ReadWeights",
    "LoadWeights",
    "WeightsVariable",
    "Snapshot",
)
RANKS = range(1, 7)

INTRODUCTION = """# Supported ops

`make docs` writes this page from the registered ops, which it runs, and from the patterns of the
rewriter.

## The ops

Every op runs on every x86-64 CPU: kernels are compiled for plain x86-64 (`generic`), for AVX2 and
for AVX-512, those of int8 and bf16 for VNNI and AVX512-BF16, too, and the library chooses when it
is loaded. `BlockdnnConvDepthwise` is a 1x1 convolution and the depthwise one after it, in one op; a
depthwise convolution alone is `BlockdnnConv`, in all of its types. `how="paired"`
([FIP](algorithms.md#fip)) exists for AVX-512 only and is `"direct"` elsewhere. *Ranks* are those of
the source in each layout; nChw16c has rank 5. *Training* says whether the op has a gradient. [Keras
layers](api.md#layers) have a table of their own.

"""
CONVERTED = """
## What `optimize` converts

TensorFlow's ops that the rewriter looks for, on tensors whose shapes it can follow: in float32, and
with [low precision](low-precision.md) in bf16 or int8. The [report](report.md) says why a node was
left to TensorFlow. Ops that only rename or move (Identity, Transpose of layouts, Reshape between
layers) are followed, not listed.

| looked for at | what is converted |
|---|---|
"""
FORMULAS = """
### Formulas

Some of these are formulas: what is written so, in TensorFlow's ops with these attributes, becomes
one op. `tf.either` is any of several spellings, a parameter with a default may be absent, and no
part may be read elsewhere.
"""


def names() -> list[str]:
    """The ops that one may call, without those that only gradients and regions use."""
    return [name for name in registered_ops("Blockdnn") if not name.endswith(INTERNAL)]


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _runs(name: str, op_def, layouts: dict[str, str], rank: int) -> bool:
    """Whether the op runs on a source of this rank in these layouts."""
    own = OF_ONE_OP.get(name, {})
    arguments = layouts | {key: value for key, value in own.items() if key != "weights_shape"}
    counts = {argument.number_attr for argument in op_def.input_arg}
    for attr in op_def.attr:
        if attr.HasField("default_value") or attr.type == "type" or attr.name in counts:
            continue
        choices = [text.decode() for text in attr.allowed_values.list.s]
        value = own.get(attr.name, ATTRIBUTES.get(attr.name, *choices[:1]))
        arguments.setdefault(attr.name, value)
    for place, argument in enumerate(op_def.input_arg):
        if place == 0:
            source = tf.zeros([1] * (rank - 1) + [16])
            arguments[argument.name] = [source] if argument.number_attr else source
        elif argument.number_attr or argument.type_list_attr:
            arguments[argument.name] = []
        elif argument.name == "start":  # where a slice lies, an index a dimension
            arguments[argument.name] = tf.zeros([rank], tf.int32)
        else:
            shape = own.get("weights_shape") if argument.name == "weights" else None
            arguments[argument.name] = tf.zeros(shape or SHAPES.get(argument.name, source.shape))
    try:
        getattr(library(), _snake(name))(**arguments)
    except (ValueError, TypeError, tf.errors.OpError):
        return False
    return True


def ranks(name: str, op_def) -> str:
    """The ranks of the source by layout, such as "nhwc 4, nChw16c 5"."""
    attrs = [a for a in op_def.attr if a.name in ("src_layout", "layout", "q_layout")]
    others = {
        a.name: a.allowed_values.list.s[-1].decode() for a in op_def.attr if a.name == "dst_layout"
    }
    choices = [text.decode() for a in attrs for text in a.allowed_values.list.s] or [""]
    found = []
    for layout in choices:
        given = others | ({attrs[0].name: layout} if layout else {})
        taken = [rank for rank in RANKS if _runs(name, op_def, given, rank)]
        if not taken:
            raise RuntimeError(f"{name}: no rank runs; ATTRIBUTES or SHAPES lack something")
        span = f"{taken[0]} to {taken[-1]}" if len(taken) > 1 else str(taken[0])
        found.append(f"{layout or ('nChw16c' if taken == [5] else '')} {span}".strip())
    return ", ".join(found)


def row(name: str) -> str:
    """The line of one op."""
    op_def = op_def_registry.get(name)
    types = [
        tf.as_dtype(t).name
        for a in op_def.attr
        if a.name == "T"
        for t in a.allowed_values.list.type
    ]
    algorithms = [
        text.decode()
        for a in op_def.attr
        if a.name == "algorithm"
        for text in a.allowed_values.list.s
        if not text.startswith(b"auto_")
    ]
    try:
        trains = "yes" if name in gradients.formulas() else "no"
    except LookupError:
        trains = "no"
    python = _snake(name).removeprefix("blockdnn_")
    called = f"`bd.ops.{python}`" if hasattr(bd.ops, python) else "a layer"
    reorder = name == "BlockdnnReorder"
    cells = [
        f"`{name}`",
        called,
        "any of 54 layouts" if reorder else ranks(name, op_def),
        ", ".join(types),
        ", ".join(f"`{a}`" for a in algorithms),
        trains,
    ]
    return f"| {' | '.join(cells)} |\n"


def converted() -> str:
    """A line for each pattern: the ops at which it looks, and its first sentence."""
    modules = [*itertools.chain.from_iterable(PATTERNS.values()), replace_loops]
    lines = []
    for module in modules:
        sentence = module.__doc__.partition("\n\n")[0].replace("\n", " ")
        roots = ", ".join(f"`{root}`" for root in module.ROOTS)
        lines.append(f"| {roots} | {sentence} |\n")
    roots = sorted({r for m in vars(elementwise).values() for r in getattr(m, "ROOTS", ())})
    names = ", ".join(f"`{root}`" for root in roots)
    return "".join(lines) + f"| {names} | Element-wise work, as [post-ops](post-ops.md). |\n"


def formulas() -> str:
    """What the rules among the patterns look for."""
    rules = [
        one for one in itertools.chain.from_iterable(PATTERNS.values()) if hasattr(one, "formula")
    ]
    sources = [textwrap.dedent(inspect.getsource(rule.formula)).rstrip() for rule in rules]
    return FORMULAS + "".join(f"\n```python\n{source}\n```\n" for source in sources)


def page() -> str:
    """docs/support.md."""
    head = "| op | called as | source: ranks | types | algorithms | training |\n"
    return (
        INTRODUCTION
        + head
        + "|---|---|---|---|---|---|\n"
        + "".join(map(row, names()))
        + CONVERTED
        + converted()
        + formulas()
    )


def main() -> None:
    """Writes the page, or says that it is out of date."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
    elif not PAGE.exists() or PAGE.read_text() != page():
        sys.exit("docs/support.md is out of date: run `make docs`")


if __name__ == "__main__":
    main()
