import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, scores, labels):
        return torch.mean(torch.clamp(1 - scores * labels, min=0))


def get_inputs():
    return [torch.randn(5000), torch.randint(0, 2, (5000,)).float() * 2 - 1]
