"""The rewriter: a function in, the same function on blocked convolutions out.

A function is captured once; `PASSES` then run over its graph in their order, and what they
planned is written into a new function. Every pass may skip; the graph stays right. One that fails
costs itself: what it did is undone, and the others run.

Weights are a snapshot: a later assignment to the original's variables does not reach the rewritten
function, whatever reads them there, ops of ours or TensorFlow's, loops and conditions included; or
they are live (trackables.py). A variable that the function itself assigns is live in any case:
everything reads it as in the original, and nothing computed from it counts as constant.

What was not planned is not touched: a function without an op of ours is returned as it was.
"""

import contextlib
import dataclasses
import functools
import os
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from .._launch import is_command_line
from ..errors import warn
from ..graph import Body, Module, Sizes, Verifier, check_edges
from ..native import library, without_collection
from ..options import TOLERANCE, Options, unmatched
from . import autotune, emit, measure, verify
from .capture import capture, compiled_by_xla, compiled_in
from .context import Context
from .followers import Followers
from .name_algorithms import name_algorithms
from .passes.layout.place_reorders import place_reorders
from .passes.order import HIDES, NEEDS, PASSES
from .precision.calibration import Calibration, CalibrationError
from .precision.lower import lower
from .rebuild import rebuild
from .regions import count_regions, flat_graph, form_regions, is_converted, ops_of_ours
from .report import Report
from .trackables import BUNDLE, Bundles, Live, owners, structure, weights_left

UNTOUCHED = "nothing is converted: calls run the original, with the weights that it has then"


class Rewritten(NamedTuple):
    """What `optimize_concrete` returns.

    Attributes:
        concrete: the rewritten ConcreteFunction, same signature.
        trackables: what it captures: keep alive, and attach to a module to save it.
        report: what was done.
        keeps_memory: whether calls may keep the memory of intermediate tensors.
        live: how it follows the original's weights; None where they are a snapshot.
        sizes: what sizes of arguments tell of those of results.
    """

    concrete: tf.types.experimental.ConcreteFunction
    trackables: list
    report: Report
    keeps_memory: bool = True
    live: Live | None = None
    sizes: Sizes = Sizes()


