"""What the emulator does not have: found in the text before anything is compiled, with the line and the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudaperf_agent.cuda.emulator.rewrite import line_of
from cudaperf_agent.cuda.emulator.tokens import TokenKind, tokenize


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file cannot be emulated, and its 1-based line."""

    reason: str
    line: int

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


_HEADERS = {
    r"cub/.*": "the CUB library",
    r"thrust/.*": "the Thrust library",
    r"cuda/.*": "libcu++ (<cuda/…>)",
    r"cute/.*|cutlass/.*": "CUTLASS",
    r"cublas.*|cusparse.*|cusolver.*|cufft.*|curand.*|cudnn.*|npp.*|nccl.*": "NVIDIA's libraries",
    r"mma\.h": "tensor-core matrix operations (WMMA)",
    r"cuda_pipeline.*|cooperative_groups/memcpy_async\.h|cudaTypedefs\.h": "asynchronous copies",
    r"cuda_fp8\.h|cuda_fp6\.h|cuda_fp4\.h": "floats of fewer than 16 bits",
    r"texture_.*|surface_.*": "textures and surfaces",
    r"cuda_profiler_api\.h|nvToolsExt\.h|nvtx3/.*|nvrtc\.h|cupti.*": "the profiling and compiler libraries",
    r"omp\.h|pthread\.h|thread|mutex|future|condition_variable": "host threads",
}
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)

_NAMES = {
    "asm": "inline PTX (asm)",
    "__asm__": "inline PTX (asm)",
    "__asm": "inline PTX (asm)",
    "this_grid": "grid-wide synchronisation",
    "grid_group": "grid-wide synchronisation",
    "multi_grid_group": "grid-wide synchronisation",
    "cudaLaunchCooperativeKernel": "cooperative launches",
    "this_cluster": "thread-block clusters",
    "cluster_group": "thread-block clusters",
    "__cluster_dims__": "thread-block clusters",
    "cudaLaunchKernelEx": "cudaLaunchKernelEx",
    "cudaLaunchKernelExC": "cudaLaunchKernelEx",
    "cudaTextureObject_t": "textures",
    "cudaSurfaceObject_t": "surfaces",
    "cudaArray_t": "CUDA arrays",
    "cudaArray": "CUDA arrays",
    "wmma": "tensor-core matrix operations (WMMA)",
    "memcpy_async": "asynchronous copies",
    "__pipeline_memcpy_async": "asynchronous copies",
    "cudaGraph_t": "CUDA graphs",
    "cudaGraphExec_t": "CUDA graphs",
    "cudaStreamBeginCapture": "CUDA graphs",
    "cudaIpcMemHandle_t": "inter-process memory",
    "cuLaunchKernel": "the driver API",
    "cuModuleLoad": "the driver API",
    "cuModuleLoadData": "the driver API",
    "__shfl": "warp operations without a mask (removed from CUDA)",
    "__shfl_down": "warp operations without a mask (removed from CUDA)",
    "__shfl_up": "warp operations without a mask (removed from CUDA)",
    "__shfl_xor": "warp operations without a mask (removed from CUDA)",
    "__ballot": "warp operations without a mask (removed from CUDA)",
    "thread_local": "thread_local variables",
    "cudaHostGetDevicePointer": "mapped host memory",
}
# The checker's own entry points: a candidate that names them would be arguing with its judge.
_RESERVED = re.compile(r"(?:emu_|EMU_|__tsan_|__ubsan_|__wrap_|__real_|cudaperf_emulator)")


def find_unsupported(source: str) -> Refusal | None:
    """The first construct of `source` that the emulator cannot run, `None` if none is known."""
    found = [*_headers(source), *_names(source)]
    return min(found, key=lambda refusal: refusal.line) if found else None


def _headers(source: str) -> list[Refusal]:
    found = []
    for match in _INCLUDE.finditer(source):
        for pattern, what in _HEADERS.items():
            if re.fullmatch(pattern, match.group(1)):
                line = line_of(source, match.start(1))
                found.append(Refusal(f"#include <{match.group(1)}>: the emulator does not have {what}", line))
    return found


def _names(source: str) -> list[Refusal]:
    found = []
    for token in tokenize(source):
        if token.kind is not TokenKind.NAME:
            continue
        if token.text in _NAMES:
            reason = f"{token.text}: the emulator does not have {_NAMES[token.text]}"
        elif _RESERVED.match(token.text):
            reason = f"{token.text}: names of this form belong to the emulator"
        else:
            continue
        found.append(Refusal(reason, line_of(source, token.start)))
    return found
