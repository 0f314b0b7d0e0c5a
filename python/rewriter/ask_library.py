"""Asks the library what each op of a rewritten graph will run, and the memory that takes."""

from dataclasses import replace

import tensorflow as tf

from ..ops.memory import MemoryPlan, plan_node, pool_threads
from ..tensorflow_private import ImportedGraph
from .report import Converted, Report
from .summary import AT_BATCH_1


def ask_library(graph: ImportedGraph, report: Report) -> None:
    """Completes what is converted, where all sizes but the batch are known; that counts as 1."""
    threads = pool_threads()
    report.converted = [
        _asked(item, graph.get_operation_by_name(item.node), threads)
        if item.node in graph
        else item
        for item in report.converted
    ]


def _asked(item: Converted, node: tf.Operation, threads: int) -> Converted:
    shapes = [tensor.shape for tensor in node.inputs]
    if any(shape.rank is None or None in shape.as_list()[1:] for shape in shapes):
        return item
    # One volume has all of its slices.
    batch = node.get_attr("depth") if node.type == "BlockdnnConvVolume" else 1
    of_any_batch = any(None in shape.as_list() for shape in shapes)
    sizes = [[batch if size is None else size for size in shape.as_list()] for shape in shapes]
    plan = _plan(node, sizes, threads)
    if plan is None:
        return item
    name = plan.algorithm if item.algorithm else ""
    if name and of_any_batch:
        name += AT_BATCH_1
    return replace(item, chosen=name, packed=plan.packed_weights, scratchpad=plan.scratchpad)


def _plan(node: tf.Operation, sizes: list, threads: int) -> MemoryPlan | None:
    """None where the batch that is open is none that the op takes: its sizes belong to others."""
    try:
        return plan_node(node, sizes, threads)
    except ValueError:
        return None