def optimize_concrete(
    concrete,
    *,
    roots: Sequence = (),
    bundles: Bundles | None = None,
    options: Options | None = None,
    example=None,
    takes_example: bool = False,
    calibration=None,
    on_batch: Callable[[int, int | None], None] | None = None,
) -> Rewritten:
    """Rewrites one ConcreteFunction; where that fails it is kept, and the report says why.

    Args:
        concrete: the function; it is not changed.
        roots: objects under which to look for the owners of captured tables.
        bundles: pass the same one for all functions of a model.
        options: choices for every converted op; the defaults where None.
        example: for options.autotune: a tensor or array for each argument; random ones where
            None, an unknown batch being 1 and other unknown sizes 64.
        takes_example: whether the function has the sizes of `example`, which others had open.
        calibration: for options.precision, as `optimize` takes it.
        on_batch: called while calibrating: batches done, and of how many, None if not known.

    Returns:
        The function, `.concrete`, its `.report`, and `.trackables` to keep alive as long as it.

    Raises:
        ValueError: an unknown option, an example or calibration data that the function does not
            take, or none where the precision needs them.
        VerificationError: the numbers are not those of the original function.
        Exception: whatever a pass raises, where options.strict; otherwise that pass is left out,
            with a RuntimeWarning, a warning in the report and `report.error`.

    Example:
        >>> @tf.function(input_signature=[tf.TensorSpec((1, 8, 8, 3), tf.float32)])
        ... def network(image):
        ...     return tf.nn.relu(tf.nn.conv2d(image, tf.ones((3, 3, 3, 4)), 1, "SAME"))
        >>> rewritten = bd.rewriter.optimize_concrete(network.get_concrete_function())
        >>> [op.type for op in rewritten.concrete.graph.get_operations() if "Blockdnn" in op.type]
        ['BlockdnnRegion']
    """
    options = options or Options()
    checks_numbers = options.verify == "numbers"
    if options.precision == "int8" or options.max_loss is not None:  # Both need data.
        Calibration(calibration)
    in_vain = []
    if calibration is not None and options.precision is None:
        in_vain.append("calibration changes nothing without a precision")
    if options.tolerance != TOLERANCE and not checks_numbers:
        in_vain.append('tolerance changes nothing without verify="numbers"')
    if example is not None and not (takes_example or options.autotune or options.measure):
        in_vain.append("example changes nothing: no size is open, and nothing is measured")
    for warning in in_vain:
        warn(warning)
    library()
    again = functools.partial(
        optimize_concrete,
        concrete,
        roots=roots,
        options=options,
        example=example,
        takes_example=takes_example,
        calibration=calibration,
    )
    start = time.perf_counter()
    context, bundles = Context(options), bundles or Bundles()
    inputs, judge = [], None
    measures = context.options.autotune or context.options.measure
    if checks_numbers:
        verify.check_repeatable(concrete, 'verify="numbers"', 'use verify="structure"')
    if context.options.max_loss is not None:
        verify.check_repeatable(concrete, "max_loss", "leave it out")
    if measures:
        verify.check_repeatable(concrete, "measuring", "optimize it without autotune")
        if example is None:
            inputs = verify.random_inputs(concrete, batch=1)
        else:
            inputs = verify.given_inputs(concrete, example)
    try:
        if context.options.precision is None:
            result, bundle = _rewritten(concrete, bundles, context)
        else:
            (result, bundle, context), judge = _lowered(
                concrete, bundles, context, calibration, on_batch
            )
        make = _maker(concrete, (result, bundle), bundles, context)
        with verify.unchanged(concrete) if measures else contextlib.nullcontext():
            if context.options.autotune and result is not concrete:
                result, bundle = _autotuned(concrete, make, context, inputs)
            context.report.seconds = time.perf_counter() - start
            if context.options.measure:
                context.running = "measure"
                context.report.measured = measure.measured(concrete, make, inputs, autotune.REASON)
    except CalibrationError:
        raise
    except Exception as error:
        if context.options.strict:
            raise
        result, bundle, context.read = concrete, list(concrete.variables), []
        context.report = _report_of_failure(concrete, context.running, error)
    report = context.report
    report.seconds = report.seconds or time.perf_counter() - start
    for warning in report.warnings:
        warn(warning)
    report.warnings = [*in_vain, *report.warnings, *_warnings()]
    if checks_numbers and result is not concrete:
        kind = report.precision.precision if report.precision else context.options.precision
        tolerance = max(options.tolerance, verify.TOLERANCES[kind])
        verify.check_numbers(concrete, result, tolerance=tolerance, inputs=judge)
    trackables = bundle + owners(result, [concrete, *roots])
    if result is concrete:
        report.notes.append(UNTOUCHED)
    else:  # Keras's export of a model around it writes what is named here.
        variables = (t for t in trackables if isinstance(t, tf.Variable))
        live = context.options.is_live  # Otherwise those that can be trained are nobody's gradient.
        result.graph.variables = [t for t in variables if live or not t.trainable]
    live = None
    if context.options.is_live:
        is_folded = context.options.precision is None and result is not concrete
        fold = functools.partial(_fold_again, concrete, context.options, dict(context.leave))
        live = Live(context, bundle, fold if is_folded else None, again)
    return Rewritten(result, trackables, report, context.options.keeps_memory, live, context.sizes)


def _fold_again(concrete, options: Options, leave: dict) -> tuple[Context, dict]:
    """The context of another run with the weights of now, and the values of its variables."""
    context = Context(options, leave=dict(leave))
    return context, _folded(_module(concrete, context), context)[1]


def run_passes(module: Module, context: Context) -> Module:
    """The function with primitives planned, laid out and joined; `module` stays as it is."""
    main, report = _planned(module.main, context, _name(module.function))
    report.blocked = ops_of_ours(module)
    context.report = report
    return dataclasses.replace(module, main=main, functions=dict(module.functions))


def _planned(body: Body, context: Context, name: str) -> tuple[Body, Report]:
    """A copy of the body, and of all that it calls, after the passes, with their report.

    What a failed pass has done is undone by starting again without it on the body as it was
    captured: the others do again what they did. Each start knows one more pass that failed, or
    convolution to leave, of which there are only so many.
    """
    failures: dict[str, Exception] = {}
    while (attempt := _attempt(body, context, failures)) is None:
        pass
    report = context.report.labelled(attempt.label)
    for run, error in failures.items():
        _note_failure(report, f"{name}/{body.name}" if body.name else name, run, error)
    attempt.inner = {}
    for key, inner in body.inner.items():
        if key[0] in attempt.view and attempt.view.node(key[0]).payload is None:
            attempt.inner[key], its = _planned(inner, context, name)
            report.extend(its)
    return attempt, report


