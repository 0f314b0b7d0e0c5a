"""The command line in this process, and a small model for it."""

import sys

import pytest
from saved_models import save_tiny

from tf_blockdnn.python import cli


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture
def call(monkeypatch, capfd):
    """Runs the command line in this process: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tf-blockdnn", *map(str, arguments)])
        monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
        with pytest.raises(SystemExit) as caught:
            cli.main()
            sys.exit(0)
        captured = capfd.readouterr()
        return caught.value.code, captured.out, captured.err

    return run
