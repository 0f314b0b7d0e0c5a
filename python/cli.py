"""The command line, `tf-blockdnn`.

Results go to stdout (tables, or one JSON object with --json), progress and errors to stderr. Exit 0
when all went well, 2 with one line when the user can put it right.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pathlib
import signal
import sys
from typing import Annotated, Literal

import rich.console
import rich.markup
import rich.progress
import typer

from . import _launch, folders
from .errors import UserError, VerificationError
from .version import VERSION

app = typer.Typer(
    name="tf-blockdnn",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Makes TensorFlow models faster on CPU, with the same inputs and outputs.",
)

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


def main() -> None:
    """Runs the command line and turns what the user can put right into one line and exit 2."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app()
    except (UserError, ImportError, VerificationError) as error:
        print(f"tf-blockdnn: error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)


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


def _import_objects(module: str | None) -> dict[str, object]:
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


def _print_json(data: dict) -> None:
    typer.echo(json.dumps(data, indent=2))


@app.command()
def optimize(
    source: Source,
    destination: Annotated[
        pathlib.Path, typer.Argument(help="Folder to write.", metavar="OUT", show_default=False)
    ],
    force: Annotated[
        bool,
        typer.Option(
            "--force", "-f", help="Replace the SavedModel in OUT; other files there are kept."
        ),
    ] = False,
    signature: Signature = None,
    algorithm: Annotated[
        Literal["auto", "direct", "winograd", "paired"], typer.Option(help="Of every convolution.")
    ] = "auto",
    memory: Annotated[
        Literal["normal", "low"],
        typer.Option(help="How much packed weights may take: three times the weights, or 9/8."),
    ] = "normal",
    verify: Annotated[
        Literal["structure", "numbers"],
        typer.Option(help="numbers: also run both on a random input and compare."),
    ] = "structure",
    tolerance: Annotated[
        float, typer.Option(help="For --verify numbers: difference relative to the largest output.")
    ] = 1e-4,
    scratchpad_mode: Annotated[
        Literal["user", "library"],
        typer.Option(help="Whose temporary memory: TensorFlow's, or buffers kept with each op."),
    ] = "user",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail where a part of the rewriter does.")
    ] = False,
    custom_objects: CustomObjects = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write to OUT the model as a SavedModel with every signature made faster.

    Load the result with tf.saved_model.load(OUT) after `import tf_blockdnn`.
    """
    folders.check_model(source)
    folders.check_destination(destination, source=source, force=force)
    with steps(verbose=verbose) as step:
        from .saved_model import optimize_saved_model

        report = optimize_saved_model(
            source,
            destination,
            signatures=signature,
            algorithm=algorithm,
            memory=memory,
            scratchpad_mode=scratchpad_mode,
            verify=verify,
            tolerance=tolerance,
            strict=strict or None,
            custom_objects=_import_objects(custom_objects),
            force=force,
            on_step=step,
        )
    if as_json:
        _print_json(
            {"source": str(source), "destination": str(destination), **json.loads(report.to_json())}
        )
        return
    from . import tables

    result_console.print(tables.signatures(report))
    result_console.print(
        f"written: [bold]{rich.markup.escape(str(destination))}[/]   "
        "(load it after [bold]import tf_blockdnn[/])",
        soft_wrap=True,
    )


@app.command()
def inspect(
    source: Source,
    signature: Signature = None,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Every op and node, not only what fits a screen.")
    ] = False,
    html: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Write a page to this file: the graph before and after.", show_default=False
        ),
    ] = None,
    custom_objects: CustomObjects = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what would be converted and what would stay as it is, and why."""
    folders.check_model(source)
    if html is not None and not html.resolve().parent.is_dir():
        raise UserError(f"--html {html}: no such folder {html.resolve().parent}")
    with steps(verbose=verbose) as step:
        from .saved_model import rewrite_saved_model

        loaded, functions, report = rewrite_saved_model(
            source,
            signatures=signature,
            custom_objects=_import_objects(custom_objects),
            on_step=step,
        )
        if html is not None:
            from .page import write_page

            step(f"writing {html}")
            write_page(html, source.name, loaded.signatures, functions, report)
    if as_json:
        _print_json({"source": str(source), **json.loads(report.to_json())})
        return
    from . import tables

    result_console.print(tables.summary(report, all=everything), soft_wrap=True)


def _parse_size(text: str) -> tuple[int, int]:
    """ "H,W" or one number for both, as (H, W)."""
    try:
        sizes = [int(part) for part in text.replace("x", ",").split(",")]
        height, width = sizes * 2 if len(sizes) == 1 else sizes
    except ValueError:
        raise UserError(f"--size {text}: not H,W, such as 480,640") from None
    if height < 1 or width < 1:
        raise UserError(f"--size {text}: both must be at least 1")
    return height, width


@app.command()
def benchmark(
    source: Source,
    batch: Annotated[
        int, typer.Option(min=1, help="Batch, where the signature leaves it open.")
    ] = 1,
    size: Annotated[
        str, typer.Option(help="H,W of image inputs, where the signature leaves them open.")
    ] = "224,224",
    runs: Annotated[int, typer.Option(min=1, help="Counted runs of each.")] = 30,
    signature: Annotated[
        str | None,
        typer.Option(
            "--signature", "-s", help="Which one; serving_default, or the only one, by default."
        ),
    ] = None,
    inter_op_threads: InterOp = 1,
    custom_objects: CustomObjects = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Measure a model as it is against itself optimised, turn by turn in one process.

    Inputs are made up: standard normal floats, zeros for whole numbers.
    """
    folders.check_model(source)
    height_width = _parse_size(size)
    with steps(verbose=verbose, inter_op_threads=inter_op_threads) as step:
        from .comparison import compare_saved_model

        result = compare_saved_model(
            source,
            signature=signature,
            batch=batch,
            size=height_width,
            runs=runs,
            custom_objects=_import_objects(custom_objects),
            on_step=step,
        )
    if as_json:
        _print_json({"source": str(source), **result.to_json()})
        return
    from . import tables

    result_console.print(tables.comparison(result))


def _parse_integers(option: str, text: str) -> list[int]:
    """ "2,17,5,4" as a list."""
    try:
        return [int(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        raise UserError(f"{option} {text}: not integers, such as 2,17,5,4") from None


@app.command()
def layout(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Of the layout, such as nChw16c; may be left out with --strides.",
            metavar="LAYOUT",
            show_default=False,
        ),
    ] = None,
    dims: Annotated[
        str, typer.Option(help="Sizes of the logical dimensions: N,C,H,W or O,I,H,W.")
    ] = "2,17,5,4",
    strides: Annotated[
        str | None,
        typer.Option(help="Elements between neighbours of each dimension.", show_default=False),
    ] = None,
    offset: Annotated[int, typer.Option(min=0, help="Elements before the first one.")] = 0,
    dtype: Annotated[str, typer.Option(help="Data type.")] = "float32",
    png: Annotated[
        pathlib.Path | None,
        typer.Option(help="Write a picture to this file instead.", show_default=False),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=8, help="Rows of each table.")] = 32,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Draw where the elements of a tensor lie in memory, its padded tail included."""
    sizes = _parse_integers("--dims", dims)
    steps_between = None if strides is None else _parse_integers("--strides", strides)
    if name is None and steps_between is None:
        raise UserError("layout: name a LAYOUT, such as nChw16c, or give --strides")
    with steps(verbose=verbose):
        from .ops.tensor_desc import TensorDesc
    try:
        desc = TensorDesc(sizes, dtype, name, strides=steps_between, offset=offset)
        if png is not None:
            desc.draw(png, max_rows=max_rows)
    except ValueError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{png}: {error.strerror or error}") from None
    if as_json:
        facts = "layout dims padded_dims strides shape size size_bytes is_dense".split()
        _print_json({"dtype": desc.dtype.name} | {fact: getattr(desc, fact) for fact in facts})
    elif png is None:
        desc.draw(max_rows=max_rows, console=result_console)


@app.command()
def info(as_json: Json = False, verbose: Verbose = False) -> None:
    """Show versions, the instruction set in use and the number of threads."""
    with steps(verbose=verbose):
        from .info import info as collect

        facts = collect()
    if as_json:
        _print_json(facts)
        return
    from . import tables

    result_console.print(tables.facts(facts), soft_wrap=True)


@app.command()
def demo(
    folder: Annotated[
        pathlib.Path, typer.Option(help="Where the models and the picture go.")
    ] = pathlib.Path("tf-blockdnn-demo"),
    image: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="A picture of yours instead of the built-in photograph.", show_default=False
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Counted runs of each.")] = 10,
    inter_op_threads: InterOp = 1,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Find the edges in a photograph, with a trained network before and after optimising it."""
    if image is not None and not image.is_file():
        raise UserError(f"{image}: no such file")
    with steps(verbose=verbose, inter_op_threads=inter_op_threads) as step:
        from .demo import run_demo

        result = run_demo(folder, image=image, runs=runs, on_step=step)
    if as_json:
        _print_json(result.to_json())
        return
    from . import tables

    result_console.print(tables.comparison(result.comparison))
    result_console.print(tables.what_next(result, command=_launch.command()), soft_wrap=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tf-blockdnn {VERSION}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
):
    del version  # Its callback has done the work.
