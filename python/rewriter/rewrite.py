"""A run of the rewriter: a function in, the same function on blocked convolutions out.

A function is captured once; the passes then run over the graph in their order, and what they
planned is written into a new function. Every pass may skip; the graph stays right. One that fails
costs itself: what it did is undone, and the others run.

Weights are a snapshot: a later assignment to the original's variables does not reach the rewritten
function, whatever reads them there, ops of ours or TensorFlow's, loops and conditions included; or
they are live (trackables.py). A variable that the function itself assigns is live in any case:
everything reads it as in the original, and nothing computed from it counts as constant.

What was not planned is not touched: a function without an op of ours is returned as it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from .._launch import is_command_line
from ..errors import describe, warn
from ..graph import Body, Module, Sizes, Verifier, check_edges
from ..graph.families import BEGINNINGS, SUMS
from ..native import library, without_collection
from ..options import Options, is_named, unmatched
from ..tensorflow_private import results_of
from . import autotune, emit, measure, verify
from .ask_library import ask_library
from .capture import capture, compiled_by_xla, compiled_in
from .context import Context
from .followers import Followers
from .passes import order
from .passes.layout.place_reorders import place_reorders
from .patterns import PATTERNS
from .patterns.pixels.elementwise.activations import RULES as ACTIVATIONS
from .precision.calibration import Calibration, CalibrationError, keep_batches
from .precision.lower import judge, lower
from .precision.lowering import Lowering
from .rebuild import rebuild
from .regions import count_regions, flat_graph, form_regions, is_converted, ops_of_ours
from .report import Report
from .rules import Rule
from .summary import common_prefix
from .trackables import BUNDLE, Bundles, Live, owners, structure, weights_left
from .weights_file import keeps_packs, loaded_weights

UNTOUCHED = "nothing is converted: calls run the original, with the weights that it has then"


class Rewritten(NamedTuple):
    """What `optimize_concrete` returns.

    Attributes:
        concrete: the rewritten ConcreteFunction, same signature.
        trackables: what it captures: attach to a module to save it.
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
        The function, `.concrete`, which holds what it captures where anything was converted; its
        `.report`, and `.trackables`, what it captures.

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
    if options.precision is not None:  # It is looked at here, and read by `lower` and by `again`.
        calibration = keep_batches(calibration)
    if options.precision == "int8" or options.max_loss is not None:  # Both need data.
        Calibration(calibration)
    measures, checks_numbers = options.autotune or options.measure, options.verify is not False
    in_vain = []
    if calibration is not None and options.precision is None:
        in_vain.append("calibration changes nothing without a precision")
    if example is not None and not (takes_example or measures):
        in_vain.append("example changes nothing: no size is open, and nothing is measured")
    for warning in in_vain:
        warn(warning)
    if checks_numbers:
        verify.check_repeatable(concrete, "verify", "leave it out")
    if options.max_loss is not None:
        verify.check_repeatable(concrete, "max_loss", "leave it out")
    inputs = []
    if measures:
        verify.check_repeatable(concrete, "measuring", "optimize it without autotune")
        if example is None:
            inputs = verify.random_inputs(concrete, batch=1)
        else:
            inputs = verify.bind_example(concrete, example)
    library()
    start = time.perf_counter()
    run = Rewrite(concrete, options, bundles or Bundles())
    try:
        run = run.run() if options.precision is None else lower(run, calibration, on_batch)
        with verify.unchanged(concrete, inputs) if measures else contextlib.nullcontext():
            if options.autotune and run.function is not concrete:
                run = autotune.fastest(run, inputs)
            run.report.seconds = time.perf_counter() - start
            if options.measure:
                run.steps.append("measure")
                run.report.measured = measure.measured(run, inputs, autotune.REASON)
    except CalibrationError:
        raise
    except Exception as error:
        if options.strict:
            raise
        what = f"the rewriter failed in {run.steps[-1]}: {describe(error)}"
        warn(f"{run.name} stays as it was: {what} (report.error has the traceback)")
        run = run.untouched(Report(error="".join(traceback.format_exception(error))))
        run.report.decline(run.name, what)
    result, report = run.function, run.report
    report.seconds = report.seconds or time.perf_counter() - start
    for warning in report.warnings:
        warn(warning)
    report.warnings = [*in_vain, *report.warnings, *_warnings()]
    if checks_numbers and result is not concrete:
        kind = report.precision.precision if report.precision else options.precision
        tolerance = max(options.tolerance, verify.TOLERANCES[kind])
        batch = run.held[0] if run.held else None
        if run.bundles.changed(concrete):
            report.notes.append("its numbers were not verified: the original has other weights now")
        else:
            verify.check_numbers(concrete, result, tolerance=tolerance, inputs=batch)
    trackables = run.variables + owners(result, [concrete, *roots])
    if report.blocked and any(map(loaded_weights, owners(concrete, [concrete, *roots]))):
        report.memory["shared"] = report.weights + report.memory["packed"] * keeps_packs()
    if result is concrete:
        report.notes.append(UNTOUCHED)
    else:  # Keras's export of a model around it writes what is named here.
        variables = (t for t in trackables if isinstance(t, tf.Variable))
        live = options.is_live  # Otherwise those that can be trained are nobody's gradient.
        result.graph.variables = [t for t in variables if live or not t.trainable]
        result._blockdnn_trackables = trackables  # TensorFlow's functions hold none themselves.
    live = None
    if options.is_live:
        again = functools.partial(
            optimize_concrete,
            concrete,
            roots=roots,
            options=options,
            example=example,
            takes_example=takes_example,
            calibration=calibration,
        )
        live = Live(run, again)
    return Rewritten(result, trackables, report, options.keeps_memory, live, run.sizes)


