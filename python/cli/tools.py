"""The commands that take no model: layout, info, demo, run."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Annotated

import typer

from .. import _launch
from ..errors import UserError
from .shared import (
    InterOp,
    Json,
    Verbose,
    parse_integers,
    print_json,
    print_written,
    result_console,
    steps,
)


def layout(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of the layout, such as nChw16c; may be left out with --strides.",
            metavar="LAYOUT",
            show_default=False,
        ),
    ] = None,
    dims: Annotated[
        str, typer.Option(help="Sizes of the logical dimensions: N,C,H,W or O,I,H,W.")
    ] = "2,17,5,4",
    strides: Annotated[
        str | None,
        typer.Option(help="Elements between neighbours along each dimension.", show_default=False),
    ] = None,
    offset: Annotated[int, typer.Option(min=0, help="Elements before the first one.")] = 0,
    dtype: Annotated[str, typer.Option(help="Data type.")] = "float32",
    svg: Annotated[
        pathlib.Path | None,
        typer.Option(help="Write a picture to this file instead.", show_default=False),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=8, help="Most rows of the table.")] = 32,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Draw where the elements of a tensor lie in memory, its padded tail included."""
    sizes = parse_integers("--dims", dims)
    steps_between = None if strides is None else parse_integers("--strides", strides)
    if name is None and steps_between is None:
        raise UserError("layout: name a LAYOUT, such as nChw16c, or give --strides")
    with steps(verbose=verbose):
        from ..ops.tensor_desc import TensorDesc
    try:
        desc = TensorDesc(sizes, dtype, name, strides=steps_between, offset=offset)
        if svg is not None:
            desc.draw(svg, max_rows=max_rows)
    except ValueError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{svg}: {error.strerror or error}") from None
    if as_json:
        facts = "layout dims padded_dims strides shape size size_bytes is_dense".split()
        print_json({"dtype": desc.dtype.name} | {fact: getattr(desc, fact) for fact in facts})
    elif svg is not None:
        print_written(svg)
    else:
        desc.draw(max_rows=max_rows, console=result_console)


def info(as_json: Json = False, verbose: Verbose = False) -> None:
    """Show versions, the instruction set in use and the number of threads."""
    with steps(verbose=verbose):
        from ..info import info as collect

        facts = collect()
    if as_json:
        print_json(facts)
        return
    from . import tables

    result_console.print(tables.facts(facts), soft_wrap=True)


def demo(
    pictures: Annotated[
        pathlib.Path | None,
        typer.Argument(
            help="A folder of your pictures, or one picture; a built-in photograph by default.",
            metavar="PICTURES",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        pathlib.Path, typer.Option(help="Where the models and the page go.")
    ] = pathlib.Path("tf-blockdnn-demo"),
    runs: Annotated[
        int, typer.Option(min=1, help="Counted runs of each model on the first picture.")
    ] = 10,
    inter_op_threads: InterOp = 1,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Find the edges in your pictures, with a trained network before and after optimising it.

    Writes one page with a slider between both results, and their times.
    """
    if pictures is not None and not pictures.exists():
        raise UserError(f"{pictures}: no such file or folder")
    with steps(verbose=verbose, inter_op_threads=inter_op_threads) as step:
        from ..showing.demo import run_demo

        result = run_demo(folder, pictures=pictures, runs=runs, on_step=step)
    if as_json:
        print_json(result.to_json())
        return
    from . import tables

    result_console.print(tables.comparison(result.pictures[0].comparison))
    result_console.print(tables.what_next(result, command=_launch.command()), soft_wrap=True)


def run(
    program: Annotated[
        list[str],
        typer.Argument(
            help="A Python script, or with -m a module, and its arguments.",
            metavar="PROGRAM [ARGS]...",
            show_default=False,
        ),
    ],
    module: Annotated[
        bool, typer.Option("-m", help="PROGRAM is a module, as for `python -m`.")
    ] = False,
    report: Annotated[
        pathlib.Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write what became of each function; all of it where FILE ends with "
            ".json. Otherwise the end of stderr says it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a Python program with all that TensorFlow computes for it made faster.

    The program, and those that it starts, run as they are, with tf_blockdnn.enable() after their
    `import tensorflow`. Nothing is written but what the program writes.
    """
    if not module and not pathlib.Path(program[0]).exists():
        raise UserError(f"{program[0]}: no such script; -m takes a module")
    file = ""
    if report is not None:
        file = os.fspath(report.resolve())
        if not report.resolve().parent.is_dir():
            raise UserError(f"--report {report}: no such folder {report.resolve().parent}")
    startup = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")
    paths = [startup, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.environ["TF_BLOCKDNN_ENABLE"] = "1"
    os.environ["TF_BLOCKDNN_RUN"] = f"{os.getpid()}:{file}"  # The same process goes on.
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *["-m"][: int(module)], *program])
