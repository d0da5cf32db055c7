"""An ONNX network of two operators, for what is about sessions and not about what they compute."""

from __future__ import annotations

import base64

MATMUL_RELU = base64.b64decode(
    "CAg6pQEKFQoBeAoBdxIBbRoCbW0iBk1hdE11bAoSCgFtEgF5GgRyZWx1IgRSZWx1EgFnKksIBAgEEAEiQAAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD9CAXdaEwoBeBIOCgwIARIICgIIAQoCCARiEwoBeRIOCgwIARIICgIIAQoCCARCBAoAEA0="
)
"""y = relu(x · ones(4, 4)), ONNX IR 8, opset 13."""
