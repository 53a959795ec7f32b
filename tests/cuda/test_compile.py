"""nvcc: found, sandboxed, and its messages carry the candidate's lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.cuda.compile import CompileConfig, compile_cuda
from cudaperf_agent.cuda.toolchain import _Place, find_nvcc
from cudaperf_agent.errors import BackendUnavailable, ConfigError
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.sandbox import detect

KERNEL = "__global__ void twice(float *x, int n)\n{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


@pytest.fixture
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_own_cache")
async def test_a_kernel_compiles_and_is_cached() -> None:
    text = KERNEL + "    if (i < n) x[i] *= 2;\n}\n"
    first = await compile_cuda(find_nvcc(), text, "cubin", wrap=detect().wrap)
    assert first.ok, first.diagnostics
    assert first.artefact is not None
    assert first.artefact.read_bytes()[:4] == b"\x7fELF"
    assert [(r.readable, r.registers > 0) for r in first.resources] == [("twice", True)]
    again = await compile_cuda(find_nvcc(), text, "cubin", wrap=detect().wrap)
    assert again.cached
    assert again.artefact == first.artefact
    assert again.resources == first.resources


@pytest.mark.parametrize(
    ("body", "line", "needle"),
    [
        ("    int unused;\n    if (i < n) x[i] *= factor;\n}\n", 5, '"factor" is undefined'),
        ('    if (i < n) x[i] *= 2;\n}\n#include "not_there.h"\n', 6, "not_there.h"),
        ("    __shared__ float big[100000];\n    big[i] = i; x[i] = big[n];\n}\n", None, "too much shared data"),
        ('    asm volatile("bogus.f32 %0;" : "+f"(x[i]));\n}\n', None, "bogus"),
        ("    x[i] = n;\n}\nint caller(float *x) { twice<<<1, 1>>>(x); return 0; }\n", 6, "too few arguments"),
        ("    x[i] = hostonly(i);\n}\n", 4, "hostonly"),
    ],
)
async def test_errors_have_their_line(body: str, line: int | None, needle: str) -> None:
    result = await compile_cuda(find_nvcc(), KERNEL + body, "cubin", wrap=detect().wrap)
    assert not result.ok
    assert result.artefact is None
    first = result.diagnostics[0]
    assert first.severity == "error"
    assert needle in first.message
    assert first.line == line


async def test_lines_behind_the_candidate_are_the_wrappers() -> None:
    text = KERNEL + "    x[i] = n;\n}\n" + "int f() { return twice_device(); }\n"
    result = await compile_cuda(find_nvcc(), text, "cubin", lines=5, wrap=detect().wrap)
    assert result.diagnostics[0].line is None
    assert "generated wrapper" in result.diagnostics[0].message


async def test_a_compile_bomb_ends_at_its_limit() -> None:
    bomb = (
        "template <int A, int B> struct S { static constexpr long v = S<A - 1, 2 * B>::v + S<A - 1, 2 * B + 1>::v; };\n"
        "template <int B> struct S<0, B> { static constexpr long v = B; };\n"
        "__global__ void k(long *x) { *x = S<26, 0>::v; }\n"
    )
    config = CompileConfig(limits=Limits(seconds=2.0, memory=2 << 30))
    result = await compile_cuda(find_nvcc(), bomb, "cubin", config=config, wrap=detect().wrap)
    assert not result.ok
    assert "limit" in result.diagnostics[0].message
    assert result.seconds < 10


async def test_host_files_cannot_be_included() -> None:
    result = await compile_cuda(find_nvcc(), '#include "/etc/passwd"\n' + KERNEL + "}\n", "cubin", wrap=detect().wrap)
    assert not result.ok
    assert "/etc/passwd" in result.diagnostics[0].message
    assert not any("root:" in d.message for d in result.diagnostics)


async def test_a_source_of_megabytes_is_refused_unread() -> None:
    result = await compile_cuda(find_nvcc(), "// filler\n" * 200_000, "cubin")
    assert not result.ok
    assert "longer than" in result.diagnostics[0].message


def test_a_wrong_setting_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_NVCC", str(tmp_path / "nvcc"))
    with pytest.raises(ConfigError):
        find_nvcc()


def test_no_nvcc_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudaperf_agent.cuda.toolchain._places", lambda: iter(()))
    with pytest.raises(BackendUnavailable) as caught:
        find_nvcc()
    assert "cudaperf-agent[nvcc]" in str(caught.value.hint)


def old_nvcc(folder: Path, version: str) -> Path:
    folder.mkdir()
    path = folder / "nvcc"
    path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version[:4]}, V{version}'\n")
    path.chmod(0o755)
    return path


def test_an_old_nvcc_is_refused_by_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, least = old_nvcc(tmp_path / "old", "11.7.99"), old_nvcc(tmp_path / "least", "11.8.89")
    monkeypatch.setenv("CUDAPERF_NVCC", str(old))
    with pytest.raises(ConfigError, match=r"nvcc 11\.7\.99 .* too old: it must be 11\.8 or newer"):
        find_nvcc()
    monkeypatch.setenv("CUDAPERF_NVCC", str(least))
    assert find_nvcc().version == "11.8.89"


def test_an_old_nvcc_on_the_path_gives_way_to_a_newer_one_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = old_nvcc(tmp_path / "old", "9.2.148"), old_nvcc(tmp_path / "new", "12.4.131")
    places = [_Place(old, "PATH"), _Place(new, "CUDA_HOME")]
    monkeypatch.delenv("CUDAPERF_NVCC", raising=False)
    monkeypatch.setattr("cudaperf_agent.cuda.toolchain._places", lambda: iter(places))
    assert find_nvcc().path == new
    places.pop()
    with pytest.raises(BackendUnavailable, match=r"nvcc 9\.2\.148 at .* is too old") as caught:
        find_nvcc()
    assert "cudaperf-agent[nvcc]" in str(caught.value.hint)
