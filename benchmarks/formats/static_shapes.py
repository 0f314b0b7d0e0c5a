"""A SavedModel's signature with every dimension known, as converters need it."""

import tensorflow as tf


def with_shapes(model, shapes: dict[str, list[int]]) -> tf.types.experimental.PolymorphicFunction:
    """`serving_default` of a loaded SavedModel as a tf.function of float32 inputs so shaped.

    Its arguments are the inputs in the order of `shapes`; `model` must outlive it.
    """
    serve = model.signatures["serving_default"]
    specs = [tf.TensorSpec(shape, tf.float32, name=name) for name, shape in shapes.items()]

    @tf.function(input_signature=specs, autograph=False)
    def function(*inputs):
        return serve(**dict(zip(shapes, inputs, strict=True)))

    return function
