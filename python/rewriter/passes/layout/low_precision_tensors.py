"""Writes low-precision types, bfloat16 or bytes, into the payloads of one body.

The pass says which convolutions work on low-precision tensors, what their weights become, and what
the bytes of a tensor stand for. What lies between convolutions goes along here.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tensorflow.core.framework import types_pb2

from ....graph import Body, GraphView, Node, Ref
from ....graph import written as written_as
from ....ops.records import BLOCKED, NHWC, Concat, Conv, Eltwise, GlobalPool, Pool, Reorder

_BF16 = types_pb2.DT_BFLOAT16


def moves(node: Node) -> bool:
    """Whether it can work on low-precision tensors, though it multiplies nothing."""
    payload = node.payload
    if isinstance(payload, Eltwise):
        return payload.layout == BLOCKED
    return (payload.keeps or isinstance(payload, Concat)) and _has_types(payload)


def _has_types(payload) -> bool:
    return payload.has("src_quantization") or payload.has("src_quantizations")


def sources(node: Node) -> list[Ref]:
    """What a node that moves reads and may have low precision."""
    named = node.by_role
    refs = [ref for role, ref in named.items() if role == "src" or role.startswith("value ")]
    if role := operand(node.payload):
        refs.append(named[role])
    return refs


def operand(payload) -> str | None:
    """The role of the operand that may have low precision, if there is one.

    It is the first that is a tensor of the shape of the result; of a convolution that of a sum,
    which follows the bias at once where the result is plain. Only one entry of the chain reads it.
    """
    if not isinstance(payload, Conv | Eltwise):
        return None
    read = [step for step in payload.steps if isinstance(step.operand, str)]
    first = [s for s in read if s.kind == "sum" or s.shape == "tensor"][:1]
    if isinstance(payload, Conv):
        steps = payload.steps if payload.dst_layout == BLOCKED else payload.steps[:1]
        first = [s for s in first if s.kind == "sum" and s in steps]
    only = first and [s.operand for s in read].count(first[0].operand) == 1
    return first[0].operand if only else None


def low_precision_tensors(
    view: GraphView, lowered: set[str], may: Callable[[Ref], bool] = lambda ref: True
) -> set[Ref]:
    """The tensors that have low precision where those convolutions are.

    A tensor has low precision where such a convolution reads it, and from there back through all
    that only moves, pools or works on each element.

    Args:
        may: whether a tensor may be, if a convolution does not read it.
    """
    tensors: set[Ref] = set()
    for node in reversed(view.topological()):
        if node.name in lowered:
            tensors.add(node.src)
            read = [node.by_role[role]] if (role := operand(node.payload)) else []
        elif node.payload is not None and moves(node) and node.ref in tensors:
            read = sources(node)
            if not isinstance(node.payload, Eltwise):
                tensors.update(filter(may, read))
                continue
        else:
            continue
        for ref in filter(may, read):
            producer = view.producer(ref)
            if producer.name in lowered or (producer.payload is not None and moves(producer)):
                tensors.add(ref)
    return tensors


def joined_values(view: GraphView, tensors: set[Ref]) -> dict[Ref, Ref]:
    """Value -> the low-precision tensor whose bytes it is written in, since nothing else reads it.

    A concatenation's values are written there and not copied. What a maximum alone reads needs no
    separate range: what lies below all maxima, as masks and pads do, becomes the lowest byte. So
    does what moves values there, if it alone reads them.
    """
    joined: dict[Ref, Ref] = {}
    for node in reversed(view.topological()):
        if isinstance(node.payload, Concat):
            tensor = joined.get(node.ref, node.ref)
        elif node.payload is not None and node.payload.keeps and not _averages(node):
            is_maximum = isinstance(node.payload, Pool)
            tensor = joined.get(node.ref, node.ref if is_maximum else None)
        else:
            continue
        if tensor in tensors:
            for ref in sources(node):
                if len(view.consumers(ref)) == 1 and not view.is_fetched(ref):
                    joined[ref] = tensor
    return joined


def _averages(node: Node) -> bool:
    """Whether it is a pool that makes new numbers."""
    return isinstance(node.payload, Pool) and node.payload.kind == "avg"


def write_types(
    body: Body,
    dtype: int,
    lowered: Mapping[str, Callable[[Node], dict]],
    tensors: set[Ref],
    chosen: Callable[[Ref], tuple],
    joined: Mapping[Ref, Ref] | None = None,
) -> None:
    """Writes the types into the payloads; what lies between them `place_reorders` inserts.

    Args:
        dtype: what has low precision.
        lowered: name of a convolution -> a function of it, which gives the fields that say how its
            weights are stored.
        tensors: the tensors.
        chosen: what the bytes of a tensor stand for; () of bfloat16.
        joined: values that are to stand for what `chosen` says of them, as joined_values has them.
    """
    # Low-precision tensors so far -> their quantization. A plain tensor that is read in blocks may
    # be read so, too: the reorder changes both.
    plain = [ref for ref in tensors if written_as(body, ref).layout == NHWC]
    written: dict[Ref, tuple] = {ref: chosen(ref) for ref in plain}

    def of_source(node: Node) -> dict:
        """The fields of a source that has low precision as it is written."""
        src = node.src
        return {"src_dtype": dtype, "src_quantization": written[src]} if src in written else {}

    def of_operand(node: Node) -> dict:
        role = operand(node.payload)
        if role is None or (ref := node.by_role[role]) not in written:
            return {}
        return {"sum_role": role, "sum_dtype": dtype, "sum_quantization": written[ref]}

    def of_result(node: Node, quantization: tuple | None = None) -> dict:
        """The fields of what has low precision from now on, if it is to be."""
        if node.ref not in tensors:
            return {}
        written[node.ref] = chosen(node.ref) if quantization is None else quantization
        return {"dtype": dtype, "dst_quantization": written[node.ref]}

    def of_move(node: Node) -> dict:
        """Of what reads nothing but low-precision tensors, and hands on what they stand for."""
        payload = node.payload
        scales = tuple(written[ref] if ref in written else chosen(ref) for ref in sources(node))
        changes = {"src_dtype": dtype, "src_quantization": scales[0]}
        if isinstance(payload, Concat) and scales[0]:
            changes["src_quantizations"] = scales
        if payload.keeps and not (_averages(node) and node.ref in (joined or ())):
            return changes | of_result(node, scales[0])
        return changes | of_result(node)

    for node in body.view.topological():
        payload = node.payload
        if payload is None or payload.is_low_precision:
            continue
        if node.name in lowered:
            src = {"src_dtype": dtype, "src_quantization": chosen(node.src)} | of_source(node)
            changes = {"scale": None} | src | lowered[node.name](node) | of_operand(node)
            changes |= of_result(node)
        elif isinstance(payload, Reorder):  # what a model rounds by
            changes = of_source(node) | of_result(node)
        elif isinstance(payload, GlobalPool):
            changes = of_source(node) if _has_types(payload) else {}
        elif not moves(node):
            continue
        elif isinstance(payload, Eltwise):
            changes = of_source(node) | of_operand(node) | of_result(node)
        elif node.ref in tensors or (isinstance(payload, Pool) and node.src in written):
            changes = of_move(node)
        else:
            continue
        node.payload = replace(payload, **changes)
