"""Makes a Call: by itself, as a node of a graph, and as the body of a region."""

import functools
import mmap

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.eager import context, execute

from tf_blockdnn.python.native import library


@functools.cache
def definitions():
    """Of all ops of the library: name -> OpDef, as they are registered."""
    library()
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return {op.name: op for op in ops.op if op.name.startswith("Blockdnn")}


def attrs_of(call):
    """All attributes of the node: those of the call, types as the inputs have them, defaults."""
    definition = definitions()[call.op]
    attrs = {
        attr.name: attr.default_value for attr in definition.attr if attr.HasField("default_value")
    }
    for argument, group in zip(definition.input_arg, call.inputs, strict=True):
        if argument.type_attr and group:
            attrs[argument.type_attr] = tf.as_dtype(group[0].dtype).as_datatype_enum
    attrs |= call.attrs
    kinds = {attr.name: attr.type for attr in definition.attr}
    return {name: attr_value(kinds[name], value) for name, value in attrs.items()}


def attr_value(kind, value):
    """`value` as an AttrValue of that kind."""
    if isinstance(value, attr_value_pb2.AttrValue):
        return value
    if kind.startswith("list("):
        one = kind[len("list(") : -1]
        return attr_value_pb2.AttrValue(
            list=attr_value_pb2.AttrValue.ListValue(
                **{_FIELDS[one]: [_as_proto(one, v) for v in value]}
            )
        )
    return attr_value_pb2.AttrValue(**{_FIELDS[kind]: _as_proto(kind, value)})


_FIELDS = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "func": "func"}


def _as_proto(kind, value):
    if kind == "string":
        return value.encode()
    if kind == "type" and not isinstance(value, int):
        return tf.as_dtype(value).as_datatype_enum
    return value


def plain(value):
    """The Python value of an AttrValue."""
    field = value.WhichOneof("value")
    if field == "list":
        filled = [list(values) for _, values in value.list.ListFields()]
        return [_text(one) for one in filled[0]] if filled else []
    return _text(getattr(value, field)) if field else None


def _text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def guarded(array):
    """The array in memory that ends at a page that nobody may read, if TensorFlow can use that.

    TensorFlow takes memory as it is where it begins at 64 bytes, so that what an op reads
    up to 60 bytes behind the array is not seen.
    """
    size = -(-array.nbytes // 64) * 64
    if not size:
        return array
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + mmap.PAGESIZE)
    raw = np.frombuffer(memory, np.uint8)
    _protect(raw.ctypes.data + pages)
    begin = pages - size
    result = raw[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def _protect(address):
    import ctypes

    none = 0
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, none)


def _num_outputs(call):
    return len(definitions()[call.op].output_arg)


def eagerly(call):
    """The results, arrays."""
    attrs = [one for name, value in attrs_of(call).items() for one in (name, plain(value))]
    inputs = [tf.constant(guarded(array.draw())) for array in call.arrays()]
    outputs = execute.execute(call.op, _num_outputs(call), inputs, tuple(attrs), context.context())
    return [output.numpy() for output in outputs]


def _graph(call, known):
    """A GraphDef with a placeholder for each input and the node; known(i, j): is that size?"""
    graph = graph_pb2.GraphDef()
    node = graph.node.add(name="node", op=call.op)
    for i, array in enumerate(call.arrays()):
        source = graph.node.add(name=f"input{i}", op="Placeholder")
        source.attr["dtype"].type = tf.as_dtype(array.dtype).as_datatype_enum
        shape = source.attr["shape"].shape
        shape.unknown_rank = known(i, -1) is False
        for j, size in enumerate(() if shape.unknown_rank else array.shape):
            shape.dim.add(size=size if known(i, j) else -1)
        node.input.append(source.name)
    for name, value in attrs_of(call).items():
        node.attr[name].CopyFrom(value)
    graph.versions.producer = tf.compat.v1.GraphDef().versions.producer or 2000
    return graph


def _run(graph_def, call, name, times=1):
    """The results of the node `name` at the last of several runs."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        feeds = {f"input{i}:0": guarded(a.draw()) for i, a in enumerate(call.arrays())}
        fetches = [graph.get_tensor_by_name(f"{name}:{i}") for i in range(_num_outputs(call))]
        with tf.compat.v1.Session(graph=graph) as session:
            for _ in range(times):
                results = session.run(fetches, feeds)
    return results


def in_graph(call, known=lambda i, j: True):
    """The same as a node of a graph that knows some sizes of the inputs."""
    return _run(_graph(call, known), call, "node")


def in_region(call, known=lambda i, j: True):
    """The same as the body of a BlockdnnRegion, which runs three times."""
    graph, definition = _graph(call, known), definitions()[call.op]
    node = graph.node[0]
    function = graph.library.function.add()
    function.signature.name = "body"
    inside = function.node_def.add()
    inside.CopyFrom(node)
    node.Clear()
    node.name, node.op = "node", "BlockdnnRegion"
    node.attr["f"].func.name = "body"
    for field in ("Tin", "Tout"):
        node.attr[field].list.SetInParent()
    for i, array in enumerate(call.arrays()):
        kind = tf.as_dtype(array.dtype).as_datatype_enum
        function.signature.input_arg.add(name=f"arg{i}", type=kind)
        inside.input[i] = f"arg{i}"
        node.attr["Tin"].list.type.append(kind)
        node.input.append(f"input{i}")
    for i, output in enumerate(definition.output_arg):
        kind = output.type or inside.attr[output.type_attr].type
        function.signature.output_arg.add(name=f"result{i}", type=kind)
        function.ret[f"result{i}"] = f"node:{output.name}:0"
        node.attr["Tout"].list.type.append(kind)
    return _run(graph, call, "node", times=3)
