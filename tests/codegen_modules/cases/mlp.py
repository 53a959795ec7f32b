import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.inner = nn.Linear(width, out)

    def forward(self, x):
        return F.gelu(self.inner(x))


class Model(nn.Module):
    """Layers in a list, with a class of its own for each."""

    def __init__(self, sizes):
        super().__init__()
        pairs = [(sizes[k], sizes[k + 1]) for k in range(len(sizes) - 1)]
        self.layers = nn.Sequential(*[Block(a, b) for a, b in pairs])
        self.out = nn.Linear(sizes[-1], 1)

    def forward(self, x):
        return self.out(self.layers(x)).squeeze(-1)


def get_inputs():
    return [torch.randn(60, 32)]


def get_init_inputs():
    return [[32, 64, 48]]
