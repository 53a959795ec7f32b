import torch
import torch.nn as nn


class Model(nn.Module):
    """Computes in float whatever the type of its input, as language models do."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)
        return self.weight * wide.to(x.dtype)


def get_inputs():
    return [torch.randn(2, 30, 256)]


def get_init_inputs():
    return [256]
