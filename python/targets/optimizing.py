"""`optimize`: whatever holds a TensorFlow function in, a faster callable out."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, overload

import tensorflow as tf

from ..errors import UserError
from ..options import Options, PrecisionName, choose
from ..tensorflow_private import def_function
from .eager import why_unavailable
from .files import Path
from .keras import Keras
from .keras_result import OptimizedKerasModel
from .result import OptimizedFunction, OptimizedModel
from .saved_model import SavedModel
from .target import Settings, Target
from .tensorflow import Concrete, Function, Module

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The first that takes a target has it.
TARGETS: tuple[type[Target], ...] = (Path, Concrete, Function, Keras, SavedModel, Module)


class Choices(TypedDict, total=False):
    """The keyword arguments of `optimize`, for type checkers."""

    input_signature: Sequence[tf.TensorSpec] | None
    custom_objects: Mapping[str, object] | None
    precision: PrecisionName
    calibration: Any
    max_loss: float | None
    weights: Literal["snapshot", "live"] | None
    exclude: Sequence[str] | None
    example: Any
    verify: bool | float | None
    options: Options | None


class _Model(Protocol):
    """A model of either Keras, as type checkers see it."""

    def compile(self, *args: Any, **kwargs: Any) -> Any: ...
    def predict(self, *args: Any, **kwargs: Any) -> Any: ...


class _Loaded(Protocol):
    """What tf.saved_model.load returns, as type checkers see it."""

    signatures: Any


@overload
def optimize(**choices: Unpack[Choices]) -> Callable[[Callable[..., Any]], OptimizedFunction]: ...
@overload
def optimize(
    target: str | os.PathLike[str], **choices: Unpack[Choices]
) -> OptimizedModel | OptimizedKerasModel: ...
@overload
def optimize(target: _Model, **choices: Unpack[Choices]) -> OptimizedKerasModel: ...
@overload
def optimize(target: _Loaded, **choices: Unpack[Choices]) -> OptimizedModel: ...
@overload
def optimize(target: Callable[..., Any], **choices: Unpack[Choices]) -> OptimizedFunction: ...
def optimize(
    target=None,
    *,
    input_signature: Sequence[tf.TensorSpec] | None = None,
    custom_objects: Mapping[str, object] | None = None,
    precision: PrecisionName = None,
    calibration=None,
    max_loss: float | None = None,
    weights: Literal["snapshot", "live"] | None = None,
    exclude: Sequence[str] | None = None,
    example=None,
    verify: bool | float | None = None,
    options: Options | None = None,
) -> OptimizedFunction | OptimizedModel | OptimizedKerasModel:
    """Rewrites a model or function so that it runs on this library's kernels where it can.

    Inputs, outputs, names, dtypes and dynamic sizes stay. The result is for inference. Gradients
    with respect to inputs are those of what it computes, with the weights that it has.

    Args:
        target: a keras.Model of Keras 3 or 2 (functional, sequential, or subclassed and called or
            built; inferred with training=False); a tf.function; a ConcreteFunction; a tf.Module
            that can be called; what tf.saved_model.load returned (all its signatures); or the path
            of a SavedModel, a .keras, an .h5 or a .tflite file. `@bd.optimize` may stand over a
            function, as may `@bd.optimize(precision="bf16")`.
        input_signature: a TensorSpec, or a structure of them, for each argument. Without it a
            tf.function that has no signature of its own is converted at the first call with each
            signature. A Keras model is converted again at the first call with masks, further
            arguments or other dtypes, as long as its original exists; where its class is yours,
            the result holds the original.
        custom_objects: name -> class or function, for a Keras file that needs them.
        calibration: for a precision: typical inputs. "int8" needs them for the range of each
            tensor, and "bf16" loses less with them; a part of them is held back to measure the
            loss in `report.precision`. An array of samples; a mapping of arguments' names to such
            arrays; or batches (a tf.data.Dataset, a list), each an array, or a tuple or mapping
            of arguments.
        example: tensors or arrays such as calls will have, one for each argument: a list, or for a
            SavedModel also a mapping of names. `autotune` measures with them; by default they are
            random, with batch 1 and 64 for other unknown sizes. A Keras model that can be traced
            only with known heights and widths, and a SavedModel whose signatures leave them open,
            is converted for those of the example at once, for others at their first call, and saved
            with those of the example. `report.notes` says so.
        precision, max_loss, weights, exclude, verify: as in bd.Options; None is as `options` say.
        options: what else there is to choose.

    Returns:
        A callable with `.report` and `.save(folder)`: for a Keras model a keras.Model, for
        a SavedModel with `.signatures`, name -> callable, else as the function was.

    Raises:
        TypeError: `target` is none of the above.
        ValueError: no signature can be found, what an option cannot be, or an example or
            calibration data that a function does not take; "int8" without calibration.
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
    chosen = dict(
        precision=precision, max_loss=max_loss, weights=weights, exclude=exclude, verify=verify
    )
    data = dict(custom_objects=custom_objects, calibration=calibration, example=example)
    if target is None:
        data["input_signature"] = input_signature
        return functools.partial(optimize, options=options, **chosen, **data)
    if input_signature is not None and not isinstance(input_signature, (list, tuple)):
        raise TypeError(
            "input_signature must be a list of tf.TensorSpec, one for each argument, not "
            f"{_article(type(input_signature).__name__)}"
        )
    options = choose(options, **chosen)
    kind = next((kind for kind in TARGETS if kind.takes(target)), None)
    if kind is None:
        raise _not_taken(target)
    if options.is_live:
        _check_live(target)
    return kind(target, Settings(options, input_signature, **data)).result()


def _check_live(target) -> None:
    """Raises where the weights of `target` cannot be followed."""
    if isinstance(target, (str, os.PathLike)):
        raise UserError(
            f'weights="live" needs a model or function that goes on changing, and {target} is a '
            "file: give what tf.saved_model.load or keras.models.load_model makes of it"
        )
    if missing := why_unavailable():
        raise UserError(f'weights="live" cannot look at variables: {missing}')


def _not_taken(target) -> TypeError:
    article = _article(type(target).__name__)
    if isinstance(target, (OptimizedFunction, OptimizedModel)):
        return TypeError(
            f"{article} is optimised already: give what it was made of, with all options"
        )
    members = ((name, getattr(type(target), name, None)) for name in dir(type(target)))
    functions = (name for name, value in members if isinstance(value, def_function.Function))
    if isinstance(target, tf.Module) and (first := next(functions, None)):
        return TypeError(
            f"{article} cannot be called, since it has no __call__: "
            f"optimize(module.{first}) takes one of its functions"
        )
    return TypeError(
        f"cannot optimise {article}: give a keras.Model, a tf.function, a "
        "ConcreteFunction, a tf.Module that can be called, a loaded SavedModel that has "
        "signatures, or the path of a SavedModel or Keras file"
    )


def _article(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"
