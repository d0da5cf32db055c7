from __future__ import annotations

from pathlib import Path

import pytest

from ondam.errors import EngineError
from ondam.places import Places
from ondam.supervisor.environment import environment_folder
from ondam.supervisor.manifest import EngineFolder, engine_roots, find_engines
from ondam.supervisor.stamp import Stamp
from ondam.supervisor.toolchain import gate, refuse_without_tool


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A machine without any program on its PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Places(tmp_path / "c", tmp_path / "d", tmp_path / "s", tmp_path / "r")


@pytest.fixture
def llama_cpp(tmp_path: Path) -> EngineFolder:
    return find_engines(engine_roots(tmp_path))["llama_cpp"]


def test_what_is_compiled_for_a_card_needs_its_compiler_and_says_what_to_type(
    places: Places, llama_cpp: EngineFolder
) -> None:
    gate(llama_cpp, "cpu", places)
    with pytest.raises(EngineError) as raised:
        gate(llama_cpp, "cuda", places)
    told = raised.value.message("en")
    assert told.text == (
        'The variant "cuda" of llama_cpp is compiled on this machine, and that takes "nvcc", which is not on '
        "the PATH. Nothing was downloaded."
    )
    assert "apt install nvidia-cuda-toolkit" in told.next and "--variant cpu" in told.next
    with pytest.raises(EngineError) as raised:
        gate(llama_cpp, "vulkan", places)
    assert "apt install glslc libvulkan-dev" in raised.value.message("ko").next


def test_with_the_compiler_on_the_path_it_is_compiled(
    places: Places, llama_cpp: EngineFolder, tmp_path: Path
) -> None:
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.touch(mode=0o755)
    gate(llama_cpp, "cuda", places)
    refuse_without_tool(llama_cpp, "cuda")


def test_a_tool_that_nobody_knows_is_named_all_the_same(llama_cpp: EngineFolder) -> None:
    tables = llama_cpp.manifest.environment.model_copy(update={"tools": {"cuda": "no-such-tool"}})
    other = EngineFolder(llama_cpp.path, llama_cpp.manifest.model_copy(update={"environment": tables}))
    with pytest.raises(EngineError) as raised:
        refuse_without_tool(other, "cuda")
    assert raised.value.message("en").next.startswith("Install what brings no-such-tool. ")


def test_what_was_compiled_already_is_copied_without_a_compiler(
    places: Places, llama_cpp: EngineFolder
) -> None:
    root = environment_folder("llama_cpp", places)
    root.mkdir(parents=True)
    wanted = Stamp.wanted(llama_cpp, "cuda")
    Stamp(wanted.packages, "an older program", "cuda").write(root)
    gate(llama_cpp, "cuda", places)
    Stamp(Stamp.wanted(llama_cpp, "cpu").packages, wanted.source, "cpu").write(root)
    with pytest.raises(EngineError):
        gate(llama_cpp, "cuda", places)


def test_each_device_is_compiled_with_a_switch_and_has_a_stamp_of_its_own(
    llama_cpp: EngineFolder,
) -> None:
    environment = llama_cpp.manifest.environment
    switches = {name: environment.variables(name)["SKBUILD_CMAKE_DEFINE"] for name in environment.locks}
    assert switches == {
        "cpu": "LLAVA_BUILD=OFF",
        "cuda": "LLAVA_BUILD=OFF;GGML_CUDA=ON",
        "vulkan": "LLAVA_BUILD=OFF;GGML_VULKAN=ON",
    }
    assert {environment.variables(name)["CMAKE_ARGS"] for name in environment.locks} == {"-DGGML_NATIVE=ON"}
    assert len({Stamp.wanted(llama_cpp, name).packages for name in environment.locks}) == 3
