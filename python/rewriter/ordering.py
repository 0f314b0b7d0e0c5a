"""Drops what inlining leaves between operations: identities and needless ordering."""

from ..graph import Constants, GraphView, Node, Ref, called_functions
from ..tensorflow_private import op_def_registry

LOWERING = "_lower_using_switch_merge"
# Ops that a function runs for their results only, though TensorFlow lists them as stateful.
PURE_READS = frozenset({"ReadVariableOp", "ResourceGather", "VariableShape", "Const", "Identity"})

_IDENTITIES = frozenset({"Identity", "IdentityN", "StopGradient", "PreventGradient"})
# A loaded SavedModel names all its reads as side effects: 263 of MobileNetV2.
_STANDS_FOR_OTHERS = frozenset({*_IDENTITIES, *PURE_READS, "NoOp"})
_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"})
# They have no effect but to fail.
_CHECKS = frozenset({"CheckNumerics", "EnsureShape"})
# In loops and conditions of version 1 a control edge says where a node belongs.
_FRAMES = frozenset({"Enter", "Exit", "Merge", "NextIteration", "Switch"})


def relax(view: GraphView, constants: Constants) -> None:
    """Lets consumers read what an identity reads, and reads of constants wait for nothing."""
    _resolve_targets(view)
    _wait_for_effects(view, constants)
    _bypass_identities(view)


def rests_on_edges(node_lists) -> bool:
    """Whether effects beside branches and loops need control edges where data has a path, too.

    Grappler's pruning and its dependency optimizer drop an edge beside such a path. But TensorFlow
    makes switches of branches and loops when the function is called, and then not all that lies in
    one waits for all of its inputs.
    """
    nodes = [node for nodes in node_lists for node in nodes]
    if not any(LOWERING in node.attr for node in nodes):
        return False
    own = {node.op for node in nodes if not any(called_functions([node]))} - PURE_READS
    definitions = map(op_def_registry.get, own)
    return any(definition is not None and definition.is_stateful for definition in definitions)


def _resolve_targets(view: GraphView) -> None:
    """What must run and does nothing itself stands for the effects behind what it reads or awaits.

    An inlined call is such a node, a read is, and what a pruned function of version 1 fetches.
    """
    listed = dict.fromkeys(view.targets)
    names, seen, resolved = list(listed), set(), []
    while names:
        name = names.pop(0)
        if name in seen or name not in view or view.node(name).op == "Placeholder":
            continue
        seen.add(name)
        node = view.node(name)
        stays = name in listed or _is_stateful(node.op) or node.op in _FRAMES or node.op in _CHECKS
        if stays and node.op not in _STANDS_FOR_OTHERS:
            resolved.append(name)
        else:
            names.extend([*node.controls, *(ref.node for ref in node.inputs)])
    view.targets = resolved


def _wait_for_effects(view: GraphView, constants: Constants) -> None:
    """Nodes wait for effects alone, and reads of what nothing in the graph assigns for nothing.

    Such a variable may be read at any time. Calls that TensorFlow lists as stateful leave edges
    when they are inlined, as Keras's grouped convolutions do: then outputs wait for a Pad.

    What waits for a node without effects waits for the effects before it instead. Effects that were
    ordered only by way of such a read, over whatever it is that reads it, get an edge of their own.
    """
    reads = [node for node in view if node.op in _READS and constants.reads_constant(node)]
    waiting = [node for node in view if node.controls]
    if not waiting or any(node.op in _FRAMES for node in view):
        return
    before, up_to = _nearest_effects(view, constants)
    for node in waiting:
        effects = (effect for name in node.controls for effect in sorted(up_to[name]))
        view.set_controls(node, dict.fromkeys(effects))
    ordered = [node for node in reads if node.controls]
    for node in ordered:
        view.set_controls(node, [])
    if not ordered:
        return
    after, _ = _nearest_effects(view, constants)
    for node in view:
        lost = before[node.name] - after[node.name]
        if lost and _has_effects(node, constants):
            view.set_controls(node, dict.fromkeys([*node.controls, *sorted(lost)]))


def _nearest_effects(view: GraphView, constants: Constants):
    """Node -> the nearest effects before it, and the same with itself where it has effects."""
    before: dict[str, frozenset[str]] = {}
    up_to: dict[str, frozenset[str]] = {}
    for node in view.topological():
        sources = [*(ref.node for ref in node.inputs), *node.controls]
        before[node.name] = frozenset().union(*(up_to[name] for name in sources))
        is_one = _has_effects(node, constants)
        up_to[node.name] = frozenset({node.name}) if is_one else before[node.name]
    return before, up_to


def _has_effects(node: Node, constants: Constants) -> bool:
    """Whether it matters when the node runs: it writes, draws or may read what is written."""
    if node.op in _READS:
        return not constants.reads_constant(node)
    return _is_stateful(node.op)


def _is_stateful(op: str) -> bool:
    definition = op_def_registry.get(op)
    return op not in PURE_READS and (definition is None or definition.is_stateful)


def _bypass_identities(view: GraphView) -> None:
    """Fetched and ordering identities stay."""
    for node in view:
        if node.op not in _IDENTITIES or view.has_control_edges(node.name):
            continue
        for port, source in enumerate(node.inputs):
            if not view.is_fetched(Ref(node.name, port)):
                view.replace_uses(Ref(node.name, port), source)
        view.remove_dead([node.name])