def _attempt(body: Body, context: Context, failures: dict[str, Exception]) -> Body | None:
    """A copy of the body after the passes; None where they have to start again.

    That is where a pass decided to leave a convolution, or failed: it is added to `failures`.
    """
    attempt, decided, laid_out = body.copy(), len(context.leave), False
    verifier = Verifier(attempt)
    context.report, context.followers = Report(), Followers(attempt, found=False)
    for run in PASSES:
        needed = NEEDS.get(run, run)
        if failures.keys() & {run.__name__, needed.__name__}:
            continue
        if run in HIDES and context.lowering is not None and context.lowering.observing:
            continue
        context.running = run.__name__
        try:
            run(attempt, context)
            laid_out = laid_out or run.__name__ == place_reorders.__name__
            verifier.check(laid_out)
        except Exception as error:
            if context.options.strict:
                raise
            failures[run.__name__] = error
            return None
        if len(context.leave) > decided:
            return None
    return attempt


def _note_failure(report: Report, where: str, run: str, error: Exception) -> None:
    """Says in the report that the pass `run` was left out."""
    what = f"{where}: the pass {run} failed and was left out: {_line(error)}"
    report.warnings.append(f"{what} (report.error has the traceback)")
    report.error = (report.error or "") + "".join(traceback.format_exception(error))


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _lowered(concrete, bundles: Bundles, context: Context, calibration, on_batch):
    """(function, its variables, context) in low precision, and arguments to verify it with."""
    contexts = [context]

    def another(lowering) -> Context:
        contexts.append(Context(context.options, leave=dict(context.leave), lowering=lowering))
        return contexts[-1]

    def written(lowering) -> Module:
        made = another(lowering)
        module, own = _written(_module(concrete, made), bundles, made)
        handles = {name: variable.handle for name, variable in own.items()}
        return dataclasses.replace(module, captures=module.captures | handles)

    def rewritten(lowering):
        made = another(lowering)
        return *_rewritten(concrete, bundles, made), made

    try:
        return lower(concrete, context.options, calibration, written, rewritten, on_batch)
    finally:
        context.running = contexts[-1].running or "calibration"


@without_collection()
def _rewritten(concrete, bundles: Bundles, context: Context):
    """The rewritten function, and the variables made for it: the bundle and copies of others."""
    if compiled_by_xla(concrete):
        context.report.decline(_name(concrete), "XLA compiles it (jit_compile=True)")
        return concrete, list(concrete.variables)
    module = _module(concrete, context)
    if not is_converted(module):
        return concrete, list(concrete.variables)
    module, own = _written(module, bundles, context)
    context.report.notes += _frozen_numbers(concrete, module, own)
    captures = module.captures | {name: variable.handle for name, variable in own.items()}
    context.running = "name_algorithms"
    flat = flat_graph(module, captures)
    name_algorithms(flat, context.report)
    context.running = "form_regions"
    bodies = form_regions(
        module.main.view,
        lambda ref: flat.get_operation_by_name(ref.node).outputs[ref.port].shape,
        keeps_memory=context.options.keeps_memory,
    )
    module.functions.update((body.signature.name, body) for body in bodies)
    context.report.regions = count_regions(module)
    verify.check_written(context.report, module)
    context.running = "rebuild"
    result = rebuild(module, captures, _why_no_gradient(module, context))
    context.running = "verify"
    verify.check_signature(concrete, result)
    return result, list(own.values())


