"""Takes a ConcreteFunction apart: one flat graph, inputs and captured tensors.

Variables stay captures and are read only where a pass needs their values; captured tensors,
which nobody can assign, become constants: a loaded SavedModel captures what the function had
as such (the mean and variance of a Normalization). Nested calls are inlined by Grappler; the
functions of While, If and of what cannot be inlined become bodies of their own.
"""

import copy
import functools
from collections.abc import Mapping

from tensorflow.core.framework import function_pb2, graph_pb2
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, rewriter_config_pb2

from ..graph import (
    Attributes,
    Body,
    Constants,
    GraphView,
    Module,
    Node,
    Place,
    Ref,
    Shapes,
    Variable,
    all_nodes,
    called,
    called_functions,
    constant_node,
    definitions,
    first_argument,
    flatten,
    handed_on,
    nodes_within,
    renew_read_only,
    restore_library,
)
from ..graph.families import BEGINNINGS, CONVOLUTIONS, LOOPS, PRODUCTS
from ..tensorflow_private import (
    array_ops,
    func_graph,
    functions_of,
    gen_resource_variable_ops,
    importer,
    operation_of,
    ops,
    results_of,
    runs_on_cpu,
    tensor_shape,
    tf_optimizer,
    variable_behind,
)
from . import ordering
from .weights_file import checked

# These keep Grappler from inlining a call.
XLA = "_XlaMustCompile"
_COLOCATED = "_class"  # Nodes that must be on one device, which is the CPU.
_SPECIALIZED = "_GrapplerSpecializedFunc"  # Grappler's mark, with which no SavedModel loads.
_INLINE_BLOCKERS = (XLA, "_noinline")
# On a sum of products, the function in which the user, or Keras, had it compiled by XLA: a grouped
# convolution of Keras's, say, of which TensorFlow has not every kernel.
COMPILED_IN = "_blockdnn_compiled_in"
# tf_keras gives recurrent layers one function for CPUs and one for GPUs, for a pass of Grappler
# to choose; it inlines neither, unless the one for CPUs has lost these.
_IMPLEMENTS, _PREFERS = "api_implements", "api_preferred_device"
# Larger captured tensors stay outside: what reads tables is not ours, and a graph has 2 GiB.
_MAX_EMBEDDED_BYTES = 1 << 26


def capture(
    concrete,
    closed: frozenset[str] = frozenset(),
    live: bool = False,
    moment: Mapping[int, tuple] = {},
    wanted: frozenset[str] = BEGINNINGS,
) -> Module:
    """Inlines the function and measures the graph and those of loops and conditions in it.

    Args:
        closed: functions that XLA goes on compiling.
        live: whether the result has to follow variables.
        moment: values of variables, as `variables_of` takes them.
        wanted: a loop, condition or call has a body where functions of it have one of these ops.
    """
    captured = concrete.captured_inputs
    names = [tensor.op.name for tensor in concrete.inputs]
    count = len(names) - len(captured)
    captures = dict(zip(names[count:], captured, strict=True))
    targets = [op.name for op in concrete.graph.control_outputs]
    fetches = [tensor.name for tensor in results_of(concrete)]
    graph_def, functions = _inline(concrete.graph.as_graph_def(), fetches, targets, closed)
    for node in graph_def.node:  # Shapes of an earlier export would be read as facts.
        node.attr.pop("_output_shapes", None)
    captures = _embed_tensors(graph_def, captures)
    _drop_waits_for_inputs(graph_def, names)

    view = GraphView(graph_def, [Ref.parse(name) for name in fetches], targets)
    view.prune()
    constants = Constants(view, variables_of(captures, moment), live=live)
    inputs = concrete.inputs[:count]
    known = {tensor.op.name: _as_tuple(tensor.shape) for tensor in inputs}
    known |= {name: _as_tuple(tensor.shape) for name, tensor in captures.items()}
    stated = {"stated": _stated_shapes(concrete.graph, view)}
    read = _looked_into(functions, wanted)
    main = _body(view, constants, known, functions, read, captures, stated, inputs=names[:count])
    return Module(main, captures, concrete, functions)


def _body(
    view: GraphView,
    constants,
    known: dict,
    functions: Mapping,
    looked_into: set[str],
    captures,
    more: dict,
    **fields,
) -> Body:
    """A graph without identities and needless edges, the shapes, and inner bodies.

    Args:
        known, more: as of `Shapes`.
        looked_into: the functions whose bodies are wanted.
        captures: as of `fill`.
        fields: others of the body.
    """
    own_gradients = ordering.own_gradients(view, constants)
    ordering.relax(view, constants)
    reads = (node for node in view if node.op == "ReadVariableOp")
    shapes = ((node.name, constants.shape_of_read(node)) for node in reads)
    known |= {name: shape for name, shape in shapes if shape is not None}
    ask = functools.partial(static_shapes, functions, captures)
    shapes = Shapes(view, known, ask, scope=fields.get("name", ""), **more)
    body = Body(view, constants, shapes, own_gradients=own_gradients, **fields)
    _add_inner(body, functions, looked_into)
    return body


