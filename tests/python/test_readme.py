"""The README's examples run as they stand, and their numbers agree."""

import pathlib
import re
import subprocess
import sys

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def test_the_examples(tmp_path):
    code = "\n".join(re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL))
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    difference, summary = result.stdout.split("\n", 1)
    assert float(difference) < 1e-5
    assert "BlockdnnConv" in summary
    assert (tmp_path / "mobilenet_fast" / "saved_model.pb").exists()


def test_the_first_result_takes_five_lines():
    first = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL).group(1)
    assert len([line for line in first.splitlines() if line]) <= 5
