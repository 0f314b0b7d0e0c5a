"""Keras's recurrent layers on weights that are packed once.

Each is a subclass of Keras's layer of that name and differs from it in one method, the loop
over time steps: arguments, weights, checkpoints, masks, states and dropout are Keras's own.
"""

import keras
import tensorflow as tf

from ..ops.products.rnn import rnn
from .blocked_layer import check_algorithm
from .classes import derive

_ACTIVATIONS = ("tanh", "relu", "sigmoid", "linear")
_RECURRENT_ACTIVATIONS = ("sigmoid", "hard_sigmoid", "tanh", "relu", "linear")
_CELLS = {
    keras.layers.LSTMCell: "lstm",
    keras.layers.GRUCell: "gru",
    keras.layers.SimpleRNNCell: "vanilla",
}
_PACKED_ONCE = " on weights that are packed once."
_AROUND_A_CELL = f""" around a cell of Keras,{_PACKED_ONCE}

    Around an LSTMCell, a GRUCell or a SimpleRNNCell; around any other it runs Keras's loop."""


def _name_of(activation, known) -> str | None:
    """The name of an activation that the op knows, else None."""
    for name in known:
        if activation is keras.activations.get(name):
            return name
    return None


class Packed:
    """The part that the layers of this module share; comes before Keras's class."""

    def __init__(self, *args, use_packed: bool = True, algorithm: str = "auto", **kwargs):
        super().__init__(*args, **kwargs)
        # Keras marks a layer with *args as one that no config describes; get_config does.
        vars(self).pop("_auto_config_error_args", None)
        self.use_packed = use_packed
        self.algorithm = check_algorithm(algorithm)
        if self.declined is None:
            self.supports_jit = False  # XLA does not know the op

    @property
    def declined(self) -> str | None:
        """Why this layer runs Keras's loop over time steps, or None if it does not."""
        cell = self.cell
        if not self.use_packed:
            return "use_packed=False"
        if type(cell) not in _CELLS:
            return f"its cell is a {type(cell).__name__}"
        for dtype in (self.compute_dtype, cell.compute_dtype):
            if dtype != "float32":
                return f"it computes in {dtype}, not float32"
        if _name_of(cell.activation, _ACTIVATIONS) is None:
            return f"its activation is {_spell(cell.activation)}, not one of {_ACTIVATIONS}"
        gates = getattr(cell, "recurrent_activation", None)
        if gates is not None and _name_of(gates, _RECURRENT_ACTIVATIONS) is None:
            return (
                f"its recurrent_activation is {_spell(gates)}, not one of {_RECURRENT_ACTIVATIONS}"
            )
        return None

    def _declined_in_training(self) -> str | None:
        if self.cell.recurrent_dropout:
            return "recurrent_dropout drops states between steps"
        if self.cell.dropout and getattr(self.cell, "implementation", 2) == 1:
            return "implementation=1 drops other inputs for each gate"
        return None

    def inner_loop(self, sequences, initial_state, mask, training=False):
        if self.declined or (training and self._declined_in_training()):
            return super().inner_loop(sequences, initial_state, mask, training=training)
        sequences = tf.cast(sequences, tf.float32)  # Keras promotes integers in products.
        states = keras.tree.flatten(initial_state)
        masks = [m for m in keras.tree.flatten(mask) if m is not None]
        cell, mask = self.cell, None
        if masks:
            mask = tf.cast(masks[0], tf.bool)
            mask = tf.squeeze(mask, -1) if mask.shape.rank == 3 else mask
        if training and cell.dropout:
            dropped = cell.get_dropout_mask(sequences[:, 0, :])
            sequences = sequences * tf.expand_dims(dropped, 1)
        result = rnn(
            sequences,
            tf.convert_to_tensor(cell.kernel),
            tf.convert_to_tensor(cell.recurrent_kernel),
            None if cell.bias is None else tf.convert_to_tensor(cell.bias),
            cell=_CELLS[type(cell)],
            activation=_name_of(cell.activation, _ACTIVATIONS),
            recurrent_activation=_name_of(
                getattr(cell, "recurrent_activation", keras.activations.sigmoid),
                _RECURRENT_ACTIVATIONS,
            ),
            reset_after=getattr(cell, "reset_after", True),
            initial_state=states,
            mask=mask,
            go_backwards=self.go_backwards,
            return_sequences=self.return_sequences,
            zero_output_for_mask=self.zero_output_for_mask,
            training=bool(training),
            how=self.algorithm,
        )
        # Keras takes the first or the second, by return_sequences.
        return result.dst, result.dst, list(result.states)

    def get_config(self):
        chosen = {} if self.algorithm == "auto" else {"algorithm": self.algorithm}
        return {**super().get_config(), "use_packed": self.use_packed, **chosen}