def _looked_into(
    functions: Mapping[str, function_pb2.FunctionDef], wanted: frozenset[str]
) -> set[str]:
    """The functions in which something may be converted or has another gradient, or that call
    such ones; a detector has thousands of others."""
    callers: dict[str, list[str]] = {}
    for name, function in functions.items():
        for inner in called_functions(function.node_def):
            callers.setdefault(inner, []).append(name)

    def is_one(node) -> bool:
        is_ours = node.op.startswith("Blockdnn")
        return is_ours or node.op in wanted or ordering.has_own_gradient(node)

    waiting = [name for name, f in functions.items() if any(map(is_one, f.node_def))]
    read = set(waiting)
    for name in waiting:  # It grows.
        waiting += (more := set(callers.get(name, ())) - read)
        read |= more
    return read


def _add_inner(
    outer: Body, functions: Mapping[str, function_pb2.FunctionDef], looked_into: set[str]
) -> None:
    """Gives `outer` the bodies of calls, loops and conditions of such functions, but for XLA's."""
    for node in outer.view:
        if looked_into.isdisjoint(name for _, _, name in called(node)):
            continue
        for key, index, name in called(node):
            function = functions.get(name)
            if function is None or Attributes(function)[XLA].b or node.attr[XLA].b:
                continue
            place = Place(outer, node.name, key, index)
            body = _inner(place, node, function, functions, looked_into)
            outer.inner[node.name, key, index] = body


def _inner(place: Place, node: Node, function, functions, looked_into) -> Body:
    """The body of one function that `node` runs."""
    outer, flat = place.outer, flatten(function)
    _drop_waits_for_inputs(flat.graph_def, flat.inputs)
    view = GraphView(flat.graph_def, flat.fetches, flat.targets)
    arguments = dict(zip(flat.inputs, node.inputs[first_argument(node.op) :], strict=True))
    bound = dict(arguments)
    if node.op in LOOPS:
        loop = functions[node.attr["body"].func.name]
        kept = handed_on(flatten(loop))
        bound = {name: ref for i, (name, ref) in enumerate(arguments.items()) if i in kept}
    bound = {name: ref for name, ref in bound.items() if not ref.port}
    handles = ((name, outer.constants.variable_of(ref)) for name, ref in bound.items())
    variables = {name: variable for name, variable in handles if variable is not None}
    constants = Constants(
        view,
        variables,
        {name: (outer.constants, ref) for name, ref in bound.items()},
        outer.constants.live,
    )
    invariants = [
        _as_tuple(tensor_shape.TensorShape(s)) for s in node.attr["output_shapes"].list.shape
    ]
    known = {}
    for i, (name, ref) in enumerate(arguments.items()):
        if name in bound or node.op not in LOOPS:
            known[name] = outer.shapes.shape(ref)
        else:
            known[name] = invariants[i] if invariants else None
    values = ((name, outer.shapes.value(ref)) for name, ref in bound.items())
    values = {name: value for name, value in values if value is not None}
    where = f"{node.name}/{place.key}" + (f"_{place.index}" if place.index else "")
    fields = {"name": outer.label(where), "inputs": flat.inputs, "place": place, "bound": bound}
    more = {"values": values}
    return _body(view, constants, known, functions, looked_into, {}, more, **fields)


def _stated_shapes(graph, view: GraphView):
    """tensor -> the static shapes that it has, under each name, in the graph as traced.

    A GraphDef does not say what `set_shape` did, and inlining drops identities.
    """
    names: dict[Ref, list[Ref]] = {}
    for node in view:
        for port, ref in enumerate(node.inputs if node.op in ordering.IDENTITIES else ()):
            names.setdefault(ref, []).append(Ref(node.name, port))

    def stated(ref: Ref):
        alike = [ref]
        for alias in alike:
            alike += names.get(alias, ())
            op = _as_traced(graph, alias.node)
            tensors = [] if op is None else op.outputs[alias.port : alias.port + 1]
            for tensor in tensors:
                yield _as_tuple(tensor.shape)
                readers = (op for op in tensor.consumers() if op.type in ordering.IDENTITIES)
                for reader in readers:
                    pairs = zip(reader.inputs, reader.outputs, strict=True)
                    tensors += (output for source, output in pairs if source is tensor)

    return stated


