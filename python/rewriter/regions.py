"""Makes one op of each converted region; the last thing that happens to a graph.

A region is a set of ops of ours, and of cheap ones between them, that the rest of the graph can
see as one: no path leaves it and comes back. Its ops become the body of an ordinary function, and
a `BlockdnnRegion` node that calls the function takes their place (cc/tensorflow/regions/region.h).
Variables are read outside, so that a region is a pure function of tensors.
"""

import itertools
from collections.abc import Callable

from tensorflow.core.framework import function_pb2

from ..graph import (
    GraphView,
    Module,
    Node,
    Ref,
    dtype,
    flatten,
    make_node,
    nodes_within,
    outputs,
    write_function,
)
from ..graph.families import BINARY, COMPARISONS, FRAMES, UNARY
from ..ops.records import Join
from ..tensorflow_private import (
    ImportedGraph,
    context,
    dtypes,
    op_def_registry,
    tensor_shape,
    tensor_util,
)
from .capture import fill

_OURS, REGION = "Blockdnn", "BlockdnnRegion"
_BODY = "blockdnn_region_"  # what the names of their functions begin with
# What may stand between converted ops: cheap enough that neither another thread nor TensorFlow's
# executor would make up for leaving the region. Whatever else is left in a graph (a convolution
# that was declined, control flow, side effects) stays outside.
LIGHT_OPS = frozenset(
    "ArgMax BiasAdd Cast ConcatV2 ExpandDims Fill GatherV2 Identity IdentityN LogSoftmax Max Mean "
    "Min Pack Pad PadV2 Prod Rank Reshape Roll SelectV2 Shape Size Slice Softmax Split Squeeze "
    "StopGradient StridedSlice Sum TopKV2 Transpose Unpack".split()
).union(UNARY, BINARY, COMPARISONS)
# They write into what they read if nobody else holds it; a region's inputs are held by the caller.
_OVERWRITE = frozenset({"BlockdnnUpdateSlice"})
# What TensorFlow makes one op with the bias, or the bias and activation, after it.
_PRODUCTS = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative", "MatMul"})
_FUSED_OUTSIDE = frozenset({"BiasAdd", "Elu", "LeakyRelu", "Relu", "Relu6", "Sigmoid", "Tanh"})
_OUTSIDE_TYPES = frozenset({dtypes.resource, dtypes.variant, dtypes.string})

_numbers = itertools.count()


def flat_graph(module: Module, captures) -> tuple[GraphView, ImportedGraph]:
    """The main graph, and the same in TensorFlow, with static shapes.

    The nodes of a region that was there before lie beside it, for those who ask what it runs.

    Args:
        captures: placeholder name -> tensor outside.
    """
    inputs = zip(module.main.inputs, module.function.inputs, strict=False)
    specs = {name: (tensor.dtype, tensor.shape) for name, tensor in inputs}
    view = module.main.view.copy()
    for region in [node for node in view if node.op == REGION]:
        body = flatten(module.functions[region.attr["f"].func.name])
        outside = dict(zip(body.inputs, region.inputs, strict=True))
        for proto in (node for node in body.graph_def.node if node.name not in outside):
            node = Node.from_proto(proto)
            node.name = f"{region.name}/{node.name}"
            node.set_inputs(
                outside.get(ref.node) or Ref(f"{region.name}/{ref.node}", ref.port)
                for ref in node.inputs
            )
            view.add(node)
    return view, fill(ImportedGraph("flat"), view.to_graph_def(), module.functions, captures, specs)


def _unknown(ref: Ref) -> tensor_shape.TensorShape:
    return tensor_shape.TensorShape(None)


def form_regions(
    view: GraphView,
    shape_of: Callable[[Ref], tensor_shape.TensorShape] = _unknown,
    keeps_memory: bool = True,
) -> list[function_pb2.FunctionDef]:
    """Replaces the converted regions of `view` by one op each.

    Args:
        view: a graph of TensorFlow's and our ops; nothing in it is planned only.
        shape_of: static shape of a tensor.
        keeps_memory: whether runs may keep the memory of tensors inside a region.

    Returns:
        The bodies, which must be in the library of whoever runs the graph.
    """
    if any(node.op in FRAMES for node in view):
        return []
    return [_form(view, nodes, shape_of, keeps_memory) for nodes in _regions(view)]


def count_regions(module: Module) -> int:
    """How many regions the finished function has, those in loops and conditions included."""
    return sum(op.startswith(_OURS) for _, op in _all_ops(module, inside=False))


def ops_of_ours(module: Module) -> list[tuple[str, str]]:
    """(node, op) of each op of ours, in regions, loops and conditions, too."""
    ops = _all_ops(module, inside=True)
    return [(name, op) for name, op in ops if op.startswith(_OURS) and op != REGION]


def _all_ops(module: Module, *, inside: bool) -> list[tuple[str, str]]:
    """(node, op) of the graph and of the functions that it calls, `inside` those of regions."""
    nodes = nodes_within(module.main.view, module.functions, () if inside else (REGION,))
    return [(node.name, node.op) for node in nodes]


