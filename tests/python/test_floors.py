"""The floors of the Python side: a module imports only modules of the floors below its own.

The C++ floors are kept by the visibility of Bazel packages.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# From the top down. Units of one floor do not know each other; inside a unit anything goes. A unit
# is a folder, or the modules of python/ named here; "showing.memory" is a module of that folder.
APPLICATION = "callbacks cli comparison enable info saved_model showing"
FLOORS = [
    {"tf_blockdnn": "the public face"},
    {"application": APPLICATION},
    {"targets": "targets"},
    {"layers": "layers", "rewriter": "rewriter"},
    {"gradients": "gradients"},
    {"ops": "ops"},
    {"native": "_launch native threads", "graph": "graph", "files": "folders lite metagraph"},
    {"leaves": "errors layout options measuring showing.memory version"},
    {"private": "keras_private tensorflow_private"},
]
UNIT_OF_NAME = {
    name: unit for floor in FLOORS for unit, names in floor.items() for name in names.split()
}
FLOOR_OF_UNIT = {unit: len(FLOORS) - i for i, floor in enumerate(FLOORS) for unit in floor}

SOURCES = sorted((ROOT / "python").rglob("*.py"))
FACE = sorted((ROOT / "tf_blockdnn").rglob("*.py"))


def unit(module: tuple[str, ...]) -> str | None:
    """The unit of a module given by its path inside python/; the package itself has none."""
    if not module:
        return None
    assert module[0] in UNIT_OF_NAME, f"give python/{module[0]} a floor in {Path(__file__).name}"
    return UNIT_OF_NAME.get(".".join(module[:2]), UNIT_OF_NAME[module[0]])


def is_module(path: tuple[str, ...]) -> bool:
    base = ROOT.joinpath("python", *path)
    return base.is_dir() or base.with_suffix(".py").is_file()


def imports(tree: ast.AST, package: tuple[str, ...]):
    """(line, module inside python/) of each relative import, with `package` the importing package;
    (line, None) of each absolute import of this project."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            absolute = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            absolute = [node.module or ""]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - (node.level - 1)]
            module = above + tuple((node.module or "").split(".") if node.module else ())
            for alias in node.names:
                inner = (*module, alias.name)
                yield node.lineno, inner if is_module(inner) else module
            continue
        else:
            continue
        if any(name.split(".")[0] in ("tf_blockdnn", "python") for name in absolute):
            yield node.lineno, None


def violations(source: str, path: Path) -> list[str]:
    """What `source`, as the file at `path` inside python/, imports against the rules."""
    own = unit(path.with_suffix("").parts if path.name != "__init__.py" else path.parent.parts)
    found = []
    for line, module in imports(ast.parse(source), path.parent.parts):
        if module is None:
            found.append(f"python/{path}:{line}: absolute import; inside python/ they are relative")
            continue
        other = unit(module)
        if own is None or other is None or other == own:
            continue
        if FLOOR_OF_UNIT[other] >= FLOOR_OF_UNIT[own]:
            found.append(f"python/{path}:{line}: {own} uses {other}, which is not on a floor below")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_floors_below(path):
    assert violations(path.read_text(), path.relative_to(ROOT / "python")) == []


@pytest.mark.parametrize("path", FACE, ids=lambda p: str(p.relative_to(ROOT)))
def test_public_face_is_thin(path):
    assert len(path.read_text().splitlines()) < 60


def private_names(source: str) -> list[int]:
    """The lines of `source` that reach into `tensorflow.python`, as imports or as attributes."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if not node.level else []
            )
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [f"{node.value.id}.{node.attr}".replace("tf.", "tensorflow.", 1)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = ["tensorflow.python"] if node.value.startswith(("_Z", "TFE_")) else []
        else:
            continue
        if any(f"{name}.".startswith("tensorflow.python.") for name in names):
            lines.append(node.lineno)
    return lines


def words(path: Path) -> set[str]:
    """The attributes and strings of a file that begin with an underscore."""
    nodes = ast.walk(ast.parse(path.read_text()))
    found = (getattr(node, "attr", getattr(node, "value", None)) for node in nodes)
    return {word for word in found if isinstance(word, str) and re.match("_[a-z]", word)}


OF_KERAS = words(ROOT / "python" / "keras_private.py")


@pytest.mark.parametrize("path", SOURCES + FACE, ids=lambda p: str(p.relative_to(ROOT)))
def test_private_names_stand_in_one_file(path):
    lines = private_names(path.read_text())
    assert bool(lines) == (path.name == "tensorflow_private.py"), f"{path}: lines {lines}"
    assert path.name == "keras_private.py" or not OF_KERAS & words(path)


@pytest.mark.parametrize(
    "source",
    [
        "from tensorflow.python.eager import context",
        "from tensorflow import python",
        "def f():\n    import tensorflow.python.framework.ops as ops",
        "tf.python.eager.context",
        "library['_Z18EagerTensor_HandlePK7_object']",
    ],
)
def test_a_private_name_is_seen(source):
    assert len(private_names(source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("graph/view.py", "from .. import native"),
        ("graph/view.py", "from ..native import library"),
        ("ops/conv.py", "from ..rewriter.report import Report"),
        (
            "ops/conv.py",
            "def f():\n    from ..graph.view import GraphView\n    from ..layers import x",
        ),
        ("rewriter/passes/lift.py", "from ... import cli"),
        ("rewriter/passes/lift.py", "import tf_blockdnn"),
        ("rewriter/__init__.py", "from ..layers import Conv2D"),
        ("version.py", "from .cli import main"),
        ("ops/tensor_desc.py", "from ..showing import demo"),
    ],
)
def test_a_violation_is_seen(path, source):
    assert len(violations(source, Path(path))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("ops/conv.py", "from ..native import library\nfrom .arguments import pair"),
        ("rewriter/passes/lift.py", "from ...graph import GraphView\nfrom ..plan import Plan"),
        ("showing/demo.py", "from ..rewriter.report import Report\nfrom .. import saved_model"),
    ],
)
def test_the_floors_below_are_free(path, source):
    assert violations(source, Path(path)) == []
