"""Drops what inlining leaves between operations: identities and needless ordering."""

import numpy as np
from tensorflow.core.framework import node_def_pb2

from ..graph import Constants, GraphView, Node, Ref, called_functions, has_gradients
from ..graph.families import FRAMES, READS
from ..tensorflow_private import dtypes, op_def_registry, ops

# On a node, the name under which the gradient is registered in the place of the op's.
GRADIENT = "_gradient_op_type"
LOWERING = "_lower_using_switch_merge"
# Ops that a function runs for their results only, though TensorFlow lists them as stateful.
PURE_READS = frozenset({"ReadVariableOp", "ResourceGather", "VariableShape", "Const", "Identity"})

_NO_GRADIENT = frozenset({"StopGradient", "PreventGradient"})
_HIDDEN = "blockdnn_"
IDENTITIES = _NO_GRADIENT | {"Identity", "IdentityN"}
CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# A loaded SavedModel names all reads as side effects: 263 of MobileNetV2.
_STANDS_FOR_OTHERS = frozenset({*IDENTITIES, *PURE_READS, "NoOp"})
# They have no effect but to fail.
_CHECKS = frozenset({"CheckNumerics", "EnsureShape"})
# So begin the names of stateful ops that may run as often as they like.
_HARMLESS = ("Assert", "Blockdnn", "HashTable", "LookupTableFind", "LookupTableSize", "Stack")
_HARMLESS += ("TensorArray", "VarHandleOp", "VarIsInitializedOp", "Variable", "_")


def relax(view: GraphView, constants: Constants) -> None:
    """Lets consumers read what an identity reads, and reads of constants wait for nothing."""
    _resolve_targets(view)
    _wait_for_effects(view, constants)
    _bypass_identities(view)


def hide_own_gradient(node: node_def_pb2.NodeDef) -> None:
    """Makes an identity with another gradient an op that Grappler does not drop."""
    if node.op in _NO_GRADIENT or (node.op in IDENTITIES and GRADIENT in node.attr):
        types = list(node.attr["T"].list.type) or [node.attr["T"].type]
        for key in ("Tin", "Tout"):
            node.attr[key].list.type.extend(types)
        for key in ("T", "message"):
            node.attr.pop(key, None)
        node.attr["token"].s = (_HIDDEN + node.op.replace("Prevent", "Stop")).encode()
        node.op = "PyFuncStateless"


def show_own_gradient(node: node_def_pb2.NodeDef) -> None:
    """Undoes `hide_own_gradient`."""
    if node.op != "PyFuncStateless" or not node.attr["token"].s.startswith(_HIDDEN.encode()):
        return
    node.op = node.attr["token"].s.decode().removeprefix(_HIDDEN)
    types = list(node.attr["Tin"].list.type)
    if node.op == "IdentityN":
        node.attr["T"].list.type.extend(types)
    else:
        node.attr["T"].type = types[0]
    for key in ("Tin", "Tout", "token"):
        del node.attr[key]


def has_own_gradient(node) -> bool:
    """Whether a Node or NodeDef may have another gradient than the formula."""
    return node.op in _NO_GRADIENT or (GRADIENT in node.attr and node.op not in CALLS)


def own_gradients(view: GraphView, constants: Constants) -> tuple[str, ...]:
    """The nodes by which a function has another gradient than the formulas that it computes.

    What takes their place has the gradient of the formulas. Of tf.nn.silu, tf.nn.moments and
    tf.reduce_logsumexp that is the same; nobody looks at the gradient of integers, or at that of a
    constant.
    """
    names = []
    for node in view:
        if node.op in _NO_GRADIENT:
            counts = has_gradients(dtypes.as_dtype(node.attr["T"].type))
            changes = counts and not constants.is_constant(node.inputs[0])
            known = (_is_of_moments, _is_of_logsumexp)
            if changes and not any(is_of(view, constants, node) for is_of in known):
                names.append(node.name)
        elif GRADIENT in node.attr and node.op not in CALLS and not _is_of_silu(view, node):
            names.append(node.name)
    return tuple(names)


def _is_of_logsumexp(view: GraphView, constants: Constants, stop: Node) -> bool:
    """Whether a maximum that has no gradient is taken off and added again around log(sum(exp)).

    The gradient by it is 0, as it is one number for all that a sum adds.
    """

    def readers(node: Node) -> list[Node]:
        return [reader for reader, _ in view.consumers(node.ref) if reader.op != "Shape"]

    maximum = view.producer(stop.inputs[0])
    if maximum.op == "SelectV2":  # where it is finite
        maximum = view.producer(maximum.inputs[1])
    path = [node for node in readers(stop) if node.op == "Sub" and node.inputs[1] == stop.ref]
    for op in ("Exp", "Sum", "Log", "AddV2"):
        path += [node for node in readers(path[-1]) if node.op == op] if path else []
    if [node.op for node in path] != ["Sub", "Exp", "Sum", "Log", "AddV2"]:
        return False
    if any(len(readers(node)) > 1 or view.is_fetched(node.ref) for node in path[:-1]):
        return False
    if maximum.op != "Max" or not maximum.attr["keep_dims"].b or view.is_fetched(stop.ref):
        return False
    over = [constants.value(node.inputs[1]) for node in (maximum, path[2])]
    if over[0] is None or not np.array_equal(*over):
        return False
    added = [node for node in readers(stop) if node is not path[0]]
    if len(added) == 1 and added[0].op in ("Reshape", "Squeeze"):
        added = readers(added[0])
    return len(added) == 1 and added[0] is path[-1]


