from __future__ import annotations

import subprocess
import sys


def test_onnxruntime_is_told_not_to_report_before_it_can_be_loaded() -> None:
    script = "import ondam, os, sys; print(os.environ['ORT_DISABLE_TELEMETRY'], 'onnxruntime' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["1", "False"]
