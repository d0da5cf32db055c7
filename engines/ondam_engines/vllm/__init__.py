"""The ``vllm`` engine: vLLM behind a tiny adapter process."""
