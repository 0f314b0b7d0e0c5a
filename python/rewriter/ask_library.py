"""Asks the library what each op of a rewritten graph will run, and the memory that takes."""

import contextlib
from collections.abc import Callable
from dataclasses import replace

import tensorflow as tf

from ..ops.memory import MemoryPlan, plan_node, pool_threads
from ..tensorflow_private import ImportedGraph
from .report import Converted, Report
from .summary import AT_BATCH_1


def ask_library(graph: ImportedGraph, report: Report) -> None:
    """Completes what is converted, where all sizes but the batch are known; that counts as 1."""
    plan = _once(pool_threads())
    report.converted = [
        _asked(item, graph.get_operation_by_name(item.node), plan) if item.node in graph else item
        for item in report.converted
    ]


def _asked(item: Converted, node: tf.Operation, plan_of: Callable) -> Converted:
    shapes = [tensor.shape for tensor in node.inputs]
    if any(shape.rank is None or None in shape.as_list()[1:] for shape in shapes):
        return item
    # A batch of one volume is as many slices.
    batch = node.get_attr("depth") if node.type == "BlockdnnConvVolume" else 1
    of_any_batch = any(None in shape.as_list() for shape in shapes)
    sizes = [[batch if size is None else size for size in shape.as_list()] for shape in shapes]
    plan = plan_of(node, sizes)
    if plan is None:
        return item
    name = plan.algorithm if item.algorithm else ""
    if name and of_any_batch:
        name += AT_BATCH_1
    return replace(item, chosen=name, packed=plan.packed_weights, scratchpad=plan.scratchpad)


def _once(threads: int) -> Callable:
    """(node, sizes) -> the plan; None where the batch that is open is none that the op takes, as
    its sizes belong to others. Nodes that differ in names and places of their weights share it.
    """
    plans: dict[tuple, MemoryPlan | None] = {}

    def plan(node: tf.Operation, sizes: list) -> MemoryPlan | None:
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
