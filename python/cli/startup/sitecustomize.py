"""Enables tf_blockdnn in each Python that `tf-blockdnn run` starts, and in those that these start.

The command puts this folder into PYTHONPATH, so Python imports this module before anything else. It
waits until the program has imported TensorFlow, with whatever settings the program wants. Where
something goes wrong the program runs as it is, and a line on stderr says so.
"""

import atexit
import importlib
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.abspath(os.path.join(_FOLDER, *[os.pardir] * 4))  # What holds the package.


def _enable() -> None:
    sys.path.append(_ROOT)  # A script beside which there is no package still finds it.
    try:
        importlib.import_module("tf_blockdnn").enable()
    except Exception as error:
        print(f"tf_blockdnn: not enabled: {error}", file=sys.stderr)
    finally:
        sys.path.remove(_ROOT)


class _AfterTensorFlow:
    """A finder of modules that finds none, but enables once `tensorflow` has been imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                _enable()

            spec.loader.exec_module = exec_module
        return spec


def _finish(file: str) -> None:
    """Says at the end of the program what became of the functions."""
    module = sys.modules.get("tf_blockdnn")
    if module is None or not hasattr(module, "report"):
        print("tf_blockdnn: the program has not imported TensorFlow", file=sys.stderr)
        return
    report = module.report()
    if not file:
        print(f"tf_blockdnn: {report.summary()}", file=sys.stderr)
        return
    try:
        with open(file, "w") as out:
            out.write(report.to_json(2) if file.endswith(".json") else f"{report.summary()}\n")
    except OSError as error:
        print(f"tf_blockdnn: {file}: {error.strerror}", file=sys.stderr)


def _run_hidden() -> None:
    """The environment's own module of this name, which this one hides."""
    module = sys.modules.pop(__name__, None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, module)


sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _FOLDER]
if os.environ.get("TF_BLOCKDNN_ENABLE") == "1":
    sys.meta_path.insert(0, _AfterTensorFlow())
    _process, _, _file = os.environ.get("TF_BLOCKDNN_RUN", "").partition(":")
    if _process == str(os.getpid()):
        atexit.register(_finish, _file)
_run_hidden()
