"""SavedModel in, the same SavedModel faster out."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping

from . import folders, targets
from .errors import SavedModelError, UserError
from .options import Options, PrecisionName, choose, names_of
from .rewriter import Bundles, Report, Rewrite

__all__ = ["SavedModelError", "SavedModelReport", "optimize_saved_model"]

# How a note begins that says of which sizes a signature is now.
TAKES_EXAMPLE = "takes the sizes of example alone"


def _of_all(attribute: str, doc: str) -> property:
    """The entries of a list of each distinct report, one after the other."""

    def entries(self) -> list:
        return [entry for _, report in distinct(self) for entry in getattr(report, attribute)]

    return property(entries, doc=doc)


@dataclasses.dataclass(frozen=True)
class SavedModelReport:
    """What was done to each signature of a SavedModel.

    Attributes:
      signatures: signature name to its Report. Signatures that share one graph share one Report.
      kept: names of signatures that were asked to stay as they are.
    """

    signatures: dict[str, Report]
    kept: tuple[str, ...] = ()

    converted = _of_all("converted", "The converted nodes of every distinct graph.")
    blocked = _of_all("blocked", "(node, op) of each op of tf_blockdnn that was there before.")
    declined = _of_all("declined", "(node, reason) for what stayed as it was.")
    unfused = _of_all("unfused", "(node, reason) of element-wise work that runs by itself.")
    joined = _of_all("joined", '(concatenation, "3 of 4") for each with values written in place.')
    folded = _of_all("folded", "(node, op) of each shuffle, split or join that went into weights.")
    reorders = _of_all("reorders", "(tensor, direction) of each reorder that is left.")

    def summary(self, all: bool = False) -> str:
        """The reports as text, one paragraph a graph.

        Args:
          all: every op and node, instead of what fits a screen.
        """
        texts = [(names, report.summary(all)) for names, report in distinct(self)]
        texts += [([name], "kept as it was") for name in self.kept]
        heads = ("signature" if len(names) == 1 else "signatures" for names, _ in texts)
        return "\n\n".join(
            f"{head} {', '.join(names)}\n{text}"
            for head, (names, text) in zip(heads, texts, strict=True)
        )

    def to_json(self, indent: int | None = None) -> str:
        """{"signatures": {name: report}, "kept": [names]} as JSON text."""
        reports = {name: json.loads(r.to_json()) for name, r in self.signatures.items()}
        return json.dumps({"signatures": reports, "kept": list(self.kept)}, indent=indent)

    def __str__(self) -> str:
        return self.summary()


def distinct(report: SavedModelReport) -> list[tuple[list[str], Report]]:
    """(names of the signatures that share it, the report) of each distinct graph."""
    names: dict[int, list[str]] = {}
    for name, part in report.signatures.items():
        names.setdefault(id(part), []).append(name)
    return [(same, report.signatures[same[0]]) for same in names.values()]


def optimize_saved_model(
    source: str | os.PathLike,
    destination: str | os.PathLike,
    *,
    signatures: Iterable[str] | None = None,
    custom_objects: Mapping[str, object] | None = None,
    precision: PrecisionName = None,
    calibration=None,
    max_loss: float | None = None,
    exclude: Iterable[str] | None = None,
    example=None,
    verify: bool | float | None = None,
    force: bool = False,
    on_step: Callable[[str], None] | None = None,
    on_batch: Callable[[int, int | None], None] | None = None,
    options: Options | None = None,
) -> SavedModelReport:
    """Writes to `destination` the SavedModel in `source` with every signature made faster.

    Names, dtypes, shapes, assets, lookup tables and initialisers are kept. So are the functions
    that are its attributes (`serve`, methods of a tf.Module, endpoints of an ExportArchive), faster
    where they read no variable that one of them assigns. The result loads with
    tf.saved_model.load in any process that has imported tf_blockdnn. `destination` appears in one
    step when everything is written; on an error nothing is left behind.

    Args:
      source: folder of the SavedModel to read, or a file of Keras's (.keras, .h5) or LiteRT's
        (.tflite).
      destination: folder to write; must not exist or be empty, unless `force`.
      signatures: names of the signatures to optimise, the others being kept as they are; all by
        default.
      custom_objects, calibration: as in `optimize`.
      example: tensors or arrays such as calls will have, one for each argument: a list, a mapping
        of names, or one alone. `autotune` measures with them. Heights, widths and other sizes that
        a signature leaves open become those of the example, batches excepted; `report.notes` says
        so. A Keras file that can be traced only with known sizes needs this.
      force: replace a SavedModel in `destination`. Other files in that folder are kept.
      on_step: called with a few words before each step.
      on_batch: called while calibrating with the number of batches that are done, and of all of
        them where that is known.
      precision, max_loss, exclude, verify, options: as in `optimize`.

    Returns:
      What was converted and what was declined, with reasons, for each signature.

    Raises:
      SavedModelError: anything wrong with the two folders or with `signatures`, in one line.
      ValueError: what an option cannot be, or calibration data or an example that a signature does
        not take.
      VerificationError: the numbers are not those of the original.

    Example:
      >>> model = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Conv2D(8, 3)])
      >>> model.export("model", verbose=False)
      >>> report = bd.optimize_saved_model("model", "model_fast")
      >>> len(report.converted)
      1
      >>> fast = tf.saved_model.load("model_fast").signatures["serving_default"]
    """
    options = choose(
        options, precision=precision, max_loss=max_loss, exclude=exclude, verify=verify
    )
    settings = targets.Settings(
        options,
        custom_objects=custom_objects,
        calibration=calibration,
        example=example,
        signatures=signatures,
        on_step=on_step or (lambda words: None),
        on_batch=on_batch,
    )
    return write_saved_model(source, destination, settings, force)


def write_saved_model(source, destination, settings: targets.Settings, force: bool):
    """`optimize_saved_model` by settings; the report."""
    source = folders.check_model(source)
    destination = folders.check_destination(destination, source=source, force=force)
    _, fast, report = rewrite_saved_model(source, settings)
    settings.on_step(f"writing {destination}")
    with folders.replacing(destination) as fresh:
        fast.save(fresh)
    return report


def rewrite_saved_model(source: str | os.PathLike, settings: targets.Settings):
    """What was loaded, the OptimizedModel of it, and the report."""
    if settings.options.is_live:
        raise UserError('weights="live" is for a model in memory: a file keeps the weights it has')
    source = folders.check_model(source)
    settings.on_step(f"reading {source}")
    loaded, with_example = targets.load_signatures(
        source, settings.custom_objects, settings.example
    )
    wanted = select_signatures(loaded.signatures, settings.signatures, source)
    settings = settings._replace(custom_objects=None, signatures=wanted, takes_example=with_example)
    fast = targets.SavedModel(loaded, settings).result()
    names = [name for name in fast.signatures if name in wanted]
    reports = {name: fast.signatures[name].only().report for name in names}
    for function in {id(f): f for f in map(fast.signatures.get, names)}.values():
        main = function.only()
        if function.remark:
            main.report.notes.remove(function.remark)
        if function.remark or with_example:
            taken = targets.sizes(main.concrete)
            main.report.notes.insert(0, f"{TAKES_EXAMPLE}: {taken}")
    kept = tuple(name for name in fast.signatures if name not in reports)
    return loaded, fast, SavedModelReport(reports, kept)


def why_not(loaded, signatures: Iterable[str], node: str, options: Options) -> list[str]:
    """Why rules convert no node of that name in the signatures, a line a node and rule.

    Raises:
      SavedModelError: there is no such node, or it is none that a rule begins with.
    """
    concretes = (loaded.signatures[name] for name in signatures)
    runs = (Rewrite(concrete, options, Bundles()) for concrete in concretes)
    lines = dict.fromkeys(line for run in runs for line in run.why_not(node))
    if not lines:
        raise SavedModelError(
            f"no rule is refused at {node!r}: it is converted, or no rule ends at such a node; "
            "inspect --all lists the names"
        )
    return list(lines)


def select_signatures(available: Iterable[str], wanted: Iterable[str] | None, source) -> list[str]:
    """`wanted`, or all of `available`.

    Raises:
      SavedModelError: a name in `wanted` that `available` lacks.
    """
    available = sorted(available)
    wanted = list(names_of("signatures", wanted or available, SavedModelError))
    for name in wanted:
        if name not in available:
            raise SavedModelError(f"{source}: no signature {name!r}; it has {', '.join(available)}")
    return wanted
