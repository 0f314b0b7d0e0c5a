"""`optimize`: whatever holds a TensorFlow function in, a faster callable out."""

import functools
import gc
import os
import weakref
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from .. import folders, metagraph
from ..errors import UserError
from ..native import return_free_memory
from ..rewriter import Bundles, Options, optimize_concrete
from ..tensorflow_private import concrete_function, def_function
from . import keras_file, keras_input, keras_model
from .eager_path import unavailable
from .function import OptimizedFunction
from .keras_function import Inference, has_open_sizes, sized, timed_trace
from .live import LiveFunction
from .polymorphic import PolymorphicFunction
from .signatures import OptimizedModel, closed, sizes


def optimize(
    target,
    *,
    input_signature: Sequence[tf.TensorSpec] | None = None,
    custom_objects: Mapping[str, object] | None = None,
    algorithm: str = "auto",
    memory: str = "normal",
    scratchpad_mode: str = "user",
    verify: str = "structure",
    tolerance: float = 1e-4,
    exclude: Sequence[str] = (),
    only: Sequence[str] | None = None,
    weights: str = "snapshot",
    precision: str | None = None,
    calibration=None,
    max_loss: float | None = None,
    deterministic: bool = False,
    autotune: bool = False,
    example=None,
    strict: bool | None = None,
):
    """Rewrites a model or function so that it runs on this library's kernels where it can.

    Inputs, outputs, names, dtypes and dynamic sizes stay. The result is for inference. Gradients
    with respect to inputs are those of what it computes, with the weights that it has.

    Args:
        target: a keras.Model of Keras 3 or 2 (functional, sequential, or subclassed and called or
            built; inferred with training=False); a tf.function; a ConcreteFunction; a tf.Module
            that can be called; what tf.saved_model.load returned (all its signatures); or the path
            of a SavedModel, a .keras or an .h5 file.
        input_signature: a TensorSpec, or a structure of them, for each argument. Without it a
            tf.function that has no signature of its own is converted at the first call with each
            signature. A Keras model is converted again at the first call with masks, further
            arguments or other dtypes, as long as its original exists; where its class is yours,
            the result holds the original.
        custom_objects: name -> class or function, for a Keras file that needs them.
        algorithm: "auto", "direct", "winograd" or "paired" (where they apply), for every
            convolution; "direct" also for recurrent layers and products.
        memory: "normal" lets packed weights take up to three times the weights' own memory,
            "low" only 9/8 of it (no Winograd, so slower). "normal" also keeps, for calls on shapes
            that have come before, the memory of one call's intermediate tensors; "low" does not.
        scratchpad_mode: "user" takes temporary memory from TensorFlow's allocator for each
            execution, or from what memory="normal" keeps; "library" keeps buffers with each op.
        verify: "structure", or "numbers" to compare with the original on a random input.
        tolerance: for "numbers": the largest difference, relative to the output's magnitude. With
            precision="bf16" it is at least 0.1, with "int8" at least 0.25, and a batch of the
            calibration data is compared if there is one.
        exclude, only: names of nodes or layers, or regular expressions that match them: these
            convolutions, matrix products and softmaxes stay with TensorFlow, or all others do.
        weights: "snapshot" computes with the weights of this moment, whatever becomes of the
            original: call `optimize` again after training or loading others. "live" computes with
            those that the original has at each call (docs/how-it-works.md, "Live weights"). It
            holds the original. Checking for changes takes some microseconds a call; the first call
            after a change folds and packs all weights again, which takes about as long as
            `optimize` without tracing (0.4 to 1 s for MobileNetV2).
        precision: "bf16" or "int8": convolutions, and what lies between them, read and write
            bfloat16 or bytes; "bf16-weights" or "int8-weights": only the weights of convolutions
            and products are stored so (docs/low-precision.md). None is float32.
        calibration: for `precision`: typical inputs. "int8" needs them for the range of each
            tensor, and "bf16" loses less with them; a part of them is held back to measure the
            loss in `report.precision`. An array of samples; a mapping of arguments' names to such
            arrays; or batches (a tf.data.Dataset, a list), each an array, or a tuple or mapping
            of arguments.
        max_loss: the largest root mean square error that `precision` may cause at an output, on
            calibration data and relative to the output: 0.05 is 26 dB. The layers that lose most
            stay float32 until it holds.
        deterministic: results do not depend on the size of the batch, on the other samples in it,
            or on the number of threads (docs/algorithms.md, "The same bits"); the faster algorithms
            are not used. `report.notes` names the sums that TensorFlow still computes.
        autotune: measures each part of the graph that has reorders both ways, converted and as
            TensorFlow runs it, and keeps the faster; the whole function stays as it was if that is
            faster still. Takes a few dozen calls for each part; `report.notes` has the times.
        example: tensors or arrays such as calls will have, one for each argument: a list, or for a
            SavedModel also a mapping of names. `autotune` measures with them; by default they are
            random, with batch 1 and 64 for other unknown sizes. A Keras model that can be traced
            only with known heights and widths, and a SavedModel whose signatures leave them open,
            is converted for those of the example at once, for others at their first call, and saved
            with those of the example. `report.notes` says so.
        strict: True raises an error of the rewriter itself. False leaves the pass that failed
            out, or the function as it was where no pass is to blame, warns, and keeps the
            traceback in `report.error`. None is True only where the environment has
            TF_BLOCKDNN_STRICT=1.

    Returns:
        A callable with `.report` and `.save(folder)`: for a Keras model a keras.Model, for
        a SavedModel with `.signatures`, name -> callable, else as the function was.

    Raises:
        TypeError: `target` is none of the above.
        ValueError: no signature can be found, an unknown option, or an example or calibration data
            that a function does not take; "int8" without calibration.
        SavedModelError: a path that holds no model, or one that cannot be loaded.
        VerificationError: the numbers are not those of the original.

    Example:
        >>> model = keras.Sequential(
        ...     [keras.Input((32, 32, 3)), keras.layers.Conv2D(8, 3, activation="relu")]
        ... )
        >>> fast = bd.optimize(model)
        >>> image = tf.random.normal((1, 32, 32, 3))
        >>> bool(np.allclose(fast(image), model(image), atol=1e-5))
        True
        >>> fast.report.count("BlockdnnConv")
        1
    """
    if input_signature is not None and not isinstance(input_signature, (list, tuple)):
        raise TypeError(
            "input_signature must be a list of tf.TensorSpec, one for each argument, not "
            f"{_article(type(input_signature).__name__)}"
        )
    options = Options.of(locals())
    if options.is_live:
        _check_live(target)

    def rewrite(concrete, bundles: Bundles, roots: Sequence, example=example, takes_example=False):
        trained = [weakref.ref(variable) for variable in concrete.trainable_variables]
        rewritten = optimize_concrete(
            concrete,
            roots=roots,
            bundles=None if options.is_live else bundles,  # Each follows by itself.
            options=options,
            verify_by=verify,
            tolerance=tolerance,
            example=example,
            takes_example=takes_example,
            calibration=calibration,
        )
        is_original = rewritten.concrete is concrete  # which has the gradients by its weights
        wrap = functools.partial(OptimizedFunction, weights=() if is_original else trained)
        return wrap(rewritten) if rewritten.live is None else LiveFunction(rewritten, wrap)

    if isinstance(target, (str, os.PathLike)):
        fast = _of_path(target, input_signature, custom_objects, rewrite, example)
        gc.collect()  # Nobody holds what was read, but it consists of cycles.
        return_free_memory()
        return fast
    if isinstance(target, concrete_function.ConcreteFunction):
        return rewrite(target, Bundles(), (target,))
    if isinstance(target, def_function.Function):
        return _of_function(target, input_signature, rewrite, target)
    if keras_input.is_model(target):
        return _of_keras(target, weakref.ref(target), input_signature, rewrite, example)
    if getattr(target, "signatures", None):
        return _of_signatures(target, rewrite, example)
    if isinstance(target, tf.Module) and callable(target):
        return _of_function(_call_of(target), input_signature, rewrite, target)
    if isinstance(target, tf.Module) and (functions := _functions_of(target)):
        raise TypeError(
            f"{_article(type(target).__name__)} cannot be called, since it has no __call__: "
            f"optimize(module.{functions[0]}) takes one of its functions"
        )
    raise TypeError(
        f"cannot optimise {_article(type(target).__name__)}: give a keras.Model, a tf.function, a "
        "ConcreteFunction, a tf.Module that can be called, a loaded SavedModel that has "
        "signatures, or the path of a SavedModel or Keras file"
    )


