"""Says why element-wise work after a chain runs by itself, by an op of ours or TensorFlow's."""

from ....graph import Body, Node
from ....ops.records import MAX_STEPS, Eltwise
from ...context import Context
from ...followers import Followers


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
