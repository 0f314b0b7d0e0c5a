"""A SavedModel measured as it is against itself optimised, in one process."""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from . import folders, metagraph, targets
from .errors import SavedModelError
from .graph import all_nodes
from .graph.families import CONVOLUTIONS
from .measuring.difference import Difference, largest_difference
from .measuring.examples import example_inputs
from .measuring.timing import Timing, interleave, timed
from .saved_model import select_signatures
from .targets import OptimizedFunction

ORIGINAL, OPTIMIZED = "TensorFlow", "tf_blockdnn"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Times, difference and what was converted.

    Attributes:
      inputs: input name to (shape, dtype name), as they were fed.
      original, optimized: the times of each.
      difference: between their outputs.
      inter_op_threads: TensorFlow's setting for both, 0 where it chooses itself.
      convolutions, reorders: ops of tf_blockdnn in the optimised graph.
      left: convolutions in the optimised graph that TensorFlow still runs.
    """

    inputs: dict[str, tuple[tuple[int, ...], str]]
    original: Timing
    optimized: Timing
    difference: Difference
    inter_op_threads: int
    convolutions: int
    reorders: int
    left: int

    @property
    def ratio(self) -> float:
        """How many times faster: the original's minimum over the optimised one's."""
        return self.original.minimum / self.optimized.minimum

    @property
    def median_ratio(self) -> float:
        """`ratio` of the medians."""
        return self.original.median / self.optimized.median

    def to_json(self) -> dict:
        """Plain dicts and numbers; times in milliseconds."""
        return {
            "inputs": {
                name: {"shape": shape, "dtype": dtype}
                for name, (shape, dtype) in self.inputs.items()
            },
            "original": self.original.to_json(),
            "optimized": self.optimized.to_json(),
            "ratio": self.ratio,
            "median_ratio": self.median_ratio,
            **self.difference.to_json(),
            "inter_op_threads": self.inter_op_threads,
            "convolutions": self.convolutions,
            "reorders": self.reorders,
            "convolutions_left": self.left,
        }


def compare(
    original: Callable,
    optimized: Callable,
    inputs: Mapping[str, np.ndarray],
    *,
    runs: int,
) -> Comparison:
    """Feeds `inputs` to a signature and to the same one optimised, in turn.

    Args:
      original: the ConcreteFunction.
      optimized: an OptimizedFunction, or the ConcreteFunction of an optimised SavedModel.
      inputs: name to array.
      runs: counted runs of each.
    """
    runners = {ORIGINAL: _runner(original, inputs), OPTIMIZED: _runner(optimized, inputs)}
    turns = {name: timed(run) for name, run in runners.items()}
    times = interleave(turns, runs=runs)
    difference = largest_difference(runners[ORIGINAL](), runners[OPTIMIZED]())
    shapes = {name: (value.shape, value.dtype.name) for name, value in inputs.items()}
    ops = count_ops(getattr(optimized, "concrete", optimized))
    return Comparison(
        shapes,
        times[ORIGINAL],
        times[OPTIMIZED],
        difference,
        tf.config.threading.get_inter_op_parallelism_threads(),
        convolutions=ops["BlockdnnConv"]
        + ops["BlockdnnConvTranspose"]
        + ops["BlockdnnConvVolume"]
        + 2 * ops["BlockdnnConvDepthwise"],
        reorders=ops["BlockdnnReorder"],
        left=sum(ops[name] for name in CONVOLUTIONS),
    )


def _runner(function, inputs: Mapping[str, np.ndarray]) -> Callable[[], list[np.ndarray]]:
    """Calls `function` as people do: signatures take names, `fast(x)` also takes positions."""
    feed = {name: tf.constant(value) for name, value in inputs.items()}
    call = functools.partial(function, **feed)
    if isinstance(function, OptimizedFunction) and len(feed) == 1:
        call = functools.partial(function, *feed.values())
    return lambda: [tensor.numpy() for tensor in tf.nest.flatten(call())]


def count_ops(function) -> collections.Counter:
    """How often each op occurs in a ConcreteFunction's graph and the functions it calls."""
    return collections.Counter(node.op for node in all_nodes(function.graph.as_graph_def()))


