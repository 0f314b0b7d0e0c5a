"""A SavedModel's signature with every dimension known, as converters need it."""

import tensorflow as tf


def with_shapes(model, shapes: dict[str, list[int]]) -> tf.types.experimental.PolymorphicFunction:
    """`serving_default` of a loaded SavedModel as a tf.function of inputs so shaped.

    Its arguments are the inputs in the order of `shapes`, of the dtypes that the signature says: a
    call of a function with another dtype would not be inlined. `model` must outlive it.
    """
    serve = model.signatures["serving_default"]
    inputs_of = serve.structured_input_signature[1]
    specs = [tf.TensorSpec(shapes[name], inputs_of[name].dtype, name=name) for name in shapes]

    @tf.function(input_signature=specs, autograph=False)
    def function(*inputs):
        return serve(**dict(zip(shapes, inputs, strict=True)))

    return function
