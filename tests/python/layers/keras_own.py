"""Keras's own tests of its layers, with the layers of bd.layers in the place of Keras's.

    python tests/python/layers/keras_own.py [FILE ...]

runs the tests that lie in Keras's wheel (those of all layers, or of the files whose names are
given, such as dense_test.py) twice, with Keras's classes and with ours, and fails if one fails with
ours that passes with Keras's. Seven files of preprocessing layers, none of which are ours, need the
package grain and are skipped without it. As a plugin of pytest it puts our classes there.
"""

import json
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

# What cannot apply to another class by definition: name of a test -> the reason.
NOT_OURS = {}
_OUTCOMES = {}


def pytest_configure(config):
    """Puts our classes in the place of Keras's, unless the child is to run with Keras's."""
    # Keras's wheel lacks its conftest.py, from which flatten_test.py imports this.
    sys.modules["conftest"] = types.SimpleNamespace(skip_if_backend=lambda *_: lambda test: test)
    if os.environ["TF_BLOCKDNN_KERAS_LAYERS"] == "keras":
        return
    import keras

    import tf_blockdnn as bd

    for name in bd.layers.__all__:
        theirs, ours = getattr(keras.layers, name, None), getattr(bd.layers, name)
        if theirs is None:
            continue
        # Also under its other names, such as MaxPool2D and Convolution2D.
        home = sys.modules[theirs.__module__]
        for module in (keras.layers, keras.src.layers, home):
            for key in [key for key, value in vars(module).items() if value is theirs]:
                setattr(module, key, ours)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        _OUTCOMES[report.nodeid.split("keras/src/layers/")[-1]] = report.outcome


def pytest_sessionfinish(session):
    Path(os.environ["TF_BLOCKDNN_OUTCOMES"]).write_text(json.dumps(_OUTCOMES))


def outcomes(layers: str, files, log=None) -> dict:
    """Name of a test -> its outcome with "keras" layers or with "ours"."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "outcomes.json"
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
            ),
            "TF_BLOCKDNN_KERAS_LAYERS": layers,
            "TF_BLOCKDNN_OUTCOMES": str(written),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        options = "--continue-on-collection-errors -p no:cacheprovider -q --tb=short -W ignore"
        command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", Path(__file__).stem]
        command += [*options.split(), *map(str, files)]
        subprocess.run(command, env=environment, cwd=folder, stdout=log, stderr=log, check=False)
        if not written.exists():
            raise RuntimeError(f"Keras's tests did not run with {layers} layers: see above")
        return json.loads(written.read_text())


def files_of(names) -> list:
    """Paths of Keras's tests of layers, of all without names."""
    import keras

    found = sorted((Path(keras.__file__).parent / "src" / "layers").rglob("*_test.py"))
    found = [path for path in found if not names or path.name in names]
    if not found or len({path.name for path in found}) < len(set(names)):
        raise FileNotFoundError(f"Keras's wheel has no such tests: {', '.join(names)}")
    return found


def worse(theirs: dict, ours: dict) -> list:
    """Tests that pass with Keras's layers and not with ours."""
    return [
        name
        for name, outcome in theirs.items()
        if outcome == "passed" and ours.get(name) != "passed" and name not in NOT_OURS
    ]


def main(names) -> int:
    files = files_of(names)
    theirs, ours = outcomes("keras", files, sys.stderr), outcomes("ours", files, sys.stderr)
    failing = worse(theirs, ours)
    for name in failing:
        print(f"{name}: {ours.get(name, 'not run')} with our layers")
    count = sum(outcome == "passed" for outcome in theirs.values())
    print(f"{count - len(failing)} of {count} tests that pass with Keras's layers pass with ours")
    for name, reason in NOT_OURS.items():
        print(f"{name} is left out: {reason}")
    return 1 if failing or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
