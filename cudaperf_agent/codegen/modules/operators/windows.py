"""Pooling and convolution: sums and maxima over windows of a padded input."""

from __future__ import annotations

import math

from cudaperf_agent.codegen.modules.build import constant, permuted, point, reduced, reshaped, size_value
from cudaperf_agent.codegen.modules.graph import Call, rule
from cudaperf_agent.codegen.modules.operators.reductions import ones_around
from cudaperf_agent.codegen.modules.sizes import ZERO, Expr, as_expr, never_negative
from cudaperf_agent.codegen.modules.tensors import Choice, Constant, Index, Position, Tensor, Test, View