def load(folder: str | os.PathLike) -> OptimizedModel:
    """Loads a SavedModel with calls that are as fast as those of `optimize`'s result.

    One that `optimize_saved_model`, `fast.save` or the command line wrote is called as it is;
    any other is optimised first.

    Args:
        folder: the folder of the SavedModel.

    Returns:
        The model, to be called by its default signature, with `.signatures`, `.report` and
        `.save(folder)`.

    Raises:
        SavedModelError: no SavedModel, or one that cannot be loaded.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> bd.optimize(model).save("fast_model")
        >>> fast = bd.load("fast_model")
        >>> fast(tf.ones((1, 8, 8, 3)))["output_0"].shape
        TensorShape([1, 6, 6, 8])
    """
    return optimize(folders.check_source(folder))


def _check_live(target) -> None:
    """Raises where the weights of `target` cannot be followed."""
    if isinstance(target, (str, os.PathLike)):
        raise UserError(
            f'weights="live" needs a model or function that goes on changing, and {target} is a '
            "file: give what tf.saved_model.load or keras.models.load_model makes of it"
        )
    if missing := unavailable():
        raise UserError(f'weights="live" cannot look at variables: {missing}')


def _of_path(path, input_signature, custom_objects, rewrite, example):
    path = folders.check_model(path)
    if folders.is_keras_file(path):

        def read():
            return keras_file.load_model(path, custom_objects)

        model = read()
        return _of_keras(model, read, input_signature, rewrite, example)
    return _of_signatures(metagraph.load(path), rewrite, example)