def _regions(view: GraphView) -> list[list[Node]]:
    """The nodes of each region, producers first."""
    order = view.topological()
    inside = {node.name for node in order if _may_join(view, node)}
    # Every edge into or out of a region raises the level, so two ops of one level have no path
    # between them that leaves the region.
    level: dict[str, int] = {}
    parent = {name: name for name in inside}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    for node in order:
        here = node.name in inside
        sources = [ref.node for ref in node.inputs] + node.controls
        sources = [name for name in sources if view.node(name).op != "Const"]
        steps = (level[name] + ((name in inside) != here) for name in sources)
        level[node.name] = max(steps, default=int(here))
        for name in sources:
            if here and name in inside and level[name] == level[node.name]:
                parent[root(name)] = root(node.name)
    grouped: dict[str, list[Node]] = {}
    for node in order:
        if node.name in inside:
            grouped.setdefault(root(node.name), []).append(node)
    return [nodes for nodes in grouped.values() if len(nodes) > 1 and any(map(is_ours, nodes))]


def is_ours(node: Node) -> bool:
    """Whether it is an op of ours that stands in no region's place."""
    return node.op.startswith(_OURS) and node.op != REGION


def is_converted(module: Module) -> bool:
    """Whether anything in the bodies is of ours, planned or there before."""
    return any(node.op.startswith(_OURS) for body in module.bodies for node in body.view)


def _may_join(view: GraphView, node: Node) -> bool:
    if not (is_ours(node) or node.op in LIGHT_OPS) or view.has_control_edges(node.name):
        return False
    if node.op in _OVERWRITE:
        return False
    if _is_fused_outside(view, node):
        return False
    types = {dtypes.as_dtype(kind) for _, kind in outputs(node)}
    return not types & _OUTSIDE_TYPES


def _is_fused_outside(view: GraphView, node: Node) -> bool:
    """Whether TensorFlow's optimiser joins it to a product that is left, which it must see."""
    if node.op not in _FUSED_OUTSIDE or not node.inputs:
        return False
    src = node.inputs[0]
    producer = view.producer(src)
    if view.use_count(src) > 1 or view.has_control_edges(producer.name):
        return False
    if node.op == "BiasAdd":
        return producer.op in _PRODUCTS
    return producer.op == "BiasAdd" and _is_fused_outside(view, producer)


def _form(view: GraphView, nodes: list[Node], shape_of, keeps_memory) -> function_pb2.FunctionDef:
    nodes = [_join(view, node) if node.op == "ConcatV2" else node for node in nodes]
    names = {node.name for node in nodes}
    read = dict.fromkeys(ref for node in nodes for ref in node.inputs if ref.node not in names)
    constants = dict.fromkeys(ref.node for ref in read if view.node(ref.node).op == "Const")
    arguments = [ref for ref in read if ref.node not in constants]
    written = (Ref(node.name, port) for node in nodes for port in range(len(outputs(node))))
    results = [
        ref
        for ref in written
        if view.is_fetched(ref) or any(n.name not in names for n, _ in view.consumers(ref))
    ]
    function = _function([*map(view.node, constants), *nodes], view, arguments, results)

    signature = function.signature
    # Results of functions are called as their nodes are, in small letters. A node that is called
    # so itself is renamed, and is saved with the shapes of what has the new name in the graph.
    region_node = make_node(
        REGION,
        REGION,
        arguments,
        f=signature.name,
        keeps_memory=keeps_memory,
        Tin=[arg.type for arg in signature.input_arg],
        Tout=[arg.type for arg in signature.output_arg],
        output_shapes=[shape_of(ref) for ref in results],
    )
    region = view.add(region_node)
    for port, ref in enumerate(results):
        view.replace_uses(ref, Ref(region.name, port))
    for node in reversed(nodes):
        view.remove(node.name)
    view.remove_dead(constants)
    return function


def _join(view: GraphView, node: Node) -> Node:
    """A concatenation by threads of ours, if the axis is known; of integers, it may be of shapes.

    TensorFlow's takes threads of a pool, which look for more work long after it is done.
    """
    *values, axis = node.inputs
    producer, kind = view.producer(axis), dtypes.as_dtype(node.attr["T"].type)
    if producer.op != "Const" or not kind.is_floating or kind not in Join.dtypes("values"):
        return node
    number = int(tensor_util.MakeNdarray(producer.attr["value"].tensor))
    join = make_node(node.name, Join.op, [values], axis=number, T=node.attr["T"])
    view.replace(join)
    view.remove_dead([axis.node])
    return join


def fresh_name(base: str) -> str:
    """The name of a function that there is none of, `base` and a number."""
    while context.context().has_function(name := f"{base}{next(_numbers)}"):
        pass
    return name


def _function(nodes, view: GraphView, arguments, results) -> function_pb2.FunctionDef:
    """The nodes as a function of `arguments` that returns `results`."""
    function = function_pb2.FunctionDef()
    signature = function.signature
    signature.name = fresh_name(_BODY)
    for i, ref in enumerate(arguments):
        signature.input_arg.add(name=f"arg_{i}", type=dtype(view, ref))
    for i, ref in enumerate(results):
        signature.output_arg.add(name=f"result_{i}", type=dtype(view, ref))
    edges = {ref: f"arg_{i}" for i, ref in enumerate(arguments)}
    write_function(function, nodes, edges, results)
    for proto in function.node_def:
        proto.input[:] = [text for text in proto.input if text[0] != "^"]  # of constants
        for attr in op_def_registry.get(proto.op).attr:
            if attr.HasField("default_value") and attr.name not in proto.attr:
                proto.attr[attr.name].CopyFrom(attr.default_value)
    return function
