import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        logs = F.log_softmax(x, dim=-1)
        return -(logs.exp() * logs).sum(-1)


def get_inputs():
    return [torch.randn(128, 300)]
