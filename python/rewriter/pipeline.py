"""The rewriter: a function in, the same function on blocked convolutions out.

    capture -> constant shapes -> lift convolutions -> limit memory -> fold batch norm
            -> fuse post-ops -> prepare sources -> assign layout -> lift softmax
            -> fold source scales -> place reorders -> gain -> pair depthwise -> pair pool
            -> join in place -> emit -> verify

Every pass may skip; the graph stays right. Weights are a snapshot: a later assignment
to the original's variables does not reach the rewritten function.
"""

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from ..native import library
from .options import Options
from .passes import emit, verify
from .passes.assign_layout import assign_layout
from .passes.blocked_shapes import read_shapes_of_blocked
from .passes.capture import Capture, capture
from .passes.constant_shapes import constant_shapes
from .passes.fold_batch_norm import fold_batch_norm
from .passes.fold_source_scales import fold_source_scales
from .passes.followers import Followers
from .passes.fuse_post_ops import fuse_post_ops
from .passes.gain import losing_convolutions
from .passes.join_in_place import join_in_place
from .passes.lift import lift_convolutions, lift_inner_products, lift_softmax
from .passes.limit_memory import limit_memory
from .passes.name_algorithms import name_algorithms
from .passes.pair_depthwise import pair_depthwise
from .passes.pair_pool import pair_pool
from .passes.place_reorders import place_reorders
from .passes.prepare_sources import prepare_sources
from .passes.rebuild import rebuild
from .passes.unfused import report_unfused
from .plan import Reorder
from .report import Converted, Report
from .trackables import owners

VERIFY = ("structure", "numbers")
_BUNDLE = "blockdnn_weights"


class Rewritten(NamedTuple):
    """What `optimize_concrete` returns.

    Attributes:
        concrete: the rewritten ConcreteFunction, same signature.
        trackables: what it captures: keep alive, and attach to a module to save it.
        report: what was done.
        keeps_memory: whether calls may keep the memory of intermediate tensors.
    """

    concrete: tf.types.experimental.ConcreteFunction
    trackables: list
    report: Report
    keeps_memory: bool = True


class Bundles:
    """The bundles made so far, so that functions with the same weights share one variable."""

    def __init__(self):
        self._variables: dict[bytes, tf.Variable] = {}

    def variable(self, values) -> tf.Variable:
        key = hashlib.blake2b(values).digest()
        if key not in self._variables:
            self._variables[key] = tf.Variable(values, trainable=False, name=_BUNDLE)
        return self._variables[key]


def optimize_concrete(
    concrete,
    *,
    roots: Sequence = (),
    bundles: Bundles | None = None,
    options: Options | None = None,
    verify_by: str = "structure",
    tolerance: float = 1e-4,
) -> Rewritten:
    """Rewrites one ConcreteFunction; where that fails it is kept, and the report says why.

    Args:
        concrete: the function; it is not changed.
        roots: objects under which to look for the owners of captured tables.
        bundles: pass the same one for all functions of a model.
        options: choices for every converted op; the defaults where None.
        verify_by: "structure" checks the graph; "numbers" also runs both functions on
            a random input and compares.
        tolerance: for "numbers": largest difference, relative to the output's magnitude.

    Raises:
        ValueError: an unknown option.
        VerificationError: the numbers are not those of the original function.

    Example:
        >>> @tf.function(input_signature=[tf.TensorSpec((1, 8, 8, 3), tf.float32)])
        ... def network(image):
        ...     return tf.nn.relu(tf.nn.conv2d(image, tf.ones((3, 3, 3, 4)), 1, "SAME"))
        >>> rewritten = bd.rewriter.optimize_concrete(network.get_concrete_function())
        >>> [op.type for op in rewritten.concrete.graph.get_operations() if "Conv" in op.type]
        ['BlockdnnConv']
    """
    if verify_by not in VERIFY:
        raise ValueError(f"verify must be one of {VERIFY}, not {verify_by!r}")
    library()
    start = time.perf_counter()
    report, options = Report(), options or Options()
    try:
        result, bundle, report = _rewritten(concrete, bundles or Bundles(), options)
    except Exception as error:  # a graph we do not understand must stay as it was
        result, bundle = concrete, list(concrete.variables)
        line = str(error).partition("\n")[0]
        report.decline(concrete.name, f"the rewriter failed: {type(error).__name__}: {line}")
    report.seconds = time.perf_counter() - start
    report.warnings.extend(_warnings())
    if verify_by == "numbers":
        verify.check_numbers(concrete, result, tolerance=tolerance)
    trackables = bundle + owners(result, [concrete, *roots])
    return Rewritten(result, trackables, report, keeps_memory=options.memory != "low")


