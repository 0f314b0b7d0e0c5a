"""Attaches the element-wise work after a primitive to the primitive itself.

Only what is the sole use of the primitive's result: fetched tensors, control edges
and further consumers stop the chain (see `Followers.sole`).
"""

from dataclasses import replace

from ....graph import Body, Node
from ....ops.records import MAX_STEPS, Conv, Step, eltwise, sum_of
from ...context import Context
from ...followers import Followers
from ...patterns.pixels.elementwise import Idiom

_NOTHING = eltwise("linear", alpha=1.0, beta=0.0)  # a bias of zeros


def fuse_post_ops(body: Body, context: Context) -> None:
    """Appends bias, activation and shortcut addition to the chain of what they follow.

    The deepest first, so that of two convolutions that are added the one that ends
    last takes the Add and finds the other's result ready to accumulate into.
    """
    depths = _depths(body)
    planned = [node for node in body.view if node.payload and node.payload.takes_steps]
    for node in sorted(planned, key=lambda node: depths[node.name], reverse=True):
        if node.name in body.view and body.view.node(node.name) is node:
            extend(node, context.followers)


def extend(node: Node, followers: Followers) -> Node:
    """Absorbs idioms after `node` as long as it can; returns the grown node."""
    while True:
        behind = None
        if (idiom := followers.sole(node.ref)) is None:
            if (behind := followers.behind_reshape(node.ref)) is None:
                return node
            reshape, idiom = behind
        longer = replace(node.payload, steps=node.payload.steps + _adapt(node, idiom))
        if len(longer.chain) > MAX_STEPS:
            return node
        if behind:
            node = followers.absorb_behind(node, reshape, idiom, longer)
        else:
            node = followers.absorb(node, idiom, longer)


def _adapt(node: Node, idiom: Idiom) -> tuple[Step, ...]:
    """The idiom's steps for the node, without those that change nothing.

    The first tensor added to a convolution becomes its `sum`: it can accumulate in place.
    """
    steps = [step for step in idiom.steps if step != _NOTHING]
    has_sum = any(step.kind == "sum" for step in node.payload.steps)
    if isinstance(node.payload, Conv) and not has_sum:
        for i, step in enumerate(steps):
            if step.kind == "binary" and (step.name, step.shape) == ("add", "tensor"):
                steps[i] = sum_of(step.operand)
                break
    return tuple(steps)


def _depths(body: Body) -> dict[str, int]:
    """The longest path from an input to each node."""
    depths: dict[str, int] = {}
    for node in body.view.topological():
        depths[node.name] = 1 + max((depths.get(ref.node, 0) for ref in node.inputs), default=0)
    return depths