def _of_function(function, input_signature, rewrite, root):
    """A tf.function; `root` holds its tables."""
    if input_signature is None and function.input_signature is None:
        bundles, made = Bundles(), {}

        def make(args, kwargs):
            concrete, seconds = timed_trace(function.get_concrete_function, *args, **kwargs)
            if id(concrete) not in made:
                fast = rewrite(concrete, bundles, (root,))
                fast.report.tracing_seconds = seconds
                made[id(concrete)] = concrete, fast
            return made[id(concrete)][1]

        return PolymorphicFunction(make)
    specs = tuple(input_signature or ())
    concrete, seconds = timed_trace(function.get_concrete_function, *specs)
    fast = rewrite(concrete, Bundles(), (root,))
    fast.report.tracing_seconds = seconds
    return fast


def _of_keras(model, find: Callable, input_signature, rewrite, example):
    """The model's inference; `find` returns the model where it still is, or loads it again."""
    specs = tuple(input_signature or keras_input.input_specs(model)), {}
    if keras_input.has_own_call(model):
        specs = keras_input.arguments(keras_input.signature_of_call(model), *specs)
    if keras_input.is_own(type(model)):  # What it is called with decides, and its methods.
        original, find = model, lambda: original
    make = Inference(find, rewrite)
    function, first = PolymorphicFunction(make), None
    try:
        make.convert(specs, model)
        first = function.add(*specs)
    except ValueError as error:
        if input_signature or not has_open_sizes(specs):
            raise
        of_example = "" if example is None else "for the sizes of example, and "
        function.remark = (
            f"converted {of_example}at the first call of each height and width, since {error}"
        )
        if example is not None:
            make.rewrite = functools.partial(rewrite, takes_example=True)
            function.main = function.add(*sized(specs, example))
            make.rewrite = functools.partial(rewrite, example=None)  # for other sizes
    return keras_model.wrap(
        model, function, first, specs, lambda f: _of_function(f, None, rewrite, f)
    )


def _of_signatures(loaded, rewrite, example) -> OptimizedModel:
    """All signatures of what was loaded."""
    bundles, functions = Bundles(), {}
    for name, concrete in loaded.signatures.items():
        convert = functools.partial(rewrite, bundles=bundles, roots=(loaded,))
        known = None if example is None else closed(concrete, example)
        functions[name] = (
            convert(concrete) if known is None else _of_sizes(known, convert, concrete)
        )
    return OptimizedModel(functions)


def _of_sizes(known, convert: Callable, concrete) -> PolymorphicFunction:
    """A signature for the sizes of an example at once, for others at their first call."""
    main, others = convert(known, takes_example=True), []

    def make(args, kwargs):
        given = [tuple(spec.shape) for spec in tf.nest.flatten((args, kwargs))]
        wanted = [spec.shape for spec in tf.nest.flatten(known.structured_input_signature)]
        if all(map(tf.TensorShape.is_subtype_of, map(tf.TensorShape, given), wanted)):
            return main
        if not others:
            others.append(convert(concrete, example=None))
        return others[0]

    function = PolymorphicFunction(make)
    function.remark = (
        f"converted for the sizes of example, {sizes(known)}, and for others at the first call of "
        "one; saved with those of example"
    )
    function.main = function.add(*known.structured_input_signature)
    return function


def _call_of(module):
    """The tf.function that calling the module runs."""
    function = type(module).__call__
    return (
        module.__call__
        if isinstance(function, def_function.Function)
        else tf.function(module.__call__)
    )


def _functions_of(module) -> list[str]:
    """The names of the tf.functions that its class defines."""
    members = ((name, getattr(type(module), name, None)) for name in dir(type(module)))
    return [name for name, value in members if isinstance(value, def_function.Function)]


def _article(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"
