"""Which resources the functions of loops, conditions and calls only read.

TensorFlow notes the numbers of such inputs while a function is traced. Grappler orders arguments
anew and leaves the note as it was, which then names other variables.
"""

from collections.abc import Mapping

from tensorflow.core.framework import function_pb2, graph_pb2, types_pb2

from .body import called, first_argument
from .families import LOOPS, READS

_NOTE = "_read_only_resource_inputs"
_Functions = Mapping[str, function_pb2.FunctionDef]


def renew_read_only(graph_def: graph_pb2.GraphDef, functions: _Functions) -> None:
    """Writes the note of each node that has one, in the graph and in the functions, anew."""
    for nodes in (graph_def.node, *(function.node_def for function in functions.values())):
        for node in nodes:
            if _NOTE in node.attr:
                count = sum(text[0] != "^" for text in node.input)
                read = [i for i in range(count) if _is_read(node, i, functions, frozenset())]
                node.attr[_NOTE].list.i[:] = read


def _is_read(node, index: int, functions: _Functions, callers: frozenset[str]) -> bool:
    """Whether input `index` of the node is a resource that all of its functions only read."""
    names = [name for _, _, name in called(node)]
    if not names or callers.intersection(names):
        return False
    argument = index - first_argument(node.op)
    return argument >= 0 and all(
        name in functions and _only_reads(functions[name], argument, functions, callers | {name})
        for name in names
    )


def _only_reads(function, argument: int, functions: _Functions, callers) -> bool:
    arguments = function.signature.input_arg
    if arguments[argument].type != types_pb2.DT_RESOURCE:
        return False
    handles = [arguments[argument].name]  # it, and what is only another name of it
    for handle in handles:
        for node in function.node_def:
            for index, text in enumerate(node.input):
                if text != handle or node.op in READS:
                    continue
                if node.op == "Identity":
                    handles.append(f"{node.name}:output:0")
                elif not _is_read(node, index, functions, callers):
                    return False
                elif node.op in LOOPS:
                    handles.append(f"{node.name}:output:{index}")
    return True
