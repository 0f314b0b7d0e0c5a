"""What the commands share: options, progress, results as JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import json
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Annotated, Literal, get_args

import rich.console
import rich.markup
import rich.progress
import rich.table
import typer

from .. import _launch
from ..errors import UserError
from ..options import Options


def flag(kind, text: str, *names: str, **settings):
    """The annotation of a flag of that type, with a help text; a default of None is not shown.

    Args:
        names: what it is called, where its parameter does not say that.
        settings: as `typer.Option` takes them.
    """
    shows = {} if None.__class__ not in get_args(kind) else {"show_default": False}
    return Annotated[kind, typer.Option(*names, help=text, **shows, **settings)]


def argument(kind, text: str, metavar: str):
    """The annotation of an argument, with a help text and the word that stands for it there."""
    return Annotated[kind, typer.Argument(help=text, metavar=metavar, show_default=False)]


Source = argument(
    pathlib.Path,
    "Folder of a SavedModel, or a file of Keras's (.keras, .h5) or LiteRT's (.tflite).",
    "MODEL",
)
CustomObjects = flag(
    str | None,
    "Python module with the classes and functions that a Keras file needs.",
    metavar="MODULE",
)
Signature = flag(
    list[str] | None,
    "Only this signature; repeat for more. All by default.",
    *("--signature", "-s"),
)
Json = flag(bool, "One JSON object on stdout instead of tables.", "--json")
Verbose = flag(bool, "Show TensorFlow's own messages.", "--verbose", "-v")
CalibrationData = flag(
    pathlib.Path | None,
    "For --precision: typical inputs, as one .npz file or a folder of .npy files.",
    metavar="FOLDER|FILE.npz",
)
Example = flag(
    pathlib.Path | None,
    "Arguments of one call, an array each: sizes that are open become theirs, and --autotune "
    "measures with them.",
    metavar="FILE.npz",
)
InterOp = flag(
    int, "TensorFlow's inter-op threads, for both models; 0 leaves them to TensorFlow.", min=0
)

# A file cannot follow other weights, and `inspect` has --benchmark for what is measured.
_NO_FLAGS = frozenset({"weights", "measure"})


def takes_settings(command: Callable) -> Callable:
    """The command with flags for all that `Settings` say of a model, one for each of `Options`.

    It gets them as `loading`: a context in which TensorFlow is loaded, and which gives Settings.
    """
    flags = [_flag(field) for field in dataclasses.fields(Options) if field.name not in _NO_FLAGS]
    _, *of_model = inspect.signature(_loading, eval_str=True).parameters.values()
    of_command = inspect.signature(command, eval_str=True).parameters.values()

    @functools.wraps(command)
    def run(**arguments):
        chosen = {flag.name: arguments.pop(flag.name) for flag in flags}
        options = Options(**{k: value for k, value in chosen.items() if value is not None})
        named = {flag.name: arguments.pop(flag.name) for flag in of_model}
        return command(**arguments, loading=functools.partial(_loading, options, **named))

    parameters = [*(p for p in of_command if p.name != "loading"), *of_model, *flags]
    run.__signature__ = inspect.Signature(parameters)
    return run


@contextlib.contextmanager
def _loading(
    options: Options,
    signature: Signature = None,
    calibration: CalibrationData = None,
    example: Example = None,
    custom_objects: CustomObjects = None,
    verbose: Verbose = False,
):
    if calibration is not None and not calibration.exists():
        raise UserError(f"--calibration {calibration}: no such file or folder")
    if calibration is not None and options.precision is None:
        raise UserError("--calibration is for --precision, which is not given")
    if options.precision == "int8" and calibration is None:
        raise UserError(
            "--precision int8 needs --calibration: a .npz file or a folder of .npy files"
        )
    with steps(verbose=verbose) as step:
        from ..rewriter import read_arrays
        from ..targets import Settings

        yield Settings(
            options,
            custom_objects=import_objects(custom_objects),
            calibration=calibration,
            example=example and read_arrays(example),
            signatures=signature,
            on_step=step,
            on_batch=step.batch,
        )


def _flag(field: dataclasses.Field) -> inspect.Parameter:
    """The flag of an option: the type, and the first sentence of the documentation."""
    kind, default, kinds = field.type, field.default, get_args(field.type)
    match = re.search(rf"^ +{field.name}: (.+?)\.\s", Options.__doc__ or "", re.M | re.S)
    text, metavar = " ".join(match[1].split()) if match else "", None
    if field.name == "verify":
        kind, default, metavar = float | None, None, "TOLERANCE"
    elif str in kinds or tuple[str, ...] in kinds:
        kind, default, metavar, text = list[str] | None, None, "NAME", f"{text}; repeat for more"
    elif None in kinds:
        kind = Literal[tuple(choice for choice in kinds if choice is not None)] | None
    option = typer.Option(
        f"--{field.name.replace('_', '-')}",
        help=f"{text[:1].upper()}{text[1:]}.",
        metavar=metavar,
        show_default=default is not None,
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, option],
    )


progress_console = rich.console.Console(stderr=True)
result_console = rich.console.Console()


_BAR = 10  # characters


class Steps:
    """What is under way, one line a step: with the time, or, where nobody looks, as it begins.

    Args:
        progress: where the lines stand.
    """

    def __init__(self, progress: rich.progress.Progress):
        self._progress = progress
        self._running: rich.progress.TaskID | None = None
        self._words = ""

    def __call__(self, words: str) -> None:
        """Names the next step."""
        self.finish()
        self._words = rich.markup.escape(words)
        self._say(self._words)
        self._running = self._progress.add_task(self._words, total=None)

    def batch(self, done: int, total: int | None) -> None:
        """Shows how many batches of the step are done, and a bar where all are known."""
        if self._running is None:
            return
        bar, of_all = "", ""
        if total:
            filled = round(_BAR * done / total)
            bar, of_all = f"{'━' * filled}{'╌' * (_BAR - filled)} ", f" of {total}"
        words = f"{self._words}: {bar}{done}{of_all} batches"
        self._progress.update(self._running, description=words)
        if done == total:
            self._say(words)

    def _say(self, words: str) -> None:
        if self._progress.disable:
            progress_console.print(words, soft_wrap=True, highlight=False)

    def finish(self) -> None:
        """Ends the step that is under way."""
        if self._running is not None:
            self._progress.update(self._running, total=1, completed=1)
            self._running = None


@contextlib.contextmanager
def steps(*, verbose: bool, inter_op_threads: int = 0):
    """Loads TensorFlow, then yields what names the step under way and counts batches."""
    columns = (
        rich.progress.SpinnerColumn(finished_text="[green]✓"),
        # Long paths are folded, and leave room for the time.
        rich.progress.TextColumn("{task.description}", table_column=rich.table.Column()),
        rich.progress.TimeElapsedColumn(),
    )
    hidden = not progress_console.is_terminal  # There only the last state would be seen.
    with rich.progress.Progress(*columns, console=progress_console, disable=hidden) as progress:
        step = Steps(progress)
        step("loading TensorFlow")
        _launch.load_tensorflow(verbose=verbose, inter_op_threads=inter_op_threads)
        yield step
        step.finish()


def import_objects(module: str | None) -> dict[str, object]:
    """The classes and functions of a Python module, which may lie in this folder."""
    if module is None:
        return {}
    sys.path.insert(0, "")
    try:
        names = vars(importlib.import_module(module))
    except Exception as error:  # It is the user's code: any type may come.
        raise UserError(f"--custom-objects {module}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove("")
    return {name: thing for name, thing in names.items() if callable(thing)}


def parse_integers(option: str, text: str, what: str = "integers, such as 2,17,5,4") -> list[int]:
    """ "2,17,5,4" as a list."""
    try:
        return [int(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        raise UserError(f"{option} {text}: not {what}") from None


def print_line(text: str, console: rich.console.Console = result_console) -> None:
    """Prints text as it is."""
    console.print(rich.markup.escape(text), soft_wrap=True, highlight=False)


def print_written(path: pathlib.Path, more: str = "") -> None:
    """Says which file or folder holds the result."""
    line = f"written: [bold]{rich.markup.escape(str(path))}[/]{more}"
    result_console.print(line, soft_wrap=True)


def print_warnings(signatures: dict) -> None:
    """Prints what the reports of signatures warn of, a line each."""
    names: dict[str, list[str]] = {}
    for name, report in signatures.items():
        for warning in report.warnings:
            names.setdefault(warning, []).append(name)
    for warning, warned in names.items():
        where = "" if len(warned) == len(signatures) else f"{', '.join(warned)}: "
        print_line(f"tf-blockdnn: warning: {where}{warning}", progress_console)


# Of every answer: goes up when a key is renamed, removed, or means something else.
JSON_FORMAT = 1


def print_json(data: dict) -> None:
    """Prints the answer of a command; docs/cli.md lists the keys."""
    typer.echo(json.dumps({"format": JSON_FORMAT, **data}, indent=2))