def _is_of_moments(view: GraphView, constants: Constants, stop: Node) -> bool:
    """Whether a mean that has no gradient is the one in a variance, whose gradient by it is 0."""

    def axes(mean: Node):
        return None if mean.op != "Mean" else constants.value(mean.inputs[1])

    mean = view.producer(stop.inputs[0])
    over, differences = axes(mean), [node for node, _ in view.consumers(stop.ref)]
    if over is None or not mean.attr["keep_dims"].b or view.is_fetched(stop.ref):
        return False
    for node in differences:
        wanted = {mean.inputs[0], stop.ref}
        if node.op != "SquaredDifference" or set(node.inputs) != wanted:
            return False
        means = [axes(reader) for reader, _ in view.consumers(node.ref)]
        if view.is_fetched(node.ref) or any(not np.array_equal(numbers, over) for numbers in means):
            return False
    return bool(differences)


def _is_of_silu(view: GraphView, node: Node) -> bool:
    """Whether this is tf.nn.silu's wrapping of x * sigmoid(beta * x), or of the same once saved."""
    if not _is_of_tensorflow(node.attr[GRADIENT].s.decode()):
        return False
    if node.op != "IdentityN" or len(node.inputs) < 2:
        return False

    def origin(ref: Ref) -> Ref:
        return view.origin(ref, ("Identity",))

    def factors(ref: Ref) -> list[Ref]:
        node = view.producer(ref)
        return list(map(origin, node.inputs)) if node.op == "Mul" else []

    x = origin(node.inputs[1])
    product = factors(origin(node.inputs[0]))
    gates = [view.producer(ref) for ref in product if ref != x]
    if x not in product or [gate.op for gate in gates] != ["Sigmoid"]:
        return False
    scaled = origin(gates[0].inputs[0])
    return scaled == x or x in factors(scaled)


def _is_of_tensorflow(name: str) -> bool:
    """Whether the gradient of that name comes from a SavedModel or from TensorFlow's own silu."""
    try:
        function = ops.gradient_registry.lookup(name)
    except LookupError:  # of a SavedModel that was written without
        return True
    for inner in ("tape_grad_fn", "grad_fn"):
        held = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        function = held[inner].cell_contents if inner in held else function
    modules = ("nn_impl", "function_deserialization")
    return function.__module__.startswith("tensorflow.") and function.__module__.endswith(modules)


def rests_on_edges(nodes: list) -> bool:
    """Whether effects beside branches and loops need control edges where data has a path, too.

    Grappler's pruning and dependency optimizer drop an edge beside such a path. But TensorFlow
    makes switches of branches and loops when the function is called, and then not all that lies in
    one waits for all inputs.
    """
    if not any(LOWERING in node.attr for node in nodes):
        return False
    op_names = {node.op for node in nodes if not any(called_functions([node]))} - PURE_READS
    definitions = map(op_def_registry.get, op_names)
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
        stays = name in listed or _is_stateful(node.op) or node.op in FRAMES or node.op in _CHECKS
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
    reads = [node for node in view if node.op in READS and constants.reads_constant(node)]
    waiting = [node for node in view if node.controls]
    if not waiting or any(node.op in FRAMES for node in view):
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
    if node.op in READS:
        return not constants.reads_constant(node)
    return _is_stateful(node.op)


def acts(node) -> bool:
    """Whether running a Node or NodeDef once more changes something outside, or draws again.

    What only reads does not, nor what fails, and calls act where the functions do.
    """
    is_harmless = node.op.startswith(_HARMLESS) or node.op in READS
    return not is_harmless and _is_stateful(node.op) and not any(called_functions([node]))


def _is_stateful(op: str) -> bool:
    definition = op_def_registry.get(op)
    return op not in PURE_READS and (definition is None or definition.is_stateful)


def _bypass_identities(view: GraphView) -> None:
    """Fetched and ordering identities stay."""
    for node in view:
        if node.op not in IDENTITIES or view.has_control_edges(node.name):
            continue
        for port, source in enumerate(node.inputs):
            if not view.is_fetched(Ref(node.name, port)):
                view.replace_uses(Ref(node.name, port), source)
        view.remove_dead([node.name])
