"""Asks the library which algorithm each convolution of a rewritten graph will run."""

from dataclasses import replace

import tensorflow as tf

from ..ops.memory import plan_node, pool_threads
from ..tensorflow_private import ImportedGraph
from .report import Report
from .summary import AT_BATCH_1


def name_algorithms(graph: ImportedGraph, report: Report) -> None:
    """Fills `Converted.chosen` where all sizes but the batch are known; that counts as 1."""
    threads = pool_threads()
    report.converted = [
        replace(item, chosen=_chosen(graph.get_operation_by_name(item.node), threads))
        if item.algorithm and item.node in graph
        else item
        for item in report.converted
    ]


def _chosen(node: tf.Operation, threads: int) -> str:
    shapes = [tensor.shape for tensor in node.inputs]
    if any(shape.rank is None or None in shape.as_list()[1:] for shape in shapes):
        return ""
    # One volume has all of its slices.
    batch = node.get_attr("depth") if node.type == "BlockdnnConvVolume" else 1
    of_any_batch = any(None in shape.as_list() for shape in shapes)
    sizes = [[batch if size is None else size for size in shape.as_list()] for shape in shapes]
    algorithm = plan_node(node, sizes, threads).algorithm
    return algorithm + AT_BATCH_1 if algorithm and of_any_batch else algorithm