def _as_traced(graph, name: str):
    """The operation that a node was before inlining, which names what was inlined "call/node"."""
    if (op := operation_of(graph, name)) is not None:
        return op
    ends = (i for i, letter in enumerate(name) if letter == "/")
    for end in ends:
        call = operation_of(graph, name[:end])
        if call is not None and call.type in ordering.CALLS:
            function = functions_of(graph).get(call.get_attr("f").name)
            inner = getattr(function, "graph", None)  # of a MetaGraph's there is a definition alone
            return None if inner is None else _as_traced(inner, name[end + 1 :])
    return None


def _embed_tensors(graph_def: graph_pb2.GraphDef, captures: dict[str, object]) -> dict:
    """Makes constants of the captured tensors' placeholders; returns the other captures."""
    embedded = {name: tensor for name, tensor in captures.items() if _is_embeddable(tensor)}
    for node in graph_def.node:
        if (tensor := embedded.get(node.name)) is not None:
            constant = constant_node(node.name, tensor.numpy(), tensor.dtype.as_datatype_enum)
            node.CopyFrom(constant.to_proto())
    return {name: tensor for name, tensor in captures.items() if name not in embedded}


def _is_embeddable(tensor) -> bool:
    if not isinstance(tensor, ops.EagerTensor) or not (
        tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool
    ):
        return False
    return tensor.dtype.size * tensor.shape.num_elements() <= _MAX_EMBEDDED_BYTES


def _drop_waits_for_inputs(graph_def: graph_pb2.GraphDef, names: list[str]) -> None:
    """Removes control edges from placeholders: importing replaces these, but not such edges."""
    waits = {f"^{name}" for name in names}
    for node in graph_def.node:
        if waits.intersection(node.input):
            node.input[:] = [name for name in node.input if name not in waits]


read_variable = gen_resource_variable_ops.read_variable_op


def variables_of(captures: Mapping, moment: Mapping[int, tuple] = {}) -> dict:
    """key -> the variable behind a captured handle, of those that are one.

    Args:
        moment: the id of a handle -> that handle, and the value that the variable is taken to have.
    """
    variables = {}
    for key, handle in captures.items():
        if (held := variable_behind(handle)) is not None:
            read = functools.partial(_value_of, handle, held[0], moment.get(id(handle)))
            variables[key] = Variable(_as_tuple(held[1]), read)
    return variables


def _value_of(handle, dtype, kept: tuple | None):
    return checked(read_variable(handle, dtype) if kept is None else kept[1])


def _inline(graph_def: graph_pb2.GraphDef, fetches, targets, closed: frozenset[str]):
    """Inlines calls, prunes; functions that stay keep their definition and their name.

    Returns: the graph, and what the functions that stay become when calls in them are inlined.
    """
    original = definitions(graph_def)
    meta_graph = meta_graph_pb2.MetaGraphDef()
    meta_graph.graph_def.CopyFrom(graph_def)
    for node in all_nodes(meta_graph.graph_def):
        if ordering.LOWERING in node.attr:
            node.attr[ordering.LOWERING].b = False
        ordering.hide_own_gradient(node)
    _unblock_compiled(meta_graph.graph_def, closed)
    for function in meta_graph.graph_def.library.function:
        if Attributes(function)[_PREFERS].s == b"CPU":
            for key in (_IMPLEMENTS, _PREFERS):
                function.attr.pop(key, None)
    meta_graph.collection_def["train_op"].node_list.value.extend([*fetches, *targets])

    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.min_graph_nodes = -1
    options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    rests = ordering.rests_on_edges(all_nodes(meta_graph.graph_def))
    if rests or graph_def.library.function:  # With no optimizer named, all would run.
        options.optimizers.append("function")
    if not rests:
        options.optimizers.extend(["pruning", "dependency"])
    inlined = tf_optimizer.OptimizeGraph(config, meta_graph)

    for node in all_nodes(inlined):
        if ordering.LOWERING in node.attr:
            node.attr[ordering.LOWERING].b = True
        ordering.show_own_gradient(node)
        node.attr.pop(_COLOCATED, None)  # with what may be gone
    for function in inlined.library.function:
        function.attr.pop(_SPECIALIZED, None)
    functions = copy.deepcopy(definitions(inlined))
    renew_read_only(inlined, functions)
    # What stays keeps the definition that the caller's context already knows by that name, and with
    # it the functions that this calls, of which those that were inlined are left out above.
    functions = original | functions
    kept = [original.get(name, f) for name, f in functions.items()]
    del inlined.library.function[:]
    inlined.library.function.extend(kept)
    restore_library(inlined, functions)
    return inlined, functions


def compiled_by_xla(concrete) -> bool:
    """Whether the user asked for XLA: the function has jit_compile=True."""
    return Attributes(concrete.function_def)[XLA].b


