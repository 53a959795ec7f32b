import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, slope, shift):
        super().__init__()
        self.slope = slope
        self.shift = shift

    def forward(self, x, y):
        a = F.leaky_relu(x, self.slope) + torch.tanh(y) * self.shift
        b = F.elu(a) - F.softplus(y)
        return torch.where(x > y, a, b).clamp(-2.0, 2.0)


def get_inputs():
    return [torch.randn(16, 1000), torch.randn(16, 1000)]


def get_init_inputs():
    return [0.1, 0.5]
