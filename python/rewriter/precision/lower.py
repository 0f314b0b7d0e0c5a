"""Lowers the precision of a function: observes, chooses, judges, takes back what loses most."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import tensorflow as tf

from ...graph import Module, Ref
from ...tensorflow_private import call_flat
from ..cost import slow_in_bf16
from ..measure import computing
from ..report import OutputLoss, Precision
from ..verify import outputs, unchanged, why_only_once
from .calibration import Calibration, CalibrationError, split
from .lowering import Lowering
from .moments import MOST_TAPS, Moments
from .observer import Means, Observer
from .quantize import decibels
from .search import fewest, worst_first

# Where bfloat16 loses as much, and layers are as many, one that makes more than half of the loss
# stays float32: of two or three layers one always does.
_NOTICED, _MANY = 0.02, 16
_LOOKED_AT = 4  # batches that tell what a part of a network loses
_LOST = 0.316  # of an output, 10 dB: less is left of it than should be there unsaid
_BEYOND = (
    "calibration: values of {} beyond {:.3g} are far from all that most samples hold, and count "
    "as 0"
)
_DROWNED = (
    "calibration: a part of {} is so far from all other values that int8 has no step for these, "
    "which become 0: put 0 where values are missing, or leave what reads it float32 (exclude)"
)
_LOSES = (
    'precision="{}" leaves output {} at {:.1f} dB, mostly by {}: leave that float32 (exclude, '
    "max_loss), or calibrate with other data"
)
_NOT_BY_PRECISION = (
    "outputs are off by more than {:.3g} of their size in float32, too, by its own rounding"
)


def lower(run, data, on_batch=None):
    """The function in low precision, within the loss that is allowed.

    Args:
        run: a Rewrite that has not run; the options say which precision, and the loss.
        data: calibration data; may be None where the precision needs no ranges.
        on_batch: of `Calibration`.

    Returns: the run whose result it is, with `report.precision`.

    Raises:
        CalibrationError: the data do not fit, or a tensor has no finite range on them.
    """
    concrete, options = run.concrete, run.options
    run.steps.append("calibration")
    first, held, warnings = Lowering(options.precision), [], []
    if data is not None:
        calibration = Calibration(data, on_batch)
        with unchanged(concrete):
            held, drowned = _observe(run, calibration, first)
        if reason := why_only_once(concrete):
            held, warnings = [], [f"the loss is not measured: {reason}"]
        warnings += map(_BEYOND.format, calibration.limits, calibration.limits.values())
        warnings += map(_DROWNED.format, drowned[:1])  # Others follow from the first.

    def attempt(keep: Iterable[str] = (), batches: list = held):
        return run.again(lowering=replace(first, keep=frozenset(keep)).again(), held=batches).run()

    def lost_by(part: Sequence[str]) -> float:
        return attempt(set(names).difference(part), held[:_LOOKED_AT]).report.precision.loss

    best = attempt()
    judged = best.report.precision
    names = [layer.node for layer in judged.layers if layer.dtype != "float32"]
    allowed = options.max_loss or _LOST
    is_noticed = len(names) >= _MANY and not judged.is_within(_NOTICED)
    if options.precision == "bf16" and options.max_loss is None and is_noticed:
        for name, _ in worst_first(names, lost_by, least=judged.loss / 2):
            tried = attempt([name])
            if tried.report.precision.loss < judged.loss / 2:
                best = tried
            break  # No other makes as much.
    if not best.report.precision.is_within(allowed):
        floats = attempt(names) if names else best
        if not floats.report.precision.is_within(allowed):  # No search ends well.
            warnings.append(_NOT_BY_PRECISION.format(allowed))
            best = best if options.max_loss is None else floats
        elif options.max_loss is None:
            output = min(best.report.precision.outputs, key=lambda output: output.snr)
            layer, _ = next(worst_first(names, lost_by))
            warnings.append(_LOSES.format(options.precision, output.name, output.snr, layer))
        else:
            order = (name for name, _ in worst_first(names, lost_by))
            best = fewest(order, attempt, lambda it: it.report.precision.is_within(allowed))
    report = best.report
    report.warnings += warnings
    if not report.precision.count:
        report.warnings.append(_unchanged(report.precision, options))
    elif best.lowering.convolutions and options.precision == "bf16" and (reason := slow_in_bf16()):
        report.notes.append(reason)
    return best


def _observe(run, calibration, lowering: Lowering) -> tuple[list, list]:
    """Sets the lowering's means and rows, and of bytes choices and moments.

    Returns: the batches that are held back, and the tensors of which most is lost beside sentinels.
    """
    batches = split(calibration.batches(run.concrete))
    if not (lowering.convolves or lowering.looks_at_rows):
        return [batch for batch, is_held in batches if is_held], []
    observing = Lowering(lowering.precision, observing=True)
    watch = run.again(lowering=observing)
    module = watch.emit(watch.plan())
    lowering.rows = observing.rows
    make, most = (Observer, MOST_TAPS) if lowering.is_int8 else (Means, 0)
    observers = {ref: make() for ref in observing.tensors}
    few = [convolution for convolution in observing.convolutions if convolution[2].taps <= most]
    lowering.moments = {name: Moments(conv) for name, _, conv in few}
    watchers = [*observers.items(), *lowering.rows.items()]
    watchers += [(src, lowering.moments[name]) for name, src, _ in few]
    wanted = list(dict.fromkeys(ref for ref, _ in watchers))
    fetch, held_back, drowned = _fetcher(module, wanted), [], []
    for batch, is_held in batches:
        if is_held:
            held_back.append(batch)
            continue
        values = {ref: value.numpy() for ref, value in zip(wanted, fetch(batch), strict=True)}
        for ref, watcher in watchers:
            try:
                watcher.add(values[ref])
            except ValueError as error:
                raise CalibrationError(f"{ref}: {error}") from None
    for ref, observer in observers.items():
        lowering.means[ref] = observer.means
        if lowering.is_int8:
            lowering.choices[ref] = choice = observer.choose()
            drowned += [ref] if observer.drowns(choice.quantization) else []
    return held_back, drowned


def _fetcher(module: Module, wanted: list[Ref]) -> Callable[[list[tf.Tensor]], list[tf.Tensor]]:
    """What computes tensors of a module, whatever the batch."""
    functions = {}

    def fetch(batch: list[tf.Tensor]) -> list[tf.Tensor]:
        if not wanted:
            return []
        key = tuple((tensor.dtype, tuple(tensor.shape)) for tensor in batch)
        if key not in functions:
            inputs = dict(zip(map(Ref, module.main.inputs), batch, strict=True))
            functions[key] = computing(module, inputs, wanted)
        return call_flat(functions[key], batch)

    return fetch


def judge(run) -> Precision:
    """What the function of a run and the original make of the batches held back, compared."""
    lowering = run.lowering
    signals: dict[str, np.ndarray] = {}
    agreeing: dict[str, list[int]] = {}
    for batch in run.held:
        pairs = zip(outputs(run.concrete, batch), outputs(run.function, batch), strict=True)
        for (name, wanted), (_, got) in pairs:
            if wanted is None or not wanted.dtype.is_floating:
                continue
            wanted, got = (np.asarray(value, np.float64) for value in (wanted, got))
            finite = np.isfinite(wanted) & np.isfinite(got)
            lost = np.square(wanted[finite] - got[finite]).sum()
            lost = lost if np.array_equal(wanted[~finite], got[~finite], equal_nan=True) else np.inf
            signals.setdefault(name, np.zeros(2))
            signals[name] += np.square(wanted[finite]).sum(), lost
            if wanted.ndim == 2 and wanted.shape[1] > 1:
                count = agreeing.setdefault(name, [0, 0])
                count[0] += int((wanted.argmax(axis=1) == got.argmax(axis=1)).sum())
                count[1] += len(wanted)
    losses = [
        OutputLoss(
            name,
            decibels(signal, noise),
            agreeing[name][0] / agreeing[name][1] if agreeing.get(name, [0, 0])[1] else None,
        )
        for name, (signal, noise) in signals.items()
    ]
    samples = sum(int(batch[0].shape[0]) for batch in run.held if batch and batch[0].shape.rank)
    layers, left = dict.fromkeys(lowering.layers), dict.fromkeys(lowering.left)
    return Precision(lowering.precision, list(layers), losses, samples, list(left))


def _unchanged(judged: Precision, options) -> str:
    """Why no layer works in low precision, in one line."""
    if judged.layers:
        why = f"max_loss={options.max_loss:g} leaves all {len(judged.layers)} layers float32"
    elif judged.left:
        ((reason, count),) = Counter(reason for _, reason in judged.left).most_common(1)
        first = next(node for node, why in judged.left if why == reason)
        alike = f"{first} and {count - 1} more stay" if count > 1 else f"{first} stays"
        why = f"{alike} float32: {reason}"
    else:
        why = "the function has no layer with weights that could be"
    return f'precision="{judged.precision}" changed nothing: {why}'
