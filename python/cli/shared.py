"""What the commands share: options, progress, results as JSON."""

from __future__ import annotations

import contextlib
import importlib
import json
import pathlib
import re
import sys
from typing import Annotated

import rich.console
import rich.markup
import rich.progress
import typer

from .. import _launch
from ..errors import UserError

Source = Annotated[
    pathlib.Path,
    typer.Argument(
        help="Folder of a SavedModel, or a file that Keras wrote (.keras, .h5).",
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
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="NAME",
        help="Leave this node or layer alone; a name or regular expression; repeat for more.",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME",
        help="Convert only what begins at this node or layer; repeat for more.",
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail where a part of the rewriter does.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of tables.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show TensorFlow's own messages.")]

InterOp = Annotated[
    int,
    typer.Option(
        "--inter-op-threads",
        min=0,
        help="TensorFlow's setting, for both sides; 0 leaves it to TensorFlow.",
    ),
]

progress_console = rich.console.Console(stderr=True)
result_console = rich.console.Console()


@contextlib.contextmanager
def steps(*, verbose: bool, inter_op_threads: int = 0):
    """Loads TensorFlow, then yields a function that names the step under way, timing each."""
    columns = (
        rich.progress.SpinnerColumn(finished_text="[green]✓"),
        rich.progress.TextColumn("{task.description}"),
        rich.progress.TimeElapsedColumn(),
    )
    with rich.progress.Progress(*columns, console=progress_console) as progress:
        running: list[rich.progress.TaskID] = []

        def finish() -> None:
            if running:
                progress.update(running.pop(), total=1, completed=1)

        def step(words: str) -> None:
            finish()
            running.append(progress.add_task(rich.markup.escape(words), total=None))

        step("loading TensorFlow")
        _launch.load_tensorflow(verbose=verbose, inter_op_threads=inter_op_threads)
        yield step
        finish()


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


def check_names(option: str, names: list[str] | None) -> None:
    """Raises UserError if one of the names is no regular expression."""
    for name in names or ():
        try:
            re.compile(name)
        except re.error as error:
            raise UserError(f"{option} {name}: not a regular expression: {error}") from None


# Of every answer: goes up when a key is renamed, removed, or means something else.
JSON_FORMAT = 1


def print_json(data: dict) -> None:
    """Prints the answer of a command; docs/cli.md lists its keys."""
    typer.echo(json.dumps({"format": JSON_FORMAT, **data}, indent=2))
