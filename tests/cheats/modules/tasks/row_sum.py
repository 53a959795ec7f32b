import torch
import torch.nn as nn


class Model(nn.Module):
    """Sums of rows, scaled to be tiny: an absolute tolerance would take zeros for them."""

    def forward(self, x):
        return x.sum(dim=-1) * 1e-7


def get_inputs():
    return [torch.randn(64, 512)]


def get_init_inputs():
    return []
