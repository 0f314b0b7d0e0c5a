"""The README's example runs as it stands, and its numbers agree."""

import pathlib
import re
import subprocess
import sys

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def test_the_example(tmp_path):
    example = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL).group(1)
    result = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    difference, summary = result.stdout.split("\n", 1)
    assert float(difference) < 1e-5
    assert "BlockdnnConv" in summary
    assert (tmp_path / "mobilenet_fast" / "saved_model.pb").exists()