def _frozen_numbers(concrete, module: Module, own: dict) -> list[str]:
    """A note of variables of one number: settings like a temperature, more than weights."""
    read = module.main.constants.read_tensors.keys() | own.keys()
    handles = {id(handle) for name, handle in module.captures.items() if name in read}
    found = [v for v in concrete.variables if v.shape.rank == 0 and id(v.handle) in handles]
    if not found or module.main.constants.live:
        return []
    names = ", ".join(variable.name.partition(":")[0] for variable in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return [
        f'{names}{more}: variables of one number keep their values of now; weights="live" follows'
    ]


def _why_no_gradient(module: Module, context: Context) -> str:
    """Why the rewritten function has no gradient; empty where it has the original's."""
    names = [body.label(name) for body in module.bodies for name in body.own_gradients]
    reason = ""
    if names:
        reason = (
            f"the function has a gradient of its own at {names[0]} (tf.stop_gradient, "
            "tf.custom_gradient), which its optimised form does not have"
        )
    elif context.options.precision in ("bf16", "int8"):
        reason = f'precision="{context.options.precision}" has no gradient'
    if not reason:
        return ""
    reason = f"{reason}: take the gradient of the original"
    context.report.notes.append(reason)
    return reason


def _written(module: Module, bundles: Bundles, context: Context):
    """The module with all nodes written, and the variables made for it, by their placeholders."""
    module, values = _folded(module, context)
    return module, {name: bundles.variable(value) for name, value in values.items()}


def _folded(module: Module, context: Context) -> tuple[Module, dict]:
    """The module with all nodes written, and what the variables made for it hold."""
    context.running = "emit"
    resource = module.main.view.unique_name(BUNDLE)
    values = emit.write_nodes(module, resource, context.options)
    module.main.view.prune()
    own = {} if context.options.is_live else weights_left(module)
    if values is not None:
        own[resource] = values
    context.running = "verify"
    for body in module.bodies:
        check_edges(body.view)
    if context.options.is_live:
        read = module.main.constants.read_tensors
        context.read = [(module.captures[name], value) for name, value in read.items()]
        context.structure = structure(module)
    return module, own


@without_collection()
def _module(concrete, context: Context) -> Module:
    """The function after the passes; where they leave what Keras has XLA compile, that goes on."""
    context.running = "capture"
    captured = capture(concrete, live=context.options.is_live)
    context.sizes = captured.main.sizes()
    names = [node.name for body in captured.bodies for node in body.view]
    module = run_passes(captured, context)
    if closed := compiled_in(module):
        declined, context.running = context.report.declined, "capture"
        module = run_passes(capture(concrete, closed, context.options.is_live), context)
        for node, reason in declined:
            context.report.decline(node, reason)
    context.report.warnings += unmatched(context.options, names)
    return module


def _maker(concrete, first, bundles: Bundles, context: Context):
    """make(leave) -> the function rewritten without those convolutions, its parts, and the rest.

    `first` is what the cost model gave, which leaves none of them.
    """
    made = {frozenset(): (first[0], context.parts, (first[1], context))}

    def make(leave: dict[str, str]):
        key = frozenset(leave)
        if key not in made:
            leave = context.leave | leave
            lowering = context.lowering and context.lowering.again()
            other = Context(context.options, leave=leave, lowering=lowering)
            result, bundle = _rewritten(concrete, bundles, other)
            made[key] = result, other.parts, (bundle, other)
        return made[key]

    return make


def _autotuned(concrete, make, context: Context, inputs):
    """The fastest way to run the function on the inputs."""
    best, notes = autotune.fastest(concrete, make, inputs)
    if best is None:
        context.read = []
        context.report = Report(notes=notes, blocked=context.report.blocked)
        context.report.decline(_name(concrete), "autotune: it is faster as it was")
        return concrete, list(concrete.variables)
    result, _, (bundle, chosen) = best
    context.leave, context.read, context.structure = chosen.leave, chosen.read, chosen.structure
    context.report = chosen.report
    context.report.notes += notes
    return result, bundle


def _report_of_failure(concrete, step: str, error: Exception) -> Report:
    """Says in a warning and in a report that a pass raised `error` and nothing was converted."""
    what = f"the rewriter failed in {step}: {_line(error)}"
    warn(f"{_name(concrete)} stays as it was: {what} (report.error has the traceback)")
    report = Report(error="".join(traceback.format_exception(error)))
    report.decline(_name(concrete), what)
    return report


def _name(concrete) -> str:
    return tf.compat.as_str(concrete.name)


def _warnings() -> list[str]:
    if is_command_line():  # Its threads are not those of the program that will serve.
        return []
    threads = tf.config.threading.get_inter_op_parallelism_threads() or os.cpu_count() or 1
    text = (
        "inter-op parallelism is not 1: each op may hop between threads; call "
        "tf.config.threading.set_inter_op_parallelism_threads(1) at the start of the program"
    )
    return [text] if threads > 1 else []
