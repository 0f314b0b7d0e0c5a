"""Commands under test: what they start carries a mark, is found by it, and ends with the test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
_MARK = "TF_BLOCKDNN_SCALE_TEST"
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
# By themselves Ray and Spark listen on the machine's address.
_ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "SPARK_LOCAL_IP": "127.0.0.1"}


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""  # It has ended.


def cpu_seconds(pid: int) -> float:
    """What a process has computed; 0 if it has ended."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK") if fields else 0.0


class Running:
    """`python EXAMPLE ARGUMENTS` and all processes that it starts, wherever these went."""

    def __init__(self, log: Path, example: str, *arguments, environ=()):
        self.mark = uuid.uuid4().hex
        self.log = log
        self._file = log.open("wb")
        environment = os.environ | _QUIET | _ON_LOOPBACK | {_MARK: self.mark} | dict(environ)
        self.process = subprocess.Popen(
            [sys.executable, EXAMPLES / example, *map(str, arguments)],
            env=environment,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def all(self) -> list[int]:
        """The processes that are there, the first one included."""
        mark = f"{_MARK}={self.mark}".encode()
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        alive = [pid for pid in pids if mark in _read(pid, "environ").split(b"\0")]
        return [pid for pid in alive if b") Z " not in _read(pid, "stat")]

    def workers(self) -> list[int]:
        """Those that have the library loaded, the first one apart."""
        return [
            pid
            for pid in self.all()
            if pid != self.process.pid and b"libtf_blockdnn.so" in _read(pid, "maps")
        ]

    def kill_a_worker(self, *, busy: float, seconds: float = 200) -> int:
        """Kills one that has computed for `busy` seconds since it was seen; returns its id."""
        seen: dict[int, float] = {}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, f"it ended too early:\n{self.text}"
            for pid in self.workers():
                if cpu_seconds(pid) - seen.setdefault(pid, cpu_seconds(pid)) >= busy:
                    os.kill(pid, signal.SIGKILL)
                    return pid
            time.sleep(0.05)
        raise AssertionError(f"no worker in {seconds} s:\n{self.text}")

    def wait(self, seconds: float = 240) -> int:
        """The exit code; all processes must have ended soon after."""
        code = self.process.wait(seconds)
        end = time.monotonic() + 20
        while (left := self.all()) and time.monotonic() < end:
            time.sleep(0.2)
        assert not left, [_read(pid, "cmdline") for pid in left]
        return code

    def close(self) -> None:
        """Ends what is still there."""
        self.process.poll()
        for pid in self.all():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._file.close()
