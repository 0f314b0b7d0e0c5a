"""Programs in processes of their own, in which TensorFlow is imported and has done nothing yet.

Dozens of tests need such a process, and importing TensorFlow is most of what it costs. One process
imports it and waits; each program runs in a fork of that, with the environment that it asks for.
"""

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile

# Variables that TensorFlow reads when it is imported: each choice has a process that waits.
_AT_IMPORT = ("TF_ENABLE_ONEDNN_OPTS", "TF_USE_LEGACY_KERAS", "KERAS_BACKEND")

_WAITER = """
import json, os, sys
import tensorflow

def forked():
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            return json.loads(line)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

task = forked()
if task:
    os.environ.clear()
    os.environ.update(task["environ"])
    for to, name, flags in ((0, os.devnull, os.O_RDONLY), (1, task["out"], os.O_WRONLY),
                            (2, task["err"], os.O_WRONLY)):
        os.dup2(os.open(name, flags), to)
    sys.argv[:] = ["-c", *task["arguments"]]
    for name in list(globals()):
        if not name.startswith("__") and name != "task":
            del globals()[name]
    exec(compile(globals().pop("task")["program"], "<program>", "exec"), globals())
"""


@functools.cache
def _waiter(at_import: tuple) -> subprocess.Popen:
    environ = {k: v for k, v in os.environ.items() if k not in _AT_IMPORT} | dict(at_import)
    command = [sys.executable, "-c", _WAITER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    waiter = subprocess.Popen(command, env=environ, text=True, **pipes)
    atexit.register(waiter.kill)
    return waiter


def run(program: str, *arguments, environ=None, check=True) -> subprocess.CompletedProcess:
    """Runs a program with arguments; `environ` is its whole environment (by default this one).

    Gives its exit code, output and errors; fails when the code is not zero and `check` holds.
    """
    environ = dict(os.environ if environ is None else environ)
    waiter = _waiter(tuple((name, environ[name]) for name in _AT_IMPORT if name in environ))
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        task = {"program": program, "arguments": [str(a) for a in arguments], "environ": environ}
        print(json.dumps(task | {"out": out.name, "err": err.name}), file=waiter.stdin, flush=True)
        code = int(waiter.stdout.readline())
        done = subprocess.CompletedProcess("program", code, out.read(), err.read())
    assert not check or code == 0, done.stderr
    return done
