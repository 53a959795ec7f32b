import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x, residual):
        total = x + residual
        return self.norm(total), total


def get_inputs():
    return [torch.randn(64, 768), torch.randn(64, 768)]


def get_init_inputs():
    return [768]
