"""Backbones of KerasHub (requirements-kerashub.txt) with random weights, for backbones.py.

`cnn` has convolution networks, `vision` transformers on pictures, `text` those on ids and
`sound` those on sound; each has a table of constructors and one of the shapes of a sample. A model
of several inputs becomes one of one input here. Nothing is downloaded.
"""

from __future__ import annotations

import dataclasses
import importlib

import keras
import numpy as np
from keras import ops

from .. import pictures
from ..applications import randomise

KINDS = ("cnn", "vision", "text", "sound")
IDS = 16  # Tokens of a model that takes ids beside its picture or sound.


@dataclasses.dataclass(frozen=True)
class Backbone:
    """A backbone as a model of one input.

    Attributes:
      model: it.
      words: how many ids there are; 0: the input is a picture or a sound.
    """

    model: keras.Model
    words: int

    def sample(self) -> np.ndarray:
        """One sample, [1, ...]: ids, a made-up picture, or noise."""
        shape, random = self.model.input_shape[1:], np.random.default_rng(0)
        if self.words:
            return random.integers(1, self.words, (1, *shape), np.int32)
        if len(shape) == 3:
            return pictures(1, shape[:2], spread=128)
        return random.standard_normal((1, *shape), np.float32)


def names() -> list[str]:
    """All backbones, such as "text/bert"."""
    return [f"{kind}/{name}" for kind in KINDS for name in _module(kind).BUILDERS]


def network(name: str) -> Backbone:
    """The backbone; its weights are drawn from fixed seeds."""
    kind, _, name = name.partition("/")
    module, dtype = _module(kind), "int32" if kind == "text" else "float32"
    keras.utils.set_random_seed(0)
    model = module.BUILDERS[name]()
    whole = _of_one_input(model, module.SHAPES[name], dtype)
    layers = list(model._flatten_layers(include_self=False))
    if any(isinstance(layer, keras.layers.BatchNormalization) for layer in layers):
        whole = randomise(whole, layers)
    else:
        _disturb(whole)
    return Backbone(whole, module.WORDS if kind == "text" else 0)


def _module(kind: str):
    return importlib.import_module(f"{__name__}.{kind}")


def _of_one_input(model: keras.Model, shape: tuple[int, ...], dtype: str) -> keras.Model:
    """Ids make masks and segments, a picture or a sound makes ids."""
    x = keras.Input(shape, dtype=dtype)
    if not isinstance(model.input, dict):
        return keras.Model(x, model(x))
    return keras.Model(x, model({name: _fed(name, spec, x) for name, spec in model.input.items()}))


def _fed(name: str, spec, x):
    """What the input `name` gets of `x`."""
    ids = "int" in keras.backend.standardize_dtype(spec.dtype)
    if not ids and len(spec.shape) == len(x.shape):
        return x
    if ids and len(x.shape) > 2:
        floats = ops.reshape(x, (-1, int(np.prod(x.shape[1:]))))[:, :IDS]
        x = ops.cast(floats * 0, spec.dtype) + ops.arange(1, IDS + 1, dtype=spec.dtype)
    x = ops.cast(x, spec.dtype)
    if "mask" in name:
        return x * 0 + 1
    return x * 0 if "segment" in name else x


def _disturb(model: keras.Model) -> None:
    """Moves the weights of few axes a little.

    Biases that are zero and scales that are one would hide what is folded wrongly.
    """
    random = np.random.default_rng(0)
    for weight in model.weights:
        if len(weight.shape) <= 2 and "float" in str(weight.dtype):
            weight.assign_add(random.normal(0, 0.02, weight.shape))