def compare_saved_model(
    source: str | os.PathLike,
    *,
    signature: str | None = None,
    batch: int | None = None,
    size: tuple[int, int] | None = None,
    runs: int = 30,
    example=None,
    custom_objects: Mapping[str, object] | None = None,
    on_step: Callable[[str], None] | None = None,
) -> Comparison:
    """Loads, optimises and measures one signature of a SavedModel on made-up inputs.

    Args:
      source: folder of the SavedModel, or a file that Keras wrote.
      signature: its name; serving_default, or the only one, by default.
      batch, size: fill the dimensions that the signature leaves open; 1 and (224, 224) by default.
      example: arguments to measure with in the place of made-up ones, as `optimize_saved_model`
        takes them.
      runs: counted runs of each.
      custom_objects: name to class or function, for a Keras file that needs them.
      on_step: called with a few words before each step.

    Raises:
      SavedModelError: anything wrong with `source`, `signature`, or inputs that cannot be made up,
        or a batch or size of which the signature has its own.
    """
    step = on_step or (lambda words: None)
    source = folders.check_model(source)
    step(f"reading {source}")
    loaded, _ = targets.load_signatures(source, custom_objects, example)
    original = loaded.signatures[choose_signature(loaded.signatures, signature, source)]
    inputs = inputs_of(original, source, batch=batch, size=size, example=example)
    step("optimising")
    optimized = targets.optimize(original)
    step(f"measuring, {runs} runs of each in turn")
    return compare(original, optimized, inputs, runs=runs)


def inputs_of(original, source, *, batch=None, size=None, example=None) -> dict:
    """name -> array for a signature that has run once on them: the example's, or made up.

    Raises:
      ValueError: an example that the signature does not take.
      SavedModelError: none can be made up, it does not run on them, or nothing takes a size that
        is given.
    """
    specs = original.structured_input_signature[1]
    shapes = [list(spec.shape) for spec in specs.values() if spec.shape.rank]
    for value, option, is_open in (
        (batch, "--batch", any(shape[0] is None for shape in shapes)),
        (size, "--size", any(len(s) == 4 and None in s[1:3] for s in shapes)),
    ):
        if value and not is_open:
            fixed = ", ".join(f"{name} {list(spec.shape)}" for name, spec in specs.items())
            raise SavedModelError(f"{source}: {option} changes nothing: it takes {fixed}")
    if example is not None:
        fitting = tf.nest.flatten(targets.close_sizes(specs, example))
        arrays = zip(fitting, tf.nest.flatten(example), strict=True)
        inputs = {spec.name: np.asarray(a, spec.dtype.as_numpy_dtype) for spec, a in arrays}
        where, advice = "on the example", ""
    else:
        try:
            inputs = example_inputs(specs, batch=batch or 1, size=size or (224, 224))
        except ValueError as error:
            raise SavedModelError(f"{source}: {error}") from error
        where, advice = "on made-up inputs", "; try --size or --example"
    try:
        original(**{name: tf.constant(value) for name, value in inputs.items()})
    except tf.errors.InvalidArgumentError as error:
        raise SavedModelError(
            f"{source}: does not run {where} ({metagraph.first_line(error)}){advice}"
        ) from error
    return inputs


def choose_signature(available, wanted: str | None, source) -> str:
    """The signature to measure: the one that is wanted, serving_default, or the only one."""
    if wanted is None and len(available) > 1:
        if "serving_default" not in available:
            raise SavedModelError(
                f"{source}: several signatures, choose one with --signature: "
                f"{', '.join(sorted(available))}"
            )
        wanted = "serving_default"
    return select_signatures(available, [wanted] if wanted else None, source)[0]
