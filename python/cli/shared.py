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

Source = Annotated[
    pathlib.Path,
    typer.Argument(
        help="Folder of a SavedModel, or a file of Keras's (.keras, .h5) or LiteRT's (.tflite).",
        metavar="MODEL",
        show_default=False,
    ),
]
CustomObjects = Annotated[
    str | None,
    typer.Option(
        "--custom-objects",
        metavar="MODULE",
        help="Python module with the classes and functions that a Keras file needs.",
        show_default=False,
    ),
]
Signature = Annotated[
    list[str] | None,
    typer.Option("--signature", "-s", help="Only this signature; repeat for more. All by default."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of tables.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show TensorFlow's own messages.")]
CalibrationData = Annotated[
    pathlib.Path | None,
    typer.Option(
        "--calibration",
        metavar="FOLDER|FILE.npz",
        help="For --precision: typical inputs, as one .npz file or a folder of .npy files.",
        show_default=False,
    ),
]
Example = Annotated[
    pathlib.Path | None,
    typer.Option(
        "--example",
        metavar="FILE.npz",
        help="Arguments of one call, an array each: sizes that are open become theirs, and "
        "--autotune measures with them.",
        show_default=False,
    ),
]
InterOp = Annotated[
    int,
    typer.Option(
        "--inter-op-threads",
        min=0,
        help="TensorFlow's inter-op threads, for both models; 0 leaves them to TensorFlow.",
    ),
]

# A file cannot follow other weights, and `inspect` has --benchmark for what is measured.
_NO_FLAGS = frozenset({"weights", "measure"})


def takes_options(command: Callable) -> Callable:
    """The command with a flag for each field of Options; it gets them as `options`."""
    flags = [_flag(field) for field in dataclasses.fields(Options) if field.name not in _NO_FLAGS]

    @functools.wraps(command)
    def run(**arguments):
        choices = {flag.name: arguments.pop(flag.name) for flag in flags}
        chosen = {name: value for name, value in choices.items() if value is not None}
        return command(**arguments, options=Options(**chosen))

    parameters = dict(inspect.signature(command, eval_str=True).parameters)
    del parameters["options"]
    run.__signature__ = inspect.Signature([*parameters.values(), *flags])
    return run


def _flag(field: dataclasses.Field) -> inspect.Parameter:
    """The flag of an option: its type, and the first sentence of its documentation."""
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
    """What is under way, one line a step: with its time, or, where nobody looks, as it begins.

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
    """Loads TensorFlow, then yields what names the step under way and counts its batches."""
    columns = (
        rich.progress.SpinnerColumn(finished_text="[green]✓"),
        # Long paths are folded, and leave the time its room.
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
        line = rich.markup.escape(f"tf-blockdnn: warning: {where}{warning}")
        progress_console.print(line, soft_wrap=True, highlight=False)


# Of every answer: goes up when a key is renamed, removed, or means something else.
JSON_FORMAT = 1


def print_json(data: dict) -> None:
    """Prints the answer of a command; docs/cli.md lists its keys."""
    typer.echo(json.dumps({"format": JSON_FORMAT, **data}, indent=2))
