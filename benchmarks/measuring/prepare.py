"""Sets up peers' environments, SavedModels and peers' files, each of them once.

Everything lies under build/benchmarks/: venvs/ (one for each requirements-NAME.txt), models/,
formats/. A step that failed is not tried again in the same run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable

import numpy as np
from formats import FORMATS, SAVED_MODEL
from models import TRANSFORMERS, ZOO

HERE = pathlib.Path(__file__).resolve().parents[1]
BUILD = HERE.parent / "build" / "benchmarks"
CALIBRATING = 16  # Batches of ids.


class SetUpError(RuntimeError):
    """A step failed; the message is the last thing that its program said."""


class Workshop:
    """Makes things on demand.

    Args:
      say: called with a line for every step begun.
      hint: called with what a running step says about itself.
    """

    def __init__(self, say: Callable[[str], None], hint: Callable[[str], None]):
        self._say = say
        self._hint = hint
        self._failed: dict[pathlib.Path, SetUpError] = {}

    def interpreter(self, name: str | None) -> str:
        """The Python that has requirements-`name`.txt; None: the one that runs this."""
        if name is None:
            return sys.executable
        folder = BUILD / "venvs" / name
        python = folder / "bin" / "python"
        requirements = HERE / f"requirements-{name}.txt"
        done = folder / "requirements-done"

        def install() -> None:
            self._say(f"environment {name}: pip install -r benchmarks/{requirements.name}")
            venv.create(folder, with_pip=True, clear=True)
            pip = [python, "-m", "pip", "--disable-pip-version-check", "install"]
            self.run([*pip, "--progress-bar", "off", "-r", requirements], folder)
            done.write_text(requirements.read_text())

        if not (done.exists() and done.read_text() == requirements.read_text()):
            self._once(folder, install)
        return str(python)

    def model(self, network: str, form: str, batch: int) -> pathlib.Path:
        """The network as a SavedModel, or in one of `FORMATS` for that batch."""
        return (
            self._saved_model(network) if form == SAVED_MODEL else self._file(network, form, batch)
        )

    def _saved_model(self, network: str) -> pathlib.Path:
        folder = BUILD / "models" / network

        def write(target: pathlib.Path) -> None:
            if ZOO[network].builder == TRANSFORMERS and not importlib.util.find_spec("keras_hub"):
                raise SetUpError(
                    f"{ZOO[network].title} is KerasHub's, which is not installed: "
                    "pip install -r benchmarks/requirements-kerashub.txt"
                )
            self._say(f"{ZOO[network].title}: SavedModel")
            self.run([sys.executable, "-m", "models", network, target], folder)

        builders = [HERE / "models" / "__init__.py", HERE / "models" / f"{ZOO[network].builder}.py"]
        return self._made(folder, builders, write)

    def _file(self, network: str, form: str, batch: int) -> pathlib.Path:
        row = FORMATS[form]
        source = self.model(network, row.source, batch)
        mark = f"-{batch}" if row.per_batch else ""
        path = BUILD / "formats" / form / f"{network}{mark}{row.suffix}"
        shapes = {name: value.shape for name, value in ZOO[network].example(batch).items()}

        def write(target: pathlib.Path) -> None:
            python = self.interpreter(row.venv)
            self._say(f"{ZOO[network].title}{f', batch {batch}' if mark else ''}: {form}")
            command = [python, "-m", "formats", form, source, json.dumps(shapes), target]
            if ZOO[network].words:  # `formats` makes up pictures and noise, but no ids.
                ids = path.with_name(f"{network}-ids.npz")
                np.savez(ids, **ZOO[network].example(CALIBRATING * batch))
                command.append(ids)
            self.run(command, path)

        return self._made(path, [source, HERE / "formats" / f"{row.writer}.py"], write)

    def converted(
        self, folder: pathlib.Path, form: str, shapes: dict, data: pathlib.Path
    ) -> pathlib.Path:
        """The SavedModel `folder`, not one of the zoo, in one of `FORMATS`, written beside it.

        Args:
          shapes: of the inputs by name.
          data: what calibrates, as `formats` takes it.
        """
        if form == SAVED_MODEL:
            return folder
        row = FORMATS[form]
        source = self.converted(folder, row.source, shapes, data)
        path = folder.with_name(f"{form}{row.suffix}")
        if not path.exists():
            python = self.interpreter(row.venv)
            self.run([python, "-m", "formats", form, source, json.dumps(shapes), path, data], path)
        return path

    def _made(self, path: pathlib.Path, sources: list[pathlib.Path], write) -> pathlib.Path:
        """Returns `path`, written anew if a source is newer, and whole or not at all."""
        newest = max(source.stat().st_mtime for source in sources)
        if path.exists() and path.stat().st_mtime >= newest:
            return path

        def make() -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f"unfinished-{path.name}")
            for old in (path, unfinished):
                shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
            write(unfinished)
            unfinished.rename(path)
            os.utime(path)

        self._once(path, make)
        return path

    def _once(self, path: pathlib.Path, make: Callable[[], None]) -> None:
        if path in self._failed:
            raise self._failed[path]
        try:
            make()
        except SetUpError as error:
            self._failed[path] = error
            raise

    def run(self, command: list, path: pathlib.Path) -> None:
        """Runs a program in this folder and copies all that it says to a log beside `path`."""
        log = path.with_name(f"{path.name}.log")
        line = ""
        with (
            log.open("w") as file,
            subprocess.Popen(
                command,
                cwd=HERE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
            ) as process,
        ):
            for text in process.stdout:
                file.write(text)
                line = text.strip() or line
                self._hint(line)
        if process.returncode:
            where = os.path.relpath(log, HERE.parent)  # Pages keep it.
            raise SetUpError(f"{line or f'exit code {process.returncode}'} (more in {where})")