class Rewrite:
    """One function being rewritten.

    It reads the original and writes only what it created itself. `again` is another run with other
    decisions: those of autotuning, of the search for a precision, of weights that have changed.

    Attributes:
        concrete: the original.
        leave: label of a convolution (`Body.label`) -> the reason to leave it to TensorFlow.
        lowering: how the precision is lowered; None for float32.
        held: batches by which the loss of precision is judged.
        function: the result; the original where nothing is converted.
        variables: those that were created for it: the bundle and copies of others.
        report: what was done and what was not.
        parts: of each part of the graph that has reorders at the edges, the labels of the
            convolutions; those that move most come first.
        read: (handle, value) of each variable whose value is part of the function.
        structure: of the graph, all but the weights; for live ones.
        sizes: what sizes of arguments tell of those of results.
        steps: the steps and passes of this run, and of those that it led to; the last one fails.
    """

    def __init__(
        self,
        concrete,
        options: Options,
        bundles: Bundles,
        *,
        leave: Mapping[str, str] = {},
        lowering: Lowering | None = None,
        held: Sequence = (),
        steps: list[str] | None = None,
    ):
        self.concrete, self.options, self.bundles = concrete, options, bundles
        self.leave, self.lowering, self.held = dict(leave), lowering, held
        self.steps = ["capture"] if steps is None else steps
        self.report, self.parts, self.sizes = Report(), [], Sizes()
        self.read: list[tuple] = []
        self.structure, self.prefix = b"", ""
        self.function, self.variables = concrete, list(concrete.variables)

    @property
    def name(self) -> str:
        """What the report calls the function."""
        return tf.compat.as_str(self.concrete.name)

    def again(
        self,
        leave: Mapping[str, str] = {},
        lowering: Lowering | None = None,
        held: Sequence | None = None,
    ) -> Rewrite:
        """A new run that also leaves these, in another precision, judged by other batches."""
        return Rewrite(
            self.concrete,
            self.options,
            self.bundles,
            leave=self.leave | leave,
            lowering=lowering or (self.lowering and self.lowering.again()),
            held=self.held if held is None else held,
            steps=self.steps,
        )

    def untouched(self, report: Report) -> Rewrite:
        """A run that leaves the function as it was, and says why."""
        other = self.again()
        other.report, other.sizes = report, self.sizes
        return other

    @without_collection()
    def run(self) -> Rewrite:
        """Makes the function, where anything in it is converted."""
        if compiled_by_xla(self.concrete):
            self.report.decline(self.name, "XLA compiles it (jit_compile=True)")
        elif not (results_of(self.concrete) or self.concrete.graph.control_outputs):
            self.report.decline(self.name, "it has no results and no side effects")
        else:
            module = self.plan()
            if is_converted(module):
                module = self.emit(module)
                self.form_regions(module)
                self.function = self.rebuild(module)
                self.verify(module)
        if self.lowering is not None:
            self.report.precision = judge(self)
        return self

    @without_collection()
    def plan(self) -> Module:
        """The function after the passes; XLA goes on compiling what they left."""
        captured = self._capture()
        self.sizes = captured.main.sizes()
        names = _labels(captured)
        module = self._run_passes(captured)
        if closed := compiled_in(module):
            declined = self.report.declined
            module = self._run_passes(self._capture(closed))
            for node, reason in declined:
                self.report.decline(node, reason)
        self.report.warnings += unmatched(self.options, names, self.prefix)
        return module

    def write(self, module: Module) -> dict[str, tf.Tensor]:
        """Writes what is planned; returns the values of new variables by placeholder."""
        self.steps.append("emit")
        resource = module.main.view.unique_name(BUNDLE)
        values = emit.write_nodes(module, resource, self.options)
        module.main.view.prune()
        variables = {} if self.options.is_live else weights_left(module)
        if values is not None:
            variables[resource] = values
        for body in module.bodies:
            check_edges(body.view)
        if self.options.is_live:
            read = module.main.constants.read_tensors
            self.read = [(module.captures[name], value) for name, value in read.items()]
            self.structure = structure(module)
        return variables

    def emit(self, module: Module) -> Module:
        """The module with all nodes written, and with the new variables."""
        values = self.write(module).items()
        variables = {name: self.bundles.variable(value) for name, value in values}
        self.variables = list(variables.values())
        self.report.weights = sum(v.dtype.size * v.shape.num_elements() for v in self.variables)
        if not self.options.is_live:
            self.report.notes += _frozen(self.concrete, module, variables, self.bundles)
        handles = {name: variable.handle for name, variable in variables.items()}
        return dataclasses.replace(module, captures=module.captures | handles)

    def form_regions(self, module: Module) -> None:
        """Makes one op of each region, and says what it will run."""
        self.steps.append("ask_library")
        view, flat = flat_graph(module, module.captures)
        ask_library(view, flat, self.report)
        self.steps.append("form_regions")
        bodies = form_regions(
            module.main.view,
            lambda ref: flat.get_operation_by_name(ref.node).outputs[ref.port].shape,
            keeps_memory=self.options.keeps_memory,
        )
        module.functions.update((body.signature.name, body) for body in bodies)
        self.report.regions = count_regions(module)

    def rebuild(self, module: Module):
        """The ConcreteFunction of a module that is written."""
        self.steps.append("rebuild")
        reason = self._why_no_gradient(module)
        if reason:
            self.report.notes.append(reason)
        return rebuild(module, module.captures, reason)

    def verify(self, module: Module) -> None:
        """Raises VerificationError where ops of the report are lost, or the signature changed."""
        self.steps.append("verify")
        verify.check_written(self.report, module)
        verify.check_signature(self.concrete, self.function)

    def why_not(self, name: str) -> list[str]:
        """Where each rule ends at the nodes of that name that no rule converts, a line a rule."""
        lines, others = [], {"assign_layout": PATTERNS["spans"], "find_followers": ACTIVATIONS}
        for body in self._capture().bodies:
            report = Report(prefix=self.prefix)
            context = Context(self.options, report=report, followers=Followers(body, looks=False))
            for run in order.PASSES:
                asked = (*others.get(run.__name__, ()), *PATTERNS.get(run.__name__, ()))
                rules = [rule for rule in asked if isinstance(rule, Rule)]
                nodes = [node for node in body.view if node.payload is None] if rules else []
                reasons = []
                for node in nodes:
                    label = body.label(node.name)
                    if not (is_named(name, label, self.prefix) or f"/{name}/" in f"/{label}/"):
                        continue
                    for rule in (rule for rule in rules if node.op in rule.ROOTS):
                        reason = context.reason_to_leave(body, node)
                        if not reason and isinstance(rule.find(node, body, context), str | None):
                            reason = rule.why_not(node, body, context)
                        if reason:
                            text = f"{label} ({node.op}) is no {rule.formula.__name__}: {reason}"
                            reasons.append((node.name, text))
                context = context.after(run, body)
                left = {node.name for node in body.view if node.payload is None}
                lines += [text for node, text in reasons if node in left]
        return lines

    def _capture(self, closed: frozenset[str] = frozenset()) -> Module:
        self.steps.append("capture")
        options = self.options
        wanted = BEGINNINGS | SUMS if options.deterministic else BEGINNINGS  # which reports name
        module = capture(self.concrete, closed, options.is_live, self.bundles.moment, wanted)
        self.prefix = common_prefix(_labels(module))
        return module

    def _run_passes(self, module: Module) -> Module:
        """The function with primitives planned, laid out and joined; `module` stays as it is."""
        main, self.report = self._plan_body(module.main)
        self.report.blocked = ops_of_ours(module)
        return dataclasses.replace(module, main=main, functions=dict(module.functions))

    def _plan_body(self, body: Body) -> tuple[Body, Report]:
        """A copy of the body, and of all that it calls, after the passes, with their report.

        What a failed pass has done is undone by starting again without it on the body as it was
        captured: the others do again what they did. Each start knows one more pass that failed, or
        convolution to leave, of which there are only so many.
        """
        failures: dict[str, Exception] = {}
        while (tried := self._attempt(body, failures)) is None:
            pass
        attempt, context = tried
        report = context.report.labelled(attempt.label)
        self.parts = [*context.parts, *(p for p in self.parts if p not in context.parts)]
        where = f"{self.name}/{body.name}" if body.name else self.name
        for run, error in failures.items():
            what = f"{where}: the pass {run} failed and was left out: {describe(error)}"
            report.warnings.append(f"{what} (report.error has the traceback)")
            report.error = (report.error or "") + "".join(traceback.format_exception(error))
        attempt.inner = {}
        for key, inner in body.inner.items():
            if key[0] in attempt.view and attempt.view.node(key[0]).payload is None:
                attempt.inner[key], inner_report = self._plan_body(inner)
                report.extend(inner_report)
        return attempt, report

    def _attempt(self, body: Body, failures: dict[str, Exception]) -> tuple[Body, Context] | None:
        """A copy of the body after the passes; None where they have to start again.

        That is where a pass decided to leave a convolution, or failed: it is added to `failures`.
        """
        copy = body.copy()
        nobody = Followers(copy, looks=False)
        report = Report(prefix=self.prefix)
        context = Context(
            self.options, dict(self.leave), self.lowering, report=report, followers=nobody
        )
        verifier, laid_out = Verifier(copy), False
        for run in order.PASSES:
            needed = order.NEEDS.get(run, run)
            if failures.keys() & {run.__name__, needed.__name__}:
                continue
            if run in order.HIDES and self.lowering is not None and self.lowering.observing:
                continue
            self.steps.append(run.__name__)
            try:
                context = context.after(run, copy)
                laid_out = laid_out or run.__name__ == place_reorders.__name__
                verifier.check(laid_out)
            except Exception as error:
                if self.options.strict:
                    raise
                failures[run.__name__] = error
                return None
            if context.leave.keys() - self.leave.keys():
                self.leave.update(context.leave)
                return None
        return copy, context

    def _why_no_gradient(self, module: Module) -> str:
        """Why the rewritten function has no gradient; empty where it has the original's."""
        names = [body.label(name) for body in module.bodies for name in body.own_gradients]
        if names:
            reason = (
                f"the function has a gradient of its own at {names[0]} (tf.stop_gradient, "
                "tf.custom_gradient), which its optimised form does not have"
            )
        elif self.options.precision and not self.options.precision.endswith("-weights"):
            reason = f'precision="{self.options.precision}" has no gradient'
        else:
            return ""
        return f"{reason}: take the gradient of the original"


