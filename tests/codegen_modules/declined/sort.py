import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sort(x, dim=-1).values * 2


def get_inputs():
    return [torch.randn(8, 32)]
