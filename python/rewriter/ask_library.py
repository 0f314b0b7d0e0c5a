"""Asks the library what each op of a rewritten graph will run, and the memory that takes."""

import contextlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate

import tensorflow as tf

from ..graph import GraphView, Ref
from ..ops.memory import MemoryPlan, plan_node, pool_threads
from ..tensorflow_private import ImportedGraph
from .regions import is_ours
from .report import Converted, Report
from .summary import AT_BATCH_1


def ask_library(view: GraphView, graph: ImportedGraph, report: Report) -> None:
    """Says what is run, where all sizes but the batch are known; that counts as 1."""
    plan_of = _once(pool_threads())
    nodes = [node.name for node in view.topological() if is_ours(node)]
    operations = {name: graph.get_operation_by_name(name) for name in nodes}
    report.converted = [
        _asked(item, operations[item.node], plan_of) if item.node in operations else item
        for item in report.converted
    ]
    plans = [plan_of(operation) for operation in operations.values()]
    scratchpads = [plan.scratchpad if plan else 0 for plan in plans]
    report.memory |= {
        "weights": report.weights,
        "packed": sum(plan.packed_weights for plan in plans if plan),
        "scratchpad": max(scratchpads, default=0),
        "arena": _arena(view, operations, scratchpads),
    }


def _asked(item: Converted, node: tf.Operation, plan_of: Callable) -> Converted:
    plan = plan_of(node)
    if plan is None:
        return item
    name = plan.algorithm if item.algorithm else ""
    if name and any(None in tensor.shape.as_list() for tensor in node.inputs):
        name += AT_BATCH_1
    return replace(item, chosen=name, packed=plan.packed_weights, scratchpad=plan.scratchpad)


def _sizes(tensor: tf.Tensor, node: tf.Operation) -> list[int] | None:
    """The shape of an input or output of the node, at batch 1 where that is open."""
    if tensor.shape.rank is None or None in tensor.shape.as_list()[1:]:
        return None
    # A batch of one volume is as many slices; no plan is asked for where these are open.
    batch = node.get_attr("depth") if node.type == "BlockdnnConvVolume" else 1
    return [batch if size is None else size for size in tensor.shape.as_list()]


def _arena(view: GraphView, operations: dict[str, tf.Operation], scratchpads: list[int]) -> int:
    """The most that lies between ops of ours at once while they run one after the other.

    What others make or read, and what the function returns, lies elsewhere.
    """
    step_of = {name: step for step, name in enumerate(operations)}
    changes: Counter = Counter()

    def hold(size: int, first: int, last: int) -> None:
        changes[first] += size
        changes[last + 1] -= size

    for step, (name, operation) in enumerate(operations.items()):
        hold(scratchpads[step], step, step)
        # A sum is added to where it lies.
        first = step + (b"sum(" in operation.node_def.attr["post_ops"].s)
        for port, tensor in enumerate(operation.outputs):
            readers = [step_of.get(node.name) for node, _ in view.consumers(Ref(name, port))]
            if readers and None not in readers and not view.is_fetched(Ref(name, port)):
                sizes = _sizes(tensor, operation) or [0]
                hold(tensor.dtype.size * math.prod(sizes), first, max(readers))
    return max(accumulate(changes[step] for step in range(len(operations))), default=0)


def _once(threads: int) -> Callable:
    """node -> the plan; None where sizes other than the batch are open, or where 1 is none that the
    op takes, as its sizes belong to others. Nodes that differ in names and places of weights
    share it.
    """
    plans: dict[tuple, MemoryPlan | None] = {}

    def plan(node: tf.Operation) -> MemoryPlan | None:
        sizes = [_sizes(tensor, node) for tensor in node.inputs]
        if None in sizes:
            return None
        definition = node.node_def
        for key in ("name", "input"):
            definition.ClearField(key)
        for key in [key for key in definition.attr if key.endswith("_offset")]:
            del definition.attr[key]
        key = definition.SerializeToString(deterministic=True), str(sizes)
        if key not in plans:
            plans[key] = None
            with contextlib.suppress(ValueError):
                plans[key] = plan_node(node, sizes, threads)
        return plans[key]

    return plan