def _rewritten(concrete, bundles: Bundles, options: Options):
    """The rewritten function, the bundle it captures (in a list, if any), the report."""
    captured, report = _rewrite_what_pays(concrete, options)
    resource = captured.graph.view.unique_name(_BUNDLE)
    values = emit.write_nodes(captured, resource, options.scratchpad_mode)
    captured.graph.view.prune()
    captures, bundle = dict(captured.captures), []
    if values is not None:
        bundle = [bundles.variable(values)]
        captures[resource] = bundle[0].handle
    verify.check_graph(captured.graph.view)
    result = rebuild(captured, captures)
    verify.check_signature(concrete, result)
    name_algorithms(result.graph, report)
    return result, bundle, report


def _rewrite_what_pays(concrete, options: Options) -> tuple[Capture, Report]:
    """Starts again without the convolutions that would lose, until none is left."""
    keep: dict[str, str] = {}
    while True:
        captured, report = capture(concrete), Report()
        rewrite(captured, report, options=options, keep=keep)
        losing = losing_convolutions(captured.graph)
        if not losing:
            pair_depthwise(captured.graph)
            pair_pool(captured.graph)
            join_in_place(captured.graph, report)
            _list_converted(captured, report)
            return captured, report
        keep.update(losing)


def rewrite(
    captured: Capture,
    report: Report,
    *,
    options: Options | None = None,
    keep: Mapping[str, str] | None = None,
) -> None:
    """Runs the passes over a captured graph, up to planned primitives and their reorders.

    Args:
        keep: convolution -> the reason to leave it to TensorFlow.
    """
    graph, options = captured.graph, options or Options()
    constant_shapes(graph)
    lift_convolutions(graph, report, algorithm=options.algorithm, keep=keep or {})
    lift_inner_products(graph, report)
    limit_memory(graph, options.memory)
    followers = Followers(graph)
    fold_batch_norm(graph, followers)
    fuse_post_ops(graph, followers)
    prepare_sources(graph, followers)
    assign_layout(graph, followers, report)
    lift_softmax(graph, report)
    fold_source_scales(graph)
    report_unfused(graph, followers, report)
    place_reorders(graph)
    read_shapes_of_blocked(graph)
    graph.view.prune()


def _list_converted(captured: Capture, report: Report) -> None:
    for node in captured.graph.view.topological():
        payload = node.payload
        if payload is None:
            continue
        if isinstance(payload, Reorder):
            report.reorders.append((str(node.inputs[0]), f"{payload.reads}->{payload.writes}"))
            continue
        shape = captured.graph.shapes.shape(node.ref)
        known = shape and tuple(size if isinstance(size, int) else None for size in shape)
        algorithm = getattr(payload, "algorithm", "")
        report.converted.append(
            Converted(node.name, payload.op, known, algorithm, payload.details())
        )


def _warnings() -> list[str]:
    threads = tf.config.threading.get_inter_op_parallelism_threads() or os.cpu_count() or 1
    if threads <= 1:
        return []
    return [
        "inter-op parallelism is not 1: each op may hop between threads; call "
        "tf.config.threading.set_inter_op_parallelism_threads(1) at the start of the program"
    ]
