"""Which of torch's operators a candidate may call in ``forward``, by mode: enforced on what ran, never on words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cudaperf_agent.tasks.modules.spec import ModuleMode

# Memory, views, copies (with change of type or layout) and fills with a constant.
_MEMORY = """
empty empty_like empty_strided new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like new_ones full
full_like new_full fill fill_ zero_ scalar_tensor resize_ set_
view _unsafe_view reshape _reshape_alias as_strided slice select transpose t permute expand squeeze unsqueeze unbind
split split_with_sizes chunk narrow alias detach detach_ view_as_real view_as_complex unfold diagonal movedim swapaxes
lift_fresh lift_fresh_copy flatten unflatten view_copy real expand_as view_as numpy_T
clone copy copy_ _to_copy to contiguous
_local_scalar_dense is_pinned _has_compatible_shallow_copy_type sym_size sym_stride sym_numel sym_storage_offset size
stride record_stream
"""
MEMORY_OPERATORS = frozenset(f"aten::{name}" for name in _MEMORY.split())
# Kernels of torch and of NVIDIA's libraries by the names that a profiler shows; fills and copies are memory's.
_LIBRARY = re.compile(r"at::native::|cublas|cudnn|cutlass|xmma|nvjet|_internal::gemm")
_MEMORY_KERNEL = re.compile(r"FillFunctor|[cC]opy|CatArray|Memcpy|Memset")
_HOST = {"Tensor.tolist": "tolist()", "Tensor.numpy": "numpy()", "Tensor.__array__": "numpy"}


def forbidden_operator(operators: Mapping[str, int], mode: ModuleMode) -> str | None:
    """What a candidate did that its mode forbids, one sentence; `None` if nothing.

    Args:
        operators: How often each operator ran in ``forward``.
        mode: ``pure-cuda`` allows memory, views and copies; ``libraries-allowed`` all operators on the device.
    """
    host = next((shown for name, shown in _HOST.items() if operators.get(name)), None)
    if host:
        return f"forward takes a tensor's elements to the host with {host}"
    if mode == "libraries-allowed":
        return None
    computing = [name for name in operators if name.startswith("aten::") and name not in MEMORY_OPERATORS]
    others = [name for name in operators if not name.startswith(("aten::", "Tensor."))]
    names = [n.removeprefix("aten::") for n in (*computing, *others)]
    if not names:
        return None
    listed = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
    return (
        f"forward computes with torch's own operators ({listed}); in the mode pure-cuda kernels of the file do all of "
        "it (--mode libraries-allowed permits torch's)"
    )


def library_kernel(names: Sequence[str], mode: ModuleMode) -> str | None:
    """What the device's timeline shows that a mode forbids, one sentence; `None` if nothing, or if it shows nothing.

    Args:
        names: Of all that ran on the device in one call.
        mode: As in `forbidden_operator`.
    """
    kernels = [n for n in names if not _MEMORY_KERNEL.search(n)]
    if names and not kernels:
        return "no kernel runs on the device: the result is computed elsewhere"
    if mode == "libraries-allowed":
        return None
    foreign = next((n for n in kernels if _LIBRARY.search(n)), None)
    return f"the kernel {foreign[:120]} of a library runs, which the mode pure-cuda forbids" if foreign else None
