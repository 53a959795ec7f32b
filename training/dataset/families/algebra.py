"""Families of dense and sparse linear algebra, distances and interactions."""

from __future__ import annotations

from training.dataset.families.model import Family, pick

_REAL = ("float", "double", "float", "float", "double", "float", "float", "double")


def _f(k: int) -> str:
    return "f" if _REAL[k] == "float" else ""


FAMILIES = (
    Family(
        "matvec",
        """
/* cudaperf: in mat[rows*cols] in -1..1; in x[cols] in -1..1; $role y[rows] in -1..1 */
void matvec(int rows, int cols, const $T *mat, const $T *x, $T *y)
{
    for (int i = 0; i < rows; i++) {
        $T acc = $start;
        for (int j = 0; j < cols; j++)
            acc += mat[i * cols + j] * x[j];
        y[i] = acc;
    }
}
""",
        lambda k: {"T": _REAL[k], "role": "inout" if k % 2 else "out", "start": "y[i]" if k % 2 else "0"},
        lambda k: {"rows": pick((4096, 512, 20_000, 2048), k), "cols": pick((2048, 16_384, 300, 4096), k)},
        "linear",
    ),
    Family(
        "matvec_flipped",
        """
/* cudaperf: in mat[rows*cols] in -1..1; in x[rows] in -1..1; out y[cols] */
void matvec_flipped(const $T *mat, const $T *x, $T *y, int rows, int cols)
{
    for (int j = 0; j < cols; j++) {
        $T acc = 0;
        for (int i = 0; i < rows; i++)
            acc += mat[i * cols + j] * x[i];
        y[j] = $last;
    }
}
""",
        lambda k: {"T": _REAL[k], "last": pick(("acc", "acc > 0 ? acc : 0"), k // 2)},
        lambda k: {"rows": pick((1024, 4096, 500), k), "cols": pick((8192, 2048, 20_011), k)},
        "linear",
    ),
    Family(
        "matmul",
        """
/* cudaperf: in A0[m*p] in -1..1; in B0[p*n] in -1..1; $role C0[m*n] in -1..1 */
void matmul(int m, int n, int p, const $T *A0, const $T *B0, $T *C0)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            $T acc = 0;
            for (int k = 0; k < p; k++)
                acc += A0[i * p + k] * B0[k * n + j];
            C0[i * n + j] $set acc;
        }
}
""",
        lambda k: {
            "T": pick(("float", "double", "int", "float"), k),
            "role": "inout" if k % 2 else "out",
            "set": "+=" if k % 2 else "=",
        },
        lambda k: {
            "m": pick((512, 384, 1024, 100), k),
            "n": pick((512, 640, 256, 2000), k),
            "p": pick((512, 384, 300, 600, 64), k),
        },
        "linear",
    ),
    Family(
        "matmul_bt",
        """
/* cudaperf: in A0[m*p] in -1..1; in B0[n*p] in -1..1; out C0[m*n] */
void matmul_bt(int m, int n, int p, const $T A0[m][p], const $T B0[n][p], $T C0[m][n])
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            $T acc = 0;
            for (int k = 0; k < p; k++)
                acc += A0[i][k] * B0[j][k];
            C0[i][j] = $last;
        }
}
""",
        lambda k: {"T": pick(("float", "double", "float", "int"), k), "last": pick(("acc", "acc * 2"), k // 4)},
        lambda k: {
            "m": pick((512, 300, 1024), k),
            "n": pick((512, 700, 333, 1024), k),
            "p": pick((400, 256, 64, 130), k),
        },
        "linear",
    ),
    Family(
        "gram",
        """
/* cudaperf: in x[rows*cols] in -1..1; out res[cols*cols] */
void gram(int rows, int cols, const $T *x, $T *res)
{
    for (int i = 0; i < cols; i++)
        for (int j = 0; j < cols; j++) {
            $T acc = 0;
            for (int k = 0; k < rows; k++)
                acc += x[k * cols + i] * x[k * cols + j];
            res[i * cols + j] = acc$post;
        }
}
""",
        lambda k: {"T": pick(("float", "double", "float"), k), "post": pick(("", " / rows"), k // 4)},
        lambda k: {"rows": pick((500, 2000, 128), k), "cols": pick((512, 256, 700, 400), k)},
        "linear",
    ),
    Family(
        "small_products",
        """
#define M0 $m
/* cudaperf: in A0[n*M0*M0] in -1..1; in B0[n*M0*M0] in -1..1; out C0[n*M0*M0] */
void small_products(int n, const $T *A0, const $T *B0, $T *C0)
{
    for (int i = 0; i < n; i++)
        for (int r0 = 0; r0 < M0; r0++)
            for (int c0 = 0; c0 < M0; c0++) {
                $T acc = 0;
                for (int k = 0; k < M0; k++)
                    acc += A0[(i * M0 + r0) * M0 + k] * B0[(i * M0 + k) * M0 + c0];
                C0[(i * M0 + r0) * M0 + c0] = acc;
            }
}
""",
        lambda k: {"T": _REAL[k], "m": pick((3, 4, 2, 8, 6, 5, 16, 4), k)},
        lambda k: {"n": pick((400_000, 200_000, 1_000_000, 60_000, 80_000, 100_000, 12_000, 300_000), k)},
        "linear",
    ),
    Family(
        "sparse_rows",
        """
/* cudaperf: in ptr[m+1] ascending in 0..nnz; index col[nnz] in 0..n-1; in val[nnz] in -1..1; n in 1..;
   in x[n] in -1..1; out y[m] */
void sparse_rows(int m, int n, int nnz, const int *ptr, const int *col, const $T *val, const $T *x, $T *y)
{
    for (int i = 0; i < m; i++) {
        $T acc = 0;
        for (int k = ptr[i]; k < ptr[i + 1]; k++)
            acc += val[k] * x[col[k]];
        y[i] = $last;
    }
}
""",
        lambda k: {"T": _REAL[k], "last": pick(("acc", "acc + x[0]"), k // 4)},
        lambda k: {
            "m": pick((100_000, 4096, 500_000, 20_000), k),
            "n": pick((100_000, 1 << 20, 1000), k),
            "nnz": pick((4_000_000, 3_000_000), k),
        },
        "sparse",
    ),
    Family(
        "padded_rows",
        """
#define WIDTH0 $w
/* cudaperf: index col[m*WIDTH0] in 0..n-1; in val[m*WIDTH0] in -1..1; n in 1..; in x[n] in -1..1; out y[m] */
void padded_rows(int m, int n, const int *col, const $T *val, const $T *x, $T *y)
{
    for (int i = 0; i < m; i++) {
        $T acc = 0;
        for (int k = 0; k < WIDTH0; k++)
            acc += val[$at] * x[col[$at]];
        y[i] = acc;
    }
}
""",
        lambda k: {"T": _REAL[k], "w": pick((4, 8, 16, 32, 5), k), "at": pick(("i * WIDTH0 + k", "k * m + i"), k)},
        lambda k: {"m": pick((500_000, 200_000, 100_000), k), "n": pick((1 << 18, 1 << 20, 4096), k)},
        "sparse",
    ),
    Family(
        "banded",
        """
#define BAND $b
/* cudaperf: in diag[(2*BAND+1)*n] in -1..1; in x[n] in -1..1; out y[n] */
void banded(int n, const $T *diag, const $T *x, $T *y)
{
    for (int i = 0; i < n; i++) {
        $T acc = 0;
        for (int k = -BAND; k <= BAND; k++)
            if (i + k >= 0 && i + k < n)
                acc += diag[$at] * x[i + k];
        y[i] = acc;
    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "b": pick((1, 2, 4, 3, 8), k),
            "at": pick(("(k + BAND) * n + i", "i * (2 * BAND + 1) + k + BAND"), k),
        },
        lambda k: {"n": pick((1_000_000, 1_500_000, 700_001), k)},
        "sparse",
    ),
    Family(
        "lower_product",
        """
/* cudaperf: in mat[n*n] in -1..1; in x[n] in -1..1; out y[n] */
void lower_product(int n, const $T *mat, const $T *x, $T *y)
{
    for (int i = 0; i < n; i++) {
        $T acc = 0;
        for (int j = 0; j <= i; j++)
            acc += $term;
        y[i] = acc;
    }
}
""",
        lambda k: {"T": _REAL[k], "term": pick(("mat[i * n + j] * x[j]", "mat[j * n + i] * x[j]"), k)},
        lambda k: {"n": pick((4096, 3000, 5001), k)},
        "linear",
    ),
    Family(
        "pull_of_bodies",
        """
#include <math.h>
$struct/* cudaperf: in px[n] in -10..10; in py[n] in -10..10; in mass[n] in 0.1..5; out fx[n]; out fy[n] */
void pull_of_bodies(int n, const $T *px, const $T *py, const $T *mass, $T *fx, $T *fy)
{
    for (int i = 0; i < n; i++) {
        $T sx = 0, sy = 0;
        for (int j = 0; j < n; j++) {
            $T dx = px[j] - px[i], dy = py[j] - py[i];
            $T d2 = dx * dx + dy * dy + SOFT;
            $T w0 = mass[j] / (d2$root);
            sx += dx * w0;
            sy += dy * w0;
        }
        fx[i] = sx;
        fy[i] = sy;
    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "struct": f"#define SOFT {pick(('0.01f', '0.1', '0.25f'), k)}\n",
            "root": f" * sqrt{_f(k)}(d2)" if k % 2 else "",
        },
        lambda k: {"n": pick((8192, 4096, 7000, 6001), k)},
        "interaction",
    ),
    Family(
        "all_distances",
        """
#include <math.h>
/* cudaperf: in p[m*$d] in -10..10; in q[n*$d] in -10..10; out res[m*n] */
void all_distances(int m, int n, const $T *p, const $T *q, $T *res)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            $T acc = 0;
            for (int k = 0; k < $d; k++) {
                $T t0 = p[i * $d + k] - q[j * $d + k];
                acc += $term;
            }
            res[i * n + j] = $last;
        }
}
""",
        lambda k: {
            "T": _REAL[k],
            "d": pick((2, 3, 8, 16, 4), k),
            "term": pick(("t0 * t0", f"fabs{_f(k)}(t0)"), k // 2),
            "last": pick((f"sqrt{_f(k)}(acc)", "acc"), k // 2),
        },
        lambda k: {"m": pick((2000, 1024, 4096), k), "n": pick((3000, 2048, 1500), k)},
        "interaction",
    ),
    Family(
        "nearest_centre",
        """
/* cudaperf: in p[n*$d] in -10..10; in centre[m*$d] in -10..10; m in 1..64; out label[n] */
void nearest_centre(int n, int m, const $T *p, const $T *centre, int *label)
{
    for (int i = 0; i < n; i++) {
        $T best = 1e30f;
        int arg = 0;
        for (int k = 0; k < m; k++) {
            $T d2 = 0;
            for (int c0 = 0; c0 < $d; c0++) {
                $T t0 = p[i * $d + c0] - centre[k * $d + c0];
                d2 += t0 * t0;
            }
            if (d2 < best) {
                best = d2;
                arg = k;
            }
        }
        label[i] = arg;
    }
}
""",
        lambda k: {"T": _REAL[k], "d": pick((2, 4, 8, 3), k)},
        lambda k: {"n": pick((300_000, 150_000, 500_000), k), "m": pick((16, 32, 8, 64), k)},
        "interaction",
    ),
)
"""In a fixed order."""
