"""What is noted of resources that are arguments of the functions of loops, conditions, calls.

TensorFlow notes the numbers of those that they only read while a function is traced. Grappler
orders arguments anew and leaves the note as it was, which then names other variables. It also drops
what variables the arguments are, which gradients of conditions ask for.
"""

from collections.abc import Mapping

from tensorflow.core.framework import function_pb2, graph_pb2, types_pb2

from .body import called, first_argument
from .families import LOOPS, READS
from .functions import definitions

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
    """Whether input `index` of the node is a resource that all functions of it only read."""
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


def describe_variables(graph_def: graph_pb2.GraphDef, variables, is_fixed) -> None:
    """Writes into functions of the library which kind of variable an argument is a handle of.

    TensorFlow's gradients of conditions ask for it, and know it of functions that it has traced.

    Args:
        variables: placeholder -> (data type, shape) of the variable.
        is_fixed: whether the function of a name has to stay as it is.
    """
    functions = definitions(graph_def)
    readers = {name: _readers(function.node_def) for name, function in functions.items()}
    readers[""] = _readers(graph_def.node)
    reached = [("", name, variable) for name, variable in variables.items()]
    seen = {(owner, name) for owner, name, _ in reached}
    for owner, tensor, variable in reached:
        for node, index in readers[owner].get(tensor, ()):
            next_places = [
                (name, argument.name)
                for _, _, name in called(node)
                if name in functions and index >= first_argument(node.op)
                for argument in [
                    functions[name].signature.input_arg[index - first_argument(node.op)]
                ]
            ]
            if node.op == "Identity" or node.op in LOOPS:  # the result is the handle, too
                port = f":output:{index}" if owner else f":{index}" if index else ""
                next_places.append((owner, node.name + port))
            reached += [(*place, variable) for place in next_places if place not in seen]
            seen.update(next_places)
    described = {(owner, name): variable for owner, name, variable in reached}
    for name, function in functions.items():
        for argument in function.signature.input_arg if not is_fixed(name) else ():
            variable = described.get((name, argument.name))
            if variable and argument.type == types_pb2.DT_RESOURCE and not argument.handle_data:
                dtype, shape = variable
                argument.handle_data.add(dtype=dtype.as_datatype_enum, shape=shape.as_proto())


def _readers(nodes) -> dict[str, list]:
    """(node, number of the input) of each that reads a tensor."""
    readers: dict[str, list] = {}
    for node in nodes:
        for index, text in enumerate(node.input):
            readers.setdefault(
                text.removesuffix(":0") if text.count(":") == 1 else text, []
            ).append((node, index))
    return readers
