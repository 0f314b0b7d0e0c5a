"""Measures a rewritten function: as a whole, each region alone, and without some parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from ..graph import GraphView, Module, Node, Ref, flatten, make_node, restore_library
from ..layout import BLOCK
from ..measuring.timing import interleave, timed
from ..tensorflow_private import call_flat, ops
from .capture import capture, import_flat
from .rebuild import traced
from .regions import REGION, is_ours
from .report import Measured, PartTime, RegionTime

MOST_PARTS = 8
_ROUNDS, _WARMUP = 12, 3
# Both compute the same tensor if they differ by less than this part of the largest value.
_SAME = 1e-2
_REORDERS = ("BlockdnnReorder",)


def measured(run, inputs: Sequence[tf.Tensor], reason: str) -> Measured:
    """The times of the function before and after, of regions, and without each part.

    Args:
        run, inputs: as of `autotune.fastest`.
        reason: for the convolutions that are left then.
    """
    before, after = milliseconds((run.concrete, run.function), inputs)
    regions = region_times(run.concrete, run.function, inputs)
    without = []
    for part in run.parts[:MOST_PARTS]:
        other = run.again(leave=dict.fromkeys(part, reason)).run()
        without.append(PartTime(part, *milliseconds((run.function, other.function), inputs)))
    return Measured(before, after, regions, without)


def region_times(original, rewritten, inputs: Sequence[tf.Tensor]) -> list[RegionTime]:
    """How long each region takes alone, and how long TensorFlow takes for the same tensors.

    Args:
        original, rewritten: ConcreteFunctions.
        inputs: one tensor an argument.

    Returns: the regions in the order in which they run. `original_ms` is None where the tensors
    at the edges of a region do not occur in the original.
    """
    before, after = capture(original), capture(rewritten)
    regions = [node for node in after.main.view.topological() if is_ours(node) or node.op == REGION]
    edges = {node.name: _edges(after.main.view, node) for node in regions}
    refs = dict.fromkeys(ref for pair in edges.values() for refs in pair for ref in refs)
    values = _values(after, refs, inputs)
    sources = {ref: _in_original(ref, after, before) for ref in refs}
    sources = {ref: there for ref, there in sources.items() if there is not None}
    there = _values(before, dict.fromkeys(sources.values()), inputs)
    sources = {
        ref: source for ref, source in sources.items() if _is_same(values[ref], there[source])
    }
    moving = set(after.main.inputs)  # the nodes that these reach
    for node in after.main.view.topological():
        if any(ref.node in moving for ref in node.inputs):
            moving.add(node.name)
    times = []
    for node in regions:
        reads, writes = edges[node.name]
        calls = [_call(after, {ref: values[ref] for ref in reads}, writes)]
        feeds = [ref for ref in reads if ref.node in moving]
        if all(ref in sources for ref in (*feeds, *writes)):
            feed = {sources[ref]: there[sources[ref]] for ref in feeds}
            calls.append(_call(before, feed, [sources[ref] for ref in writes]))
        ours, *theirs = _fastest(calls)
        times.append(RegionTime(node.name, theirs[0] if theirs else None, ours))
    return times


def milliseconds(functions, inputs: Sequence[tf.Tensor]) -> list[float]:
    """The fastest call of each function, turn by turn."""
    return _fastest([functools.partial(call_flat, function, inputs) for function in functions])


def _fastest(calls: Sequence[Callable]) -> list[float]:
    contestants = {str(i): timed(call) for i, call in enumerate(calls)}
    times = interleave(contestants, runs=_ROUNDS, warmup=_WARMUP)
    return [timing.minimum for timing in times.values()]


def _edges(view: GraphView, node: Node) -> tuple[list[Ref], list[Ref]]:
    """What the region reads, each tensor once, and those results that are read."""
    ports = len(node.attr["Tout"].list.type) if node.op == REGION else 1
    results = [Ref(node.name, port) for port in range(ports)]
    return list(dict.fromkeys(node.inputs)), [ref for ref in results if view.use_count(ref)]


def _in_original(ref: Ref, after: Module, before: Module) -> Ref | None:
    """The tensor of the original that should hold the same numbers, if there is one."""
    node = after.main.view.producer(ref)
    if node.op == REGION:
        body = flatten(after.functions[node.attr["f"].func.name])
        ref = GraphView(body.graph_def, body.fetches).origin(body.fetches[ref.port], _REORDERS)
        if ref.node in body.inputs:
            return _in_original(node.inputs[body.inputs.index(ref.node)], after, before)
    ref = after.main.view.origin(ref, _REORDERS) if ref.node in after.main.view else ref
    return ref if ref.node in before.main.view else None


def _values(module: Module, refs, inputs: Sequence[tf.Tensor]) -> dict[Ref, tf.Tensor]:
    """The tensors that the function computes of the inputs; variables are as if captured."""
    values = {}
    for name, value in zip(module.main.inputs, inputs, strict=True):
        if isinstance(value, tf.Variable):
            module.captures[name] = value.handle
        else:
            values[Ref(name)] = value
    return dict(zip(refs, _call(module, values, list(refs))(), strict=True))


def _is_same(ours: tf.Tensor, theirs: tf.Tensor) -> bool:
    """Whether both hold the same numbers, ours plain or blocked."""
    ours, theirs = _plain(ours.numpy(), theirs.shape), theirs.numpy()
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if ours.dtype.kind != "f":
        return np.array_equal(ours, theirs)
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    return bool(np.abs(ours - theirs).max(initial=0) <= _SAME * np.abs(theirs).max(initial=0))


def _plain(values: np.ndarray, shape: tf.TensorShape) -> np.ndarray:
    """The values channels last without the tail, if they are blocked and `shape` is plain."""
    if values.ndim != (shape.rank or 0) + 1 or values.shape[-1] != BLOCK:
        return values
    values = np.moveaxis(values, 1, -2)
    return values.reshape(*values.shape[:-2], -1)[..., : shape[-1]]


def _call(module: Module, values: Mapping[Ref, tf.Tensor], wanted: list[Ref]) -> Callable:
    """A call of no arguments that computes the tensors `wanted` of those in `values`."""
    return functools.partial(call_flat, computing(module, values, wanted), list(values.values()))


def computing(module: Module, values: Mapping[Ref, tf.Tensor], wanted: list[Ref]):
    """A ConcreteFunction that computes the tensors `wanted` of others like those in `values`."""
    view = module.main.view.copy()
    view.fetches, view.targets = list(wanted), []
    names = []
    for ref, tensor in values.items():
        names.append(view.add(make_node("input", "Placeholder", dtype=tensor.dtype)).name)
        view.replace_uses(ref, Ref(names[-1]))
    view.prune(keep_ops=())
    graph_def = view.to_graph_def()
    restore_library(graph_def, module.functions)
    captures = {name: tensor for name, tensor in module.captures.items() if name in view}
    fetches = [f"{ref.node}:{ref.port}" for ref in view.fetches]

    def body(*tensors):
        inner_values = dict(zip(names, tensors, strict=True))
        return import_flat(ops.get_default_graph(), graph_def, inner_values, captures, fetches)[0]

    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in values.values()]
    return traced(body, graph_def.library.function, *specs)
