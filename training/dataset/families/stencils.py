"""Families on regular grids: stencils in one to three dimensions, automata, wave and heat steps."""

from __future__ import annotations

from training.dataset.families.model import Family, pick

_REAL = ("float", "double", "float", "float", "double", "float", "float", "double")
_H = (2048, 1024, 4096, 700, 1536, 3000, 2048, 1000)
_W = (2048, 4096, 1024, 5003, 1536, 2000, 4099, 3001)


def _row(k: int, radius: int) -> str:
    names = ("x[i - {r}] + x[i + {r}]", "(x[i - {r}] + x[i + {r}]) / {d}", "x[i + {r}] + x[i - {r}]")
    return " + ".join(names[k % 3].format(r=r, d=r + 1) for r in range(1, radius + 1))


FAMILIES = (
    Family(
        "smooth_line",
        """
/* cudaperf: in x[n] in -100..100; inout y[n] in -100..100 */
void smooth_line(int n, const $T *x, $T *y)
{
    for (int i = $r; i < n - $r; i++)
        y[i] = $c * (x[i] + $sum);
}
""",
        lambda k: {
            "T": pick(("float", "double", "int", "float"), k),
            "r": 1 + k % 4,
            "sum": _row(k, 1 + k % 4),
            "c": pick(("0.25f", "0.2", "2", "0.125f"), k),
        },
        lambda k: {"n": pick((1 << 24, 1 << 23, 9_000_001), k)},
        "stencil",
    ),
    Family(
        "five_point",
        """
$macro/* cudaperf: in x[rows*cols] in -100..100; inout y[rows*cols] in -100..100 */
void five_point(int rows, int cols, const $T *x, $T *y)
{
    for (int i = 1; i < rows - 1; i++)
        for (int j = 1; j < cols - 1; j++)
            $body
}
""",
        lambda k: {
            "T": _REAL[k],
            "macro": "#define AT(p, r, c) (p)[(r) * cols + (c)]\n" if k % 2 else "",
            "body": "AT(y, i, j) = 0.25 * (AT(x, i - 1, j) + AT(x, i + 1, j) + AT(x, i, j - 1) + AT(x, i, j + 1));"
            if k % 2
            else "y[i * cols + j] = 0.5f * x[i * cols + j] + 0.125f * (x[(i - 1) * cols + j] + x[(i + 1) * cols + j]\n"
            "                + x[i * cols + j - 1] + x[i * cols + j + 1]);",
        },
        lambda k: {"rows": _H[k], "cols": _W[k]},
        "stencil",
    ),
    Family(
        "nine_point",
        """
/* cudaperf: in x[rows*cols] in -10..10; in wgt[9] in -1..1; inout y[rows*cols] in -10..10 */
void nine_point(int rows, int cols, const $T *x, const $T *wgt, $T *y)
{
    for (int i = 1; i < rows - 1; i++) {
        for (int j = 1; j < cols - 1; j++) {
            $T acc = 0;
            for (int a0 = -1; a0 <= 1; a0++)
                for (int b0 = -1; b0 <= 1; b0++)
                    acc += wgt[(a0 + 1) * 3 + b0 + 1] * x[(i + a0) * cols + j + b0];
            y[i * cols + j] = $final;
        }
    }
}
""",
        lambda k: {"T": _REAL[k], "final": pick(("acc", "x[i * cols + j] - acc", "acc * acc"), k)},
        lambda k: {"rows": _H[(k + 1) % 8], "cols": _W[(k + 1) % 8] // 2},
        "stencil",
    ),
    Family(
        "heat_box",
        """
/* cudaperf: in x[nz*rows*cols] in -10..10; inout y[nz*rows*cols] in -10..10 */
void heat_box(int nz, int rows, int cols, $T kappa, const $T *x, $T *y)
{
    for (int z = 1; z < nz - 1; z++)
        for (int i = 1; i < rows - 1; i++)
            for (int j = 1; j < cols - 1; j++) {
                int at = (z * rows + i) * cols + j;
                y[at] = x[at] + kappa * (x[at - 1] + x[at + 1] + x[at - cols] + x[at + cols]
                    + x[at - rows * cols] + x[at + rows * cols] - 6 * x[at])$more;
            }
}
""",
        lambda k: {"T": _REAL[k], "more": pick(("", " * 2", " - 1"), k)},
        lambda k: {
            "nz": pick((64, 128, 32, 200), k),
            "rows": pick((256, 200, 300), k),
            "cols": pick((256, 301, 128, 512), k),
        },
        "stencil",
    ),
    Family(
        "edge_laplace",
        """
/* cudaperf: in x[rows*cols] in -10..10; out res[rows*cols]; rows in 1..; cols in 1.. */
void edge_laplace(int rows, int cols, const $T *x, $T *res)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            int up = i > 0 ? i - 1 : 0, down = i < rows - 1 ? i + 1 : rows - 1;
            int left = j > 0 ? j - 1 : 0, right = j < cols - 1 ? j + 1 : cols - 1;
            res[i * cols + j] = x[up * cols + j] + x[down * cols + j] + x[i * cols + left] + x[i * cols + right]
                - $c * x[i * cols + j];
        }
}
""",
        lambda k: {"T": pick(("float", "int", "double"), k), "c": pick((4, 3, 5), k)},
        lambda k: {"rows": _H[(k + 2) % 8], "cols": _W[(k + 2) % 8]},
        "stencil",
    ),
    Family(
        "gradient_size",
        """
#include <math.h>
/* cudaperf: in img[rows*cols] in $range; inout res[rows*cols] in 0..255 */
void gradient_size(const $T *img, $O *res, int rows, int cols)
{
    for (int i = 1; i < rows - 1; i++)
        for (int j = 1; j < cols - 1; j++) {
            $W gx = $b * (img[i * cols + j + 1] - img[i * cols + j - 1]) + img[(i - 1) * cols + j + 1]
                - img[(i - 1) * cols + j - 1] + img[(i + 1) * cols + j + 1] - img[(i + 1) * cols + j - 1];
            $W gy = $b * (img[(i + 1) * cols + j] - img[(i - 1) * cols + j]) + img[(i + 1) * cols + j - 1]
                - img[(i - 1) * cols + j - 1] + img[(i + 1) * cols + j + 1] - img[(i - 1) * cols + j + 1];
            res[i * cols + j] = $size;
        }
}
""",
        lambda k: {
            "T": pick(("float", "unsigned char", "double", "int"), k),
            "O": pick(("float", "int", "double", "int"), k),
            "W": pick(("float", "int", "double", "int"), k),
            "range": "0..255",
            "b": pick((2, 3), k // 4),
            "size": pick(
                (
                    "sqrtf(gx * gx + gy * gy)",
                    "(gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy)",
                    "sqrt(gx * gx + gy * gy)",
                    "gx * gx + gy * gy",
                ),
                k,
            ),
        },
        lambda k: {"rows": _H[(k + 3) % 8], "cols": _W[(k + 3) % 8] // 2},
        "stencil",
    ),
    Family(
        "wave_step",
        """
/* cudaperf: in now[rows*cols] in -10..10; in before[rows*cols] in -10..10; inout after[rows*cols] in -10..10;
   c2 in 0..0.5 */
void wave_step(int rows, int cols, $T c2, const $T *now, const $T *before, $T *after)
{
    for (int i = $r; i < rows - $r; i++)
        for (int j = $r; j < cols - $r; j++) {
            $T lap = now[i * cols + j - $r] + now[i * cols + j + $r] + now[(i - $r) * cols + j]
                + now[(i + $r) * cols + j] - 4 * now[i * cols + j];
            after[i * cols + j] = 2 * now[i * cols + j] - before[i * cols + j] + c2 * lap;
        }
}
""",
        lambda k: {"T": _REAL[k], "r": 1 + k // 4},
        lambda k: {"rows": _H[(k + 4) % 8], "cols": _W[(k + 4) % 8]},
        "stencil",
    ),
    Family(
        "life_turn",
        """
/* cudaperf: in cells[rows*cols] in 0..1; inout next[rows*cols] in 0..1 */
void life_turn(int rows, int cols, const $T *cells, $T *next)
{
    for (int i = 1; i < rows - 1; i++)
        for (int j = 1; j < cols - 1; j++) {
            int alive = cells[(i - 1) * cols + j - 1] + cells[(i - 1) * cols + j] + cells[(i - 1) * cols + j + 1]
                + cells[i * cols + j - 1] + cells[i * cols + j + 1]
                + cells[(i + 1) * cols + j - 1] + cells[(i + 1) * cols + j] + cells[(i + 1) * cols + j + 1];
            next[i * cols + j] = $rule;
        }
}
""",
        lambda k: {
            "T": pick(("unsigned char", "int", "char", "short"), k),
            "rule": pick(
                ("alive == 3 || (alive == 2 && cells[i * cols + j])", "(alive | cells[i * cols + j]) == 3"), k // 4
            ),
        },
        lambda k: {"rows": _H[(k + 5) % 8], "cols": _W[(k + 5) % 8]},
        "stencil",
    ),
)
"""In a fixed order."""