def _labels(module: Module) -> list[str]:
    return [body.label(node.name) for body in module.bodies for node in body.view]


def _frozen(concrete, module: Module, variables: Mapping, bundles: Bundles) -> list[str]:
    """Notes of what a snapshot has of other than weights, or of another moment.

    A variable of one number is a setting, like a temperature.
    """
    read = module.main.constants.read_tensors.keys() | variables.keys()
    handles = {id(handle) for name, handle in module.captures.items() if name in read}
    frozen = [variable for variable in concrete.variables if id(variable.handle) in handles]
    texts = {
        'variables of one number keep their values of now; weights="live" follows': [
            variable for variable in frozen if variable.shape.rank == 0
        ],
        "optimize could not see them, so that they have their values of the first call with this "
        "signature": [variable for variable in frozen if bundles.missed(variable)],
    }
    return [f"{_names(named)}: {text}" for text, named in texts.items() if named]


def _names(variables: Sequence) -> str:
    names = ", ".join(variable.name.partition(":")[0] for variable in variables[:3])
    return names + (f" and {len(variables) - 3} more" if len(variables) > 3 else "")


def _warnings() -> list[str]:
    if is_command_line():  # Its threads are not those of the program that will serve.
        return []
    threads = tf.config.threading.get_inter_op_parallelism_threads() or os.cpu_count() or 1
    text = (
        "inter-op parallelism is not 1: each op may hop between threads; call "
        "tf.config.threading.set_inter_op_parallelism_threads(1) at the start of the program"
    )
    return [text] if threads > 1 else []
