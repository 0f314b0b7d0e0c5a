"""Attaches the element-wise work after a primitive to the primitive itself.

Only what is the sole use of the primitive's result: fetched tensors, control edges
and further consumers stop the chain (see `Followers.sole`). Per-channel affine maps after a
convolution go into the weights and the bias,

    gamma * (conv(x, w) + b - mean) / sqrt(var + eps) + beta
        = conv(x, w * s) + (b - mean) * s + beta,     s = gamma / sqrt(var + eps)

all per output channel, in float64, rounded to float32 once, where float32 holds it; all else is
appended to the chain.
"""

from dataclasses import replace

from ....graph import Body, Node
from ....ops.records import MAX_STEPS, Conv, Convolution, Eltwise, Step, eltwise, sum_of
from ...context import Context
from ...followers import Followers
from ...rules import Idiom

_NOTHING = eltwise("linear", alpha=1.0, beta=0.0)  # a bias of zeros


def find_followers(body: Body, context: Context) -> dict:
    """Recognises the element-wise idioms, such as batch normalisation and activations."""
    return {"followers": Followers(body)}


def fold_batch_norm(body: Body, context: Context) -> None:
    """Multiplies batch normalisation and other affine maps into the weights before, in float64."""
    followers = context.followers
    for node in body.view:
        if not isinstance(node.payload, Convolution) or node.name not in body.view:
            continue
        while (idiom := followers.sole(node.ref)) and idiom.is_affine:
            payload = node.payload.then_affine(idiom.scale, idiom.shift)
            if payload is None:  # It becomes steps.
                break
            node = followers.absorb(node, idiom, payload)


def fuse_post_ops(body: Body, context: Context) -> None:
    """Appends bias, activation and shortcut addition to the chain of what they follow.

    The deepest first, so that of two convolutions that are added the one that ends
    last takes the Add and finds the other's result ready to accumulate into.
    """
    depths: dict[str, int] = {}  # the longest path from an input to each node
    for node in body.view.topological():
        depths[node.name] = 1 + max((depths.get(ref.node, 0) for ref in node.inputs), default=0)
    planned = [node for node in body.view if node.payload and node.payload.takes_steps]
    for node in sorted(planned, key=lambda node: depths[node.name], reverse=True):
        if node.name in body.view and body.view.node(node.name) is node:
            extend(node, context.followers)


def extend(node: Node, followers: Followers) -> Node:
    """Absorbs idioms after `node` as long as it can; returns the grown node."""
    while (idiom := followers.sole(node.ref)) is not None:
        longer = replace(node.payload, steps=node.payload.steps + _adapt(node, idiom))
        if len(longer.chain) > MAX_STEPS:
            break
        node = followers.absorb(node, idiom, longer)
    return node


def _adapt(node: Node, idiom: Idiom) -> tuple[Step, ...]:
    """The idiom's steps for the node, without those that change nothing.

    The first tensor added to a convolution becomes the `sum`: it can accumulate in place.
    """
    steps = [step for step in idiom.steps if step != _NOTHING]
    has_sum = any(step.kind == "sum" for step in node.payload.steps)
    if isinstance(node.payload, Conv) and not has_sum:
        for i, step in enumerate(steps):
            if step.kind == "binary" and (step.name, step.shape) == ("add", "tensor"):
                steps[i] = sum_of(step.operand)
                break
    return tuple(steps)


def report_unfused(body: Body, context: Context) -> None:
    """Says why element-wise work after a chain runs by itself."""
    followers, report = context.followers, context.report
    for node in body.view.topological():
        if node.payload is None or not node.payload.takes_steps:
            continue
        readers = [reader for reader, _ in body.view.consumers(node.ref)]
        roots = {_root(reader, followers): reader for reader in readers}
        for name, reader in roots.items():
            if _could_follow(node, name, reader, followers):
                reason = _reason(body, node, body.view.node(name), len(roots) > 1)
                report.unfused.append((name, reason))


def _root(reader: Node, followers: Followers) -> str:
    """What the reader is a part of."""
    return (reader.payload is None and followers.root_of(reader.name)) or reader.name


def _could_follow(node: Node, root: str, reader: Node, followers: Followers) -> bool:
    if reader.payload is not None:
        return isinstance(reader.payload, Eltwise) and reader.src == node.ref
    return any(idiom.src == node.ref for idiom in followers.at_root(root))


def _reason(body: Body, node: Node, follower: Node, has_others: bool) -> str:
    view = body.view
    if view.has_control_edges(node.name):
        return "a control edge holds what it follows"
    if has_others or view.is_fetched(node.ref):
        return "what it follows has other readers"
    if follower.controls:
        return "a control edge holds it"
    if len(node.payload.chain) == MAX_STEPS:
        return f"the chain of what it follows is full: {MAX_STEPS} entries"
    return "it reads what it follows twice"
