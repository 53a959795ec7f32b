"""C functions whose CUDA is timed to calibrate a machine: calls of some microseconds to some milliseconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CalibrationKernel:
    """One function.

    Attributes:
        name: Its name.
        c: Its text.
        size_bytes: Of all buffers of a call together, at most.
    """

    name: str
    c: str
    size_bytes: int


KERNELS = (
    CalibrationKernel(
        "saxpy",
        """void saxpy(int n, float a, const float *x, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}
""",
        64 << 10,
    ),
    CalibrationKernel(
        "stencil",
        """void stencil(int h, int w, const float in[h][w], float out[h][w])
{
    for (int r = 0; r < h; r++)
        for (int c = 0; c < w; c++)
            if (r > 0 && r < h - 1 && c > 0 && c < w - 1)
                out[r][c] = 0.25f * (in[r - 1][c] + in[r + 1][c] + in[r][c - 1] + in[r][c + 1]);
            else
                out[r][c] = in[r][c];
}
""",
        4 << 20,
    ),
    CalibrationKernel(
        "decay",
        """#include <math.h>
void decay(int n, float rate, const float *age, const float *weight, float *left)
{
    for (int i = 0; i < n; i++)
        left[i] = weight[i] * expf(-rate * age[i] * age[i]);
}
""",
        48 << 20,
    ),
    CalibrationKernel(
        "matmul",
        """void matmul(int n, const float a[n][n], const float b[n][n], float c[n][n])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int k = 0; k < n; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}
""",
        4 << 20,
    ),
    CalibrationKernel(
        "pull",
        """void pull(int n, const float *x, const float *mass, float *force)
{
    for (int i = 0; i < n; i++) {
        float sum = 0.0f;
        for (int j = 0; j < n; j++) {
            float d = x[j] - x[i];
            sum += mass[j] * d / (d * d + 1.0f);
        }
        force[i] = sum;
    }
}
""",
        1 << 20,
    ),
)
