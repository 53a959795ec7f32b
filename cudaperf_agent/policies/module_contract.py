"""What a candidate for a PyTorch module must be, in words for a model: the form of the file, its rules, the module."""

from __future__ import annotations

from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.modules.spec import InputSpec, ModuleSpec

SYSTEM = """You are an expert CUDA programmer. You replace PyTorch modules by CUDA kernels that are correct first and
fast second. Your file is compiled with nvcc, run on inputs and parameters that you do not see (other sizes, signs,
scales and memory layouts among them), checked for out-of-bounds accesses, uninitialised reads and data races, compared
with the module in double precision, and timed."""
SYSTEM_COMPACT = "You replace PyTorch modules by correct, fast CUDA kernels."

_FORM = '''A Python file of this form:
```python
import torch
from torch import nn

CUDA_SOURCE = r"""
#include <cuda_runtime.h>

__global__ void scale_kernel(const float *x, float *out, long long n, float factor) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * x[i];
}

extern "C" int scale(const float *x, float *out, long long n, float factor, cudaStream_t stream) {
    if (n > 0) scale_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, out, n, factor);
    return cudaGetLastError();
}
"""

kernels = load_cuda(CUDA_SOURCE)


class ModelNew(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        launch(kernels.scale, x, out, x.numel(), float(self.factor))
        return out
```
`load_cuda` and `launch` are there already: do not define them. `launch` passes a tensor as its data pointer, an int as
a 64-bit integer, a float as `float`, and adds the stream as last argument.'''

_RULES = """Rules:
- `ModelNew` takes the constructor arguments of `{name}` and has the same state_dict: same names, same shapes.
- All computing is done by kernels of CUDA_SOURCE, whose parallelism grows with the input. {mode}
- All CUDA is in the one constant CUDA_SOURCE, without placeholders. Launchers are `extern "C"`, launch on `stream` and
  return the first CUDA error, or cudaGetLastError(). They do not synchronise.
- Sizes come from the tensors' shapes at run time. Inputs may be non-contiguous: call .contiguous(), or use strides.
- Inputs are not changed. Every element of an output is written. Results are plain tensors on the inputs' device, with
  the module's types and shapes. Nothing is kept from one call to the next.
- Accumulate in float. Element types to support: {dtypes}. `forward` runs in evaluation mode, without gradients.
- Import nothing but torch and the standard library's math and typing. No Triton, no load_inline."""

_RULES_COMPACT = """`ModelNew` has the constructor and state_dict of `{name}`. {mode} Guard indices; sizes come from
shapes at run time; call .contiguous(). Element types: {dtypes}."""

_MODES = {
    "pure-cuda": "`forward` calls no torch operator but allocation, views and copies.",
    "libraries-allowed": "`forward` may also call torch's operators (matmul, convolution) where they are faster.",
}


def module_contract_text(task: Task, *, compact: bool = False) -> str:
    """The contract section."""
    module = task.module
    assert module is not None
    rules = (_RULES_COMPACT if compact else _RULES).format(
        name=module.class_name, mode=_MODES[module.mode], dtypes=", ".join(module.element_types)
    )
    return f"# What to write\n{_FORM}\n{rules}"


def module_task_text(task: Task, *, compact: bool = False) -> str:
    """The task section: the file, and what a run of it showed."""
    module = task.module
    assert module is not None
    lines = ["# The module to replace", "```python", task.source.strip(), "```"]
    if not module.described or compact:
        return "\n".join(lines)
    lines.append(f"Inputs of `{module.class_name}.forward`:")
    lines += [f"- {_input(i, n, module)}" for n, i in enumerate(module.inputs)]
    outputs = ", ".join(f"{o.name}: {o.dtype}, {o.rank} dimensions" for o in module.outputs)
    lines.append(f"It returns {outputs}.")
    if module.state:
        state = ", ".join(f"`{s.name}` {s.dtype}{list(s.shape)}" for s in module.state)
        lines.append(f"State: {state}.")
    return "\n".join(lines)


def _input(spec: InputSpec, number: int, module: ModuleSpec) -> str:
    if spec.kind == "value":
        return f"{spec.value}, always"
    changing = {place for d in module.dimensions for which, place in d.places if which == number}
    sizes = ", ".join(f"{size} (changes)" if i in changing else str(size) for i, size in enumerate(spec.shape))
    text = f"{spec.dtype}[{sizes}]"
    if spec.low is not None and not spec.open_range:
        text += f", values from {spec.low:g} to {spec.high:g}"
    return text
