"""How layer classes are registered, and generated where they differ in little but their names."""

import functools
import inspect
import itertools
import re
import types

import keras

_LAYOUTS = {1: "nCw16c", 2: "nChw16c", 3: "slices of nChw16c"}


def register(cls: type | None = None, *, example: str = ""):
    """Registers a class of layers. What its bases add to Keras's layer, the sections Args and
    Raises of their __init__, goes into its docstring.

    Args:
        example: of a docstring without an example, the arguments of one; the layer then keeps the
            shape of a picture.
    """
    if cls is None:
        return functools.partial(register, example=example)
    doc = inspect.cleandoc(cls.__doc__)
    if "Example:\n" not in doc:
        call = f"bd.layers.{cls.__name__}({example})(tf.ones((1, 8, 8, 20))).shape"
        doc += f"\n\nExample:\n  >>> {call}\n  TensorShape([1, 8, 8, 20])\n"
    about, example, rest = doc.partition("Example:\n")
    inits = [vars(base)["__init__"] for base in cls.__mro__ if "__init__" in vars(base)]
    ours = list(itertools.takewhile(lambda init: _section(init, "Args"), inits))
    for title in ("Args", "Raises"):
        lines = "".join(_section(init, title) for init in ours)
        if lines and title == "Args" and hasattr(keras.layers, cls.__name__):
            lines += f"  Others: as of keras.layers.{cls.__name__}.\n"
        about += f"{title}:\n{lines}\n" if lines else ""
    cls.__doc__ = about + example + rest
    return keras.saving.register_keras_serializable(package="tf_blockdnn")(cls)


def _section(init, title: str) -> str:
    """The lines under "title:" in a docstring; empty without one."""
    text = inspect.cleandoc(init.__doc__ or "") + "\n"
    match = re.search(rf"^{title}:\n((?:  .*\n)+)", text, re.MULTILINE)
    return match[1] if match else ""


def derive(base: type, name: str, doc: str) -> type:
    """A registered class of that name: what `base` does, before Keras's class."""
    members = {"__module__": base.__module__, "__doc__": doc}
    bases = (base, getattr(keras.layers, name))
    cls = types.new_class(name, bases, exec_body=lambda namespace: namespace.update(members))
    return register(cls)


def by_rank(base: type, name: str, about: str, arguments: str, results: dict[int, list]) -> list:
    """A class for each number of spatial dimensions, documented, with an example.

    Args:
        base: what computes.
        name: of the classes: "Conv{}D".
        about: what follows their names, where {} is the layout of blocked tensors.
        arguments: of the example.
        results: rank -> the shape that the example prints.
    """
    classes = []
    for rank, result in results.items():
        title, source = name.format(rank), (1, *{1: (8,), 2: (8, 8), 3: (4, 4, 4)}[rank], 20)
        example = f"bd.layers.{title}({arguments})(tf.ones({source})).shape"
        doc = f"keras.layers.{title}{about.format(_LAYOUTS[rank])}\n\n"
        doc += f"Example:\n  >>> {example}\n  TensorShape({result})\n"
        classes.append(derive(base, title, doc))
    return classes
