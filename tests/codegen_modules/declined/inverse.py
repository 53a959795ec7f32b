import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.inv(x @ x.transpose(-1, -2) + torch.eye(x.shape[-2]))


def get_inputs():
    return [torch.randn(4, 8, 8)]
