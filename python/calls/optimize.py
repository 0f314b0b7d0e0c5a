"""`optimize`: whatever holds a TensorFlow function in, a faster callable out."""

import sys
from collections.abc import Sequence

import tensorflow as tf

from ..rewriter import Bundles, Options, optimize_concrete
from ..tensorflow_private import concrete_function, def_function
from .function import OptimizedFunction, OptimizedModel


def optimize(
    target,
    *,
    input_signature: Sequence[tf.TensorSpec] | None = None,
    algorithm: str = "auto",
    memory: str = "normal",
    scratchpad_mode: str = "user",
    verify: str = "structure",
) -> OptimizedFunction | OptimizedModel:
    """Rewrites a model or function so that its convolutions run on blocked tensors.

    Inputs, outputs, names, dtypes and dynamic sizes stay. Weights are a snapshot: call
    `optimize` again after training or loading others. The result is for inference.

    Args:
        target: a keras.Model (its own symbolic inputs, or `input_signature`, training=False);
            a tf.function with an input_signature; a ConcreteFunction; or what
            tf.saved_model.load returned (all its signatures).
        input_signature: one TensorSpec an argument, where the target has none of its own.
        algorithm: "auto", "direct", "winograd" or "paired" (where they apply), for every
            convolution.
        memory: "normal" lets packed weights take up to three times the weights' own memory,
            "low" only 9/8 of it (no Winograd, so slower). "normal" also keeps, for calls on shapes
            that have come before, the memory of one call's intermediate tensors; "low" does not.
        scratchpad_mode: "user" takes temporary memory from TensorFlow's allocator for each
            execution, or from what memory="normal" keeps; "library" keeps buffers with each op.
        verify: "structure", or "numbers" to compare with the original on a random input.

    Returns:
        A callable with `.report` and `.save(folder)`; for a loaded SavedModel also
        `.signatures`, name -> callable.

    Raises:
        TypeError: `target` is none of the above.
        ValueError: no signature can be found, or an unknown option.

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
    choices = Options(algorithm=algorithm, memory=memory, scratchpad_mode=scratchpad_mode)
    options = {"roots": [target], "options": choices, "verify_by": verify}
    if isinstance(target, concrete_function.ConcreteFunction):
        return OptimizedFunction(optimize_concrete(target, **options))
    if isinstance(target, def_function.Function):
        concrete = _of_function(target, input_signature)
        return OptimizedFunction(optimize_concrete(concrete, **options))
    if _is_keras(target):
        concrete = _of_keras(target, input_signature)
        return OptimizedFunction(optimize_concrete(concrete, **options))
    signatures = getattr(target, "signatures", None)
    if not signatures:
        raise TypeError(
            f"cannot optimise a {type(target).__name__}: give a keras.Model, a tf.function, a "
            "ConcreteFunction, or a loaded SavedModel that has signatures"
        )
    options["bundles"] = Bundles()
    return OptimizedModel(
        {
            name: OptimizedFunction(optimize_concrete(concrete, **options))
            for name, concrete in signatures.items()
        }
    )


def _is_keras(target) -> bool:
    """Looks without importing Keras: whoever has a model has it imported."""
    return "keras" in sys.modules and isinstance(target, sys.modules["keras"].Model)


def _of_function(function, input_signature):
    if input_signature is not None:
        return function.get_concrete_function(*input_signature)
    if function.input_signature is None:
        raise ValueError(
            "the tf.function has no input_signature: pass input_signature=[tf.TensorSpec(...)]"
        )
    return function.get_concrete_function()


def _of_keras(model, input_signature):
    """Traces the model for inference on its own symbolic inputs."""
    if input_signature is None:
        functional = getattr(model, "_functional", None) or model
        structure = getattr(functional, "_inputs_struct", None)
        if structure is None:
            raise ValueError(
                f"{model.name} has no symbolic inputs: pass input_signature=[tf.TensorSpec(...)]"
            )
        input_signature = [
            tf.nest.map_structure(
                lambda x: tf.TensorSpec(x.shape, x.dtype, name=x.name.split(":")[0]), structure
            )
        ]

    @tf.function(autograph=False)
    def inference(*inputs):
        return model(*inputs, training=False)

    return inference.get_concrete_function(*input_signature)
