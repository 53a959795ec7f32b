import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width: int, out: int):
        super().__init__()
        self.layer = nn.Linear(width, out)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(32, 40)]


def get_init_inputs():
    return [40, 24]
