"""The commands that take no model: layout, info, demo, run."""

from __future__ import annotations

import os
import pathlib
import sys

from .. import _launch
from ..errors import UserError
from .shared import (
    InterOp,
    Json,
    Verbose,
    argument,
    flag,
    parse_integers,
    print_json,
    print_written,
    result_console,
    steps,
)


def layout(
    name: argument(
        str | None,
        "Name of the layout, such as nChw16c; may be left out with --strides.",
        "LAYOUT",
    ) = None,
    dims: flag(str, "Sizes of the logical dimensions: N,C,H,W or O,I,H,W.") = "2,17,5,4",
    strides: flag(str | None, "Elements between neighbours along each dimension.") = None,
    offset: flag(int, "Elements before the first one.", min=0) = 0,
    dtype: flag(str, "Data type.") = "float32",
    svg: flag(pathlib.Path | None, "Write a picture to this file instead.") = None,
    max_rows: flag(int, "Most rows of the table.", min=8) = 32,
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
    pictures: argument(
        pathlib.Path | None,
        "A folder of your pictures, or one picture; a built-in photograph by default.",
        "PICTURES",
    ) = None,
    folder: flag(pathlib.Path, "Where the models and the page go.") = pathlib.Path(
        "tf-blockdnn-demo"
    ),
    runs: flag(int, "Counted runs of each model on the first picture.", min=1) = 10,
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
    program: argument(
        list[str],
        "A Python script, or with -m a module, and its arguments.",
        "PROGRAM [ARGS]...",
    ),
    module: flag(bool, "PROGRAM is a module, as for `python -m`.", "-m") = False,
    report: flag(
        pathlib.Path | None,
        "Where to write what became of each function; all of it where FILE ends with .json. "
        "Otherwise the end of stderr says it.",
        metavar="FILE",
    ) = None,
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
