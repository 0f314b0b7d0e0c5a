"""FunctionDefs as graphs, and back.

In a FunctionDef an edge is called "node:output:index", after the op's own name for an output and
the place in it; in a GraphDef "node:port". Arguments are bare names there, placeholders here.
"""

import functools
from collections import ChainMap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tensorflow.core.framework import function_pb2, graph_pb2

from ..tensorflow_private import op_def_registry
from .types import outputs
from .view import Attributes, GraphView, Ref


class Flat(NamedTuple):
    """A function as a graph.

    Attributes:
        graph_def: the nodes, and a placeholder for each argument.
        inputs: the placeholders, in order.
        fetches: the results, in order.
        targets: nodes that run for their side effects.
    """

    graph_def: graph_pb2.GraphDef
    inputs: list[str]
    fetches: list[Ref]
    targets: list[str]


def definitions(graph_def: graph_pb2.GraphDef) -> dict[str, function_pb2.FunctionDef]:
    """name -> the function of that name in the graph's library."""
    return {function.signature.name: function for function in graph_def.library.function}


def all_nodes(graph_def: graph_pb2.GraphDef) -> list:
    """The nodes of a graph and of the functions in its library."""
    return [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]


def flatten(function: function_pb2.FunctionDef) -> Flat:
    """The function's graph, with an empty library."""
    graph_def = graph_pb2.GraphDef()
    signature = function.signature
    edges = {arg.name: arg.name for arg in signature.input_arg}
    for arg in signature.input_arg:
        placeholder = graph_def.node.add(name=arg.name, op="Placeholder")
        placeholder.attr["dtype"].type = arg.type
    for node in function.node_def:
        for port, (output, _) in enumerate(outputs(node)):
            edges[f"{node.name}:{output}"] = f"{node.name}:{port}" if port else node.name
    for node in function.node_def:
        copied = graph_def.node.add()
        copied.CopyFrom(node)
        copied.input[:] = [text if text[0] == "^" else edges[text] for text in node.input]
    fetches = [Ref.parse(edges[function.ret[arg.name]]) for arg in signature.output_arg]
    inputs = [arg.name for arg in signature.input_arg]
    return Flat(graph_def, inputs, fetches, [*function.control_ret.values()])


def handed_on(loop: Flat, lists: bool = False) -> set[int]:
    """The variables of a loop that the body only hands on.

    Args:
        loop: the loop's body.
        lists: also lists of tensors of which it sets elements, which leaves their length.
    """
    sources = {node.name: node.input[0] for node in loop.graph_def.node if _keeps(node, lists)}

    def source(name: str) -> str:
        while name in sources:
            name = sources[name].removesuffix(":0")
        return name

    pairs = enumerate(zip(loop.fetches, loop.inputs, strict=True))
    return {i for i, (ref, name) in pairs if not ref.port and source(ref.node) == name}


def _keeps(node, lists: bool) -> bool:
    if node.op == "TensorListSetItem":
        return lists and not Attributes(node)["resize_if_index_out_of_bounds"].b
    return node.op == "Identity"


def unflatten(
    function: function_pb2.FunctionDef,
    name: str,
    view: GraphView,
    *,
    inputs: Sequence[str],
    new_inputs: Iterable[tuple[str, int]] = (),
    new_outputs: Iterable[tuple[Ref, int]] = (),
) -> function_pb2.FunctionDef:
    """A function called `name` with the signature of `function` and the graph of `view`.

    Args:
        inputs: the placeholders in `view` of the function's own arguments, in order.
        new_inputs: (placeholder, data type) of arguments that come after them.
        new_outputs: (tensor, data type) of results that come after the function's own.
    """
    result = function_pb2.FunctionDef()
    result.CopyFrom(function)
    signature = result.signature
    signature.name = name
    for placeholder, dtype in new_inputs:
        signature.input_arg.add(name=_fresh(signature.input_arg, placeholder), type=dtype)
    arguments = dict(zip([*inputs, *(p for p, _ in new_inputs)], signature.input_arg, strict=True))
    for _, dtype in new_outputs:
        signature.output_arg.add(name=_fresh(signature.output_arg, "handed_on"), type=dtype)
    edges = {Ref(placeholder): arg.name for placeholder, arg in arguments.items()}
    nodes = [node for node in view if node.name not in arguments]
    write_function(result, nodes, edges, [*view.fetches, *(ref for ref, _ in new_outputs)])
    result.control_ret.clear()
    del signature.control_output[:]
    for target in view.targets:
        signature.control_output.append(target)
        result.control_ret[target] = target
    return result


def write_function(function: function_pb2.FunctionDef, nodes, edges: dict, results) -> None:
    """Gives a function these nodes, and the results in their order.

    Args:
        edges: tensor -> name, of the arguments.
    """
    names = {ref.node: name for ref, name in edges.items()}
    for node in nodes:
        ports = enumerate(outputs(node))
        edges |= {Ref(node.name, port): f"{node.name}:{name}" for port, (name, _) in ports}
    del function.node_def[:]
    for node in nodes:
        proto = node.to_proto()
        controls = [f"^{names.get(name, name)}" for name in node.controls]
        proto.input[:] = [edges[ref] for ref in node.inputs] + controls
        function.node_def.append(proto)
    function.ret.clear()
    for arg, ref in zip(function.signature.output_arg, results, strict=True):
        function.ret[arg.name] = edges[ref]


def _fresh(arguments, base: str) -> str:
    """A name that no argument has; such names are of lower case and without slashes."""
    taken, name, suffix = {arg.name for arg in arguments}, base.lower().replace("/", "_"), 0
    while name in taken:
        suffix += 1
        name = f"{base}_{suffix}"
    return name


def called_functions(nodes):
    """The names of all functions that the nodes' attributes mention."""
    for node in nodes:
        # A map of attributes has no order, and equal nodes shall name theirs in the same.
        for _, attr in sorted(node.attr.items()) if _may_call(node.op) else ():
            if attr.HasField("func"):
                yield attr.func.name
            for function in attr.list.func:
                yield function.name


def nodes_within(nodes, functions, closed: Iterable[str] = ()) -> list:
    """The nodes, and the NodeDefs of those functions that they call, but of `closed` ops."""
    within, seen = list(nodes), set()
    for node in within:  # It grows by those of the functions that these call.
        for name in called_functions([node]) if node.op not in closed else ():
            if name in functions and name not in seen:
                seen.add(name)
                within += functions[name].node_def
    return within


@functools.cache
def _may_call(op: str) -> bool:
    """Whether nodes of an op may mention functions; one that is not registered is a function."""
    definition = op_def_registry.get(op)
    return definition is None or any("func" in attr.type for attr in definition.attr)


def restore_library(graph_def: graph_pb2.GraphDef, functions) -> None:
    """Keeps the functions that the graph reaches, as it has them, or else out of `functions`."""
    known = ChainMap(definitions(graph_def), functions)
    kept, wanted = {}, list(called_functions(graph_def.node))
    while wanted:
        name = wanted.pop()
        if name in known and name not in kept:
            kept[name] = known[name]
            wanted.extend(called_functions(known[name].node_def))
    library = function_pb2.FunctionDefLibrary(function=kept.values())
    library.gradient.extend(g for g in graph_def.library.gradient if g.function_name in kept)
    graph_def.library.CopyFrom(library)