def compiled_in(module: Module) -> frozenset[str]:
    """The functions of which a sum of products was inlined and has not been converted."""
    nodes = (node for body in module.bodies for node in body.view if node.payload is None)
    names = {node.attr[COMPILED_IN].s.decode() for node in nodes}
    return frozenset(names - {""})


def _unblock_compiled(graph_def: graph_pb2.GraphDef, closed: frozenset[str]) -> None:
    """Lets functions that XLA compiles be inlined where their sums of products may become ours."""
    library = definitions(graph_def)
    unblocked = set()
    for name, function in library.items():
        if name in closed or not Attributes(function)[XLA].b:
            continue
        nodes = nodes_within(function.node_def, library)
        sums = [node for node in nodes if node.op in PRODUCTS | CONVOLUTIONS]
        if not sums or not all(node.op in library or runs_on_cpu(node.op) for node in nodes):
            continue
        unblocked.add(name)
        for key in _INLINE_BLOCKERS:
            function.attr.pop(key, None)
        for node in sums:
            node.attr[COMPILED_IN].s = name.encode()
    for node in all_nodes(graph_def):
        if unblocked.intersection(called_functions([node])):
            for key in _INLINE_BLOCKERS:
                node.attr.pop(key, None)


def import_flat(graph: func_graph.FuncGraph, graph_def, inputs, captures, fetches=(), targets=()):
    """Imports a flat graph into `graph`, whose placeholders give way to real tensors.

    Args:
        inputs: placeholder name -> tensor of `graph`.
        captures: placeholder name -> tensor outside, captured when it is used.
        fetches: tensor names.
        targets: node names.

    Returns: the tensors of `fetches`, the operations of `targets`.
    """
    used = {text.split(":")[0] for node in graph_def.node for text in node.input}
    body = graph_pb2.GraphDef(versions=graph_def.versions, library=graph_def.library)
    mapped = {**inputs, **captures}
    body.node.extend(node for node in graph_def.node if node.name not in mapped)
    tensors = {
        f"{name}:0": graph.capture(tensor) if name in captures else tensor
        for name, tensor in mapped.items()
        if name in used or f"{name}:0" in fetches
    }
    input_map = {name: tensor for name, tensor in tensors.items() if name[:-2] in used}
    wanted = [name for name in fetches if name not in tensors] + list(targets)
    imported = importer.import_graph_def(body, input_map=input_map, return_elements=wanted, name="")
    results = tensors | dict(zip(wanted, imported or (), strict=True))
    return [results[name] for name in fetches], [results[name] for name in targets]


def fill(graph, graph_def, functions, captures, inputs):
    """The graph, with a flat one in it.

    Args:
        graph: a FuncGraph that is empty.
        graph_def: the flat one; it gets a library.
        functions: name -> definition, of those that it may call.
        captures: placeholder name -> tensor outside.
        inputs: placeholder name -> (data type, shape).
    """
    restore_library(graph_def, functions)
    with graph.as_default():
        placeholders = {name: array_ops.placeholder(*spec) for name, spec in inputs.items()}
        import_flat(graph, graph_def, placeholders, captures)
    return graph


def static_shapes(functions, captures, graph_def, inputs) -> dict[str, list]:
    """TensorFlow's own static shapes: node name -> a tuple or None for each output.

    It is asked once for all graphs that differ in their names alone.
    """
    names = {node.name: f"n{i}" for i, node in enumerate(graph_def.node)}
    if captures.keys() & names.keys() or any(called_functions(graph_def.node)):
        return _static_shapes(functions, captures, graph_def, inputs)
    alike = copy.deepcopy(graph_def)
    for node in alike.node:
        node.name = names[node.name]
        sources = map(Ref.parse, node.input)
        node.input[:] = [str(ref._replace(node=names[ref.node])) for ref in sources]
    specs = tuple((names[name], *spec) for name, spec in inputs.items())
    answers = _asked_once(alike.SerializeToString(deterministic=True), specs)
    return {name: answers[other] for name, other in names.items() if other in answers}


@functools.lru_cache(4096)
def _asked_once(definition: bytes, inputs: tuple) -> dict[str, list]:
    graph_def = graph_pb2.GraphDef.FromString(definition)
    return _static_shapes({}, {}, graph_def, {name: spec for name, *spec in inputs})


def _static_shapes(functions, captures, graph_def, inputs) -> dict[str, list]:
    graph = fill(func_graph.FuncGraph("shapes"), graph_def, functions, captures, inputs)
    return {op.name: [_as_tuple(t.shape) for t in op.outputs] for op in graph.get_operations()}


def _as_tuple(shape):
    return None if shape.rank is None else tuple(shape.as_list())
