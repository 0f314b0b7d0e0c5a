"""Layers of Keras on our kernels that differ in the number of their spatial dimensions alone."""

import types

import keras

_LAYOUTS = {1: "nCw16c", 2: "nChw16c", 3: "slices of nChw16c"}


def layers(base: type, name: str, about: str, arguments: str, results: dict[int, list]) -> list:
    """A registered class for each rank, its documentation with an example included.

    Args:
        base: what computes; it stands before Keras's class.
        name: of the classes: "Conv{}D".
        about: what follows their names, where {} is the layout of blocked tensors.
        arguments: of the example.
        results: rank -> the shape that the example prints.
    """
    return [_layer(base, name.format(r), about, arguments, r, results[r]) for r in results]


def _layer(base: type, name: str, about: str, arguments: str, rank: int, result: list) -> type:
    source = (1, *{1: (8,), 2: (8, 8), 3: (4, 4, 4)}[rank], 20)
    members = {
        "__module__": base.__module__,
        "__doc__": f"keras.layers.{name}{about.format(_LAYOUTS[rank])}\n\n"
        f"Example:\n"
        f"  >>> bd.layers.{name}({arguments})(tf.ones({source})).shape\n"
        f"  TensorShape({result})\n",
    }
    bases = (base, getattr(keras.layers, name))
    made = types.new_class(name, bases, exec_body=lambda namespace: namespace.update(members))
    return keras.saving.register_keras_serializable(package="tf_blockdnn")(made)