def _spell(activation) -> str:
    return getattr(activation, "__name__", None) or repr(activation)


_DOC = """`keras.layers.{name}`{about}

    Args:
      use_packed: False: Keras's own loop over time steps.
      algorithm: "auto", or "direct": docs/algorithms.md.
      Others: as of `keras.layers.{name}`, `zero_output_for_mask` included.

    Raises:
      ValueError: another algorithm.

    Attributes:
      declined: None, or why the layer runs Keras's loop: an activation that the op does not know,
        a type other than float32. In training recurrent_dropout does so, too.

    Weights are those of `keras.layers.{name}`: its checkpoints load. Works in
    `keras.layers.Bidirectional`, after masks, stateful, and in training.

    Source: `keras.layers.{name}`; the packed recurrent layers of PaddlePaddle.

    Example:
      >>> bd.layers.{name}({arguments})(tf.ones([2, 5, 8])).shape
      TensorShape([2, {result}16])
    """


def _layer(name: str, arguments: str, result: str = "", about: str = _PACKED_ONCE) -> type:
    doc = _DOC.format(name=name, about=about, arguments=arguments, result=result)
    return derive(Packed, name, doc)


LSTM = _layer("LSTM", "16, return_sequences=True", "5, ")
GRU = _layer("GRU", "16")
SimpleRNN = _layer("SimpleRNN", '16, activation="relu"')
RNN = _layer("RNN", "keras.layers.LSTMCell(16)", about=_AROUND_A_CELL)

_PACKED = {getattr(keras.layers, cls.__name__): cls for cls in (LSTM, GRU, SimpleRNN, RNN)}


def packed_class(layer) -> "type | None":
    """The class that takes the place of a recurrent layer of Keras: that of the same name, and
    for Bidirectional itself, around such layers."""
    if type(layer) is keras.layers.Bidirectional:
        return keras.layers.Bidirectional if all(map(packed_class, _both(layer))) else None
    return _PACKED.get(type(layer))


def packed_config(layer, algorithm: str = "auto") -> dict:
    """`layer.get_config()` of any layer, with packed layers of `algorithm` in a Bidirectional."""
    config = layer.get_config()
    if type(layer) is keras.layers.Bidirectional:
        for key, inner in zip(("layer", "backward_layer"), _both(layer), strict=True):
            chosen = inner.get_config() | {"algorithm": algorithm}
            packed = packed_class(inner).from_config(chosen)
            config[key] = keras.saving.serialize_keras_object(packed)
    return config


def reason_to_keep(layer) -> "str | None":
    """Why a recurrent layer stays as it is, or None; also None for all other layers."""
    if isinstance(layer, Packed):
        return "a layer of tf_blockdnn already"
    if type(layer) is keras.layers.Bidirectional:
        return next(filter(None, map(reason_to_keep, _both(layer))), None)
    if not isinstance(layer, keras.layers.RNN):
        return None
    if packed_class(layer) is None:
        return f"no packed form of a {type(layer).__name__}"
    if type(layer.cell) not in _CELLS:  # which may not be registered, so that no config restores it
        return f"its cell is a {type(layer.cell).__name__}"
    return packed_class(layer).from_config(layer.get_config()).declined


def _both(layer) -> tuple:
    return layer.forward_layer, layer.backward_layer
