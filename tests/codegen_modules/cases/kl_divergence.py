import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, y):
        return F.kl_div(F.log_softmax(x, dim=-1), F.softmax(y, dim=-1), reduction="batchmean")


def get_inputs():
    return [torch.randn(64, 120), torch.randn(64, 120)]
