"""What to do about a module that is refused, by the kind of reason that its process gives."""

from __future__ import annotations

from cudaperf_agent.tasks.modules.spec import DTYPES

_TYPES = f"Tensors may be of {', '.join(DTYPES)}; convert others inside of forward, or outside of the module."
REMEDIES = {
    "import": "The file must import by itself: keep what it needs in it, or install it beside torch.",
    "sandbox": "The file runs in a sandbox, without network, and without files but Python's own: make such data in "
    "get_inputs() or in __init__, and leave downloads, reads and writes out.",
    "class": "Derive it from torch.nn.Module, or name another class with --class NAME.",
    "init": "Let get_init_inputs() return what __init__ takes: [a, b], or [[a], {'name': b}] for named arguments.",
    "init_type": "Let get_init_inputs() return numbers, strings, tensors, and lists, tuples and dicts of them only.",
    "inputs": "Let get_inputs() return a list of forward's positional arguments, e.g. [torch.randn(64, 128)], or name "
    'their types and shapes with --inputs "f32[64,128]".',
    "inputs_flag": 'Name types and shapes that fit in memory, e.g. --inputs "f32[64,128]".',
    "empty": "Give inputs of the sizes that the kernel is to be fast for, at least 1 in each dimension.",
    "forward": "forward must take what get_inputs() returns (or --inputs names) as positional arguments: give others a "
    "default value.",
    "input_type": f"{_TYPES} Other arguments may be numbers, strings, and lists, tuples and dicts of them.",
    "output": f"Let forward return a tensor, or tensors in a tuple, list or dict. {_TYPES}",
    "state": f"Register no such parameters and buffers. {_TYPES}",
    "in_place": "Let forward leave its inputs as they are: write x = x * 2 for x.mul_(2), or work on x.clone().",
    "random": "Take random numbers as an input, or draw them once in __init__; keep no count from call to call.",
    "memory": "Make its inputs smaller.",
    "ended": "Try it in Python by itself: import the file, then Model(*get_init_inputs()).eval()(*get_inputs()), with "
    "the name of your class for Model.",
}
"""A line for the user, by kind; what ``Refused`` of the child names is in it."""
