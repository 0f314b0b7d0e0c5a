"""Keras's callbacks of our own: what runs beside `fit`."""

import warnings

import keras

from .keras_private import added_losses, layers_within
from .options import Options, choose
from .targets import optimize

_KEPT = "tf_blockdnn.callbacks.Optimized: the model is tested as it is, since {}"


class Optimized(keras.callbacks.Callback):
    """Has `fit` and `evaluate` test by the optimised model, with the weights that it has by then.

    Losses, metrics and logs are the model's own, and so is a `test_step` of its class: a call of
    the model in it, unless it says training=True, runs on this library's kernels. Training is as it
    was. Where a model cannot be optimised, one warning says why, and it validates as ever; so does
    one whose layers add losses as they are called.

    Args:
        options: of `tf_blockdnn.optimize`, but for `weights`, which are live.

    Attributes:
        report: what was converted, from the first validation on; or None.

    Raises:
        TypeError: options that are no `tf_blockdnn.Options`.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 3)])
        >>> model.compile("sgd", "mse")
        >>> x, y = np.ones((4, 8, 8, 3)), np.ones((4, 6, 6, 4))
        >>> validate = bd.callbacks.Optimized()
        >>> _ = model.fit(x, y, validation_data=(x, y), callbacks=[validate], verbose=0)
        >>> validate.report.count("BlockdnnConv")
        1
    """

    def __init__(self, options: Options | None = None):
        super().__init__()
        self.report, self._options = None, choose(options, weights="live")
        self._original = self._fast = None  # Keras's function of a step, and the one in its place

    def on_test_begin(self, logs=None):
        original = self.model.test_function
        if original is not self._original:  # which Keras makes once, and again after `compile`
            self._original, self._fast = original, self._make() or original
        self.model.test_function = self._fast

    def on_test_end(self, logs=None):
        self.model.test_function = self._original

    def _make(self):
        """Keras's function of a step with fast calls of the model; None where it cannot be."""
        model = self.model
        try:
            fast = optimize(model, options=self._options)
            if any(map(added_losses, layers_within(model))):
                raise ValueError("its layers add losses as they are called")
        except Exception as error:  # Training goes on whatever becomes of it.
            warnings.warn(_KEPT.format(" ".join(str(error).split())), stacklevel=2)
            return None
        self.report = fast.optimized.report
        _view(model, fast).make_test_function(force=True)
        return model.test_function

    # What Keras 2 asks of a callback, and Keras 3's do not say.

    _supports_tf_logs = True

    def _implements_train_batch_hooks(self) -> bool:
        return False

    _implements_test_batch_hooks = _implements_predict_batch_hooks = _implements_train_batch_hooks


def _view(model, fast):
    """The model as methods of the model see it, but that calling it calls `fast`."""

    def call(self, *args, training=None, **kwargs):
        run = model if training else fast
        return run(*args, **kwargs, **({"training": training} if training else {}))

    members = {"__call__": call, "jit_compile": False}  # XLA does not know our ops.
    view = object.__new__(type(type(model).__name__, (type(model),), members))
    object.__setattr__(view, "__dict__", vars(model))
    return view
