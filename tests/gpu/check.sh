#!/usr/bin/env bash
# What only a machine with an NVIDIA card can show, in one run of under eight minutes, without a network.
# How to run it, what it needs and what it says: docs/gpu-check.md.
# Exit codes: 0 held, 1 differs, 2 no GPU, 3 unfinished.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=.venv/bin/python
[ -x "$python" ] || python=python3
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec "$python" -m tests.gpu.check "$@"
