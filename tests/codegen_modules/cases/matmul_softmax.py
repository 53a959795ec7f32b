import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return torch.softmax(self.head(torch.tanh(x)), dim=-1)


def get_inputs():
    return [torch.randn(50, 64)]


def get_init_inputs():
    return [64, 30]
