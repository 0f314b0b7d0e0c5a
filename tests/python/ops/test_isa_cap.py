"""The numbers hold on every instruction set that this machine has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tf_blockdnn as bd

ISAS = ["generic", "avx2", "avx512", "avx512_vnni", "avx512_bf16"]
if "avx_vnni" in Path("/proc/cpuinfo").read_text().split():  # which AVX-512 does not bring along
    ISAS.insert(2, "avx2_vnni")
HERE = Path(__file__).parent


@pytest.mark.parametrize("isa", ISAS)
def test_cap(isa):
    """The tests marked each_isa pass in a process that is capped to `isa`.

    Of these thousands every seventh, for each set another seventh; with TF_BLOCKDNN_FULL_GRID=1
    all. Seven is no length of a list of parameters, so each kind is among them.
    """
    if "TF_BLOCKDNN_MAX_ISA" in os.environ:
        pytest.skip("this process is capped itself")
    if ISAS.index(isa) >= ISAS.index(bd.info()["isa"]):
        pytest.skip("what this process runs, or more than this machine has")
    capped = os.environ | {"TF_BLOCKDNN_MAX_ISA": isa, "EXPECTED_ISA": isa}
    if "TF_BLOCKDNN_FULL_GRID" not in os.environ:
        capped["TF_BLOCKDNN_SAMPLE"] = f"{ISAS.index(isa)}/7"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-m",
        "each_isa",
        str(HERE),
        str(HERE.parent / "gradients"),
        str(HERE.parent / "fuzz" / "test_calls.py"),
    ]
    run = subprocess.run(command, env=capped, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:]


@pytest.mark.each_isa
def test_cap_is_in_force():
    assert bd.info()["isa"] == os.environ.get("EXPECTED_ISA", bd.info()["isa"])
