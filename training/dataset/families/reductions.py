"""Families that combine many values into few: sums, extremes, moments, histograms, scans, rows and columns."""

from __future__ import annotations

from training.dataset.families.model import Family, pick

_REAL = ("float", "double", "float", "float", "double", "float", "float", "double")
_N = (1 << 24, 1 << 23, 3 << 22, 20_000_000, 1 << 22, 10_000_019, 1 << 24, 6_000_001)
_ROWS = (4096, 64, 1000, 20_000, 512, 100_000, 2048, 16)
_COLS = (2048, 100_000, 4096, 300, 10_000, 64, 4099, 400_000)

FAMILIES = (
    Family(
        "weighted_total",
        """
/* cudaperf: in x[n] in -1..1; in wgt[n] in 0..1 */
$T weighted_total(const $T *x, const $T *wgt, int n)
{
    $T acc = 0;
    for (int i = 0; i < n; i++)
        acc += $term;
    return acc$post;
}
""",
        lambda k: {
            "T": _REAL[k],
            "term": pick(("x[i] * wgt[i]", "x[i] * x[i] * wgt[i]", "(x[i] - wgt[i]) * (x[i] - wgt[i])"), k),
            "post": pick(("", " / (n + 1)"), k // 4),
        },
        lambda k: {"n": _N[k]},
        "reduction",
    ),
    Family(
        "plain_sum",
        """
/* cudaperf: in x[n] in -$m..$m; out res[1] */
void plain_sum(const $T *x, int n, $A *res)
{
    $A acc = 0;
    for (int i = 0; i < n; i++)
        acc += $term;
    res[0] = acc;
}
""",
        lambda k: {
            "T": pick(("float", "int", "double", "short"), k),
            "A": pick(("float", "long", "double", "int"), k),
            "m": pick((1, 1000, 10, 20), k),
            "term": "x[i]" if k < 4 else "x[i] * x[i]",
        },
        lambda k: {"n": _N[(k + 3) % 8]},
        "reduction",
    ),
    Family(
        "extreme_value",
        """
$helper/* cudaperf: in x[n] in -1000..1000; n in 1.. */
$T extreme_value(int n, const $T *x)
{
    $T acc = x[0];
    for (int i = 1; i < n; i++)
        $update
    return acc;
}
""",
        lambda k: {
            "T": pick(("float", "int", "double"), k),
            "helper": "#define FEWER(p, q) ((p) < (q))\n" if k % 3 == 2 else "",
            "update": pick(
                (
                    "if (x[i] > acc)\n            acc = x[i];",
                    "acc = x[i] < acc ? x[i] : acc;",
                    "if (FEWER(acc, x[i]))\n            acc = x[i];",
                ),
                k,
            ),
        },
        lambda k: {"n": _N[(k + 1) % 8]},
        "reduction",
    ),
    Family(
        "count_matching",
        """
/* cudaperf: in x[n] in $range */
int count_matching(const $T *x, int n, $T limit)
{
    int hits = 0;
    for (int i = 0; i < n; i++)
        $body
    return hits;
}
""",
        lambda k: {
            "T": pick(("int", "float", "unsigned char", "double"), k),
            "range": pick(("-50..50", "-1..1", "0..255", "-9..9"), k),
            "body": pick(
                (
                    "if (x[i] > limit)\n            hits++;",
                    "hits += x[i] < limit;",
                    "if (x[i] != limit)\n            ++hits;",
                ),
                k,
            ),
        },
        lambda k: {"n": _N[(k + 2) % 8]},
        "reduction",
    ),
    Family(
        "row_totals",
        """
/* cudaperf: in x[rows*cols] in -1..1; out res[rows] */
void row_totals(int rows, int cols, const $T *x, $T *res)
{
    for (int i = 0; i < rows; i++) {
        $T acc = 0;
        for (int j = 0; j < cols; j++)
            acc += $term;
        res[i] = acc;
    }
}
""",
        lambda k: {"T": _REAL[k], "term": pick(("x[i * cols + j]", "x[i * cols + j] * x[i * cols + j]"), k)},
        lambda k: {"rows": _ROWS[k], "cols": _COLS[k]},
        "reduction",
    ),
    Family(
        "column_totals",
        """
/* cudaperf: in x[rows*cols] in -1..1; out res[cols] */
void column_totals(int rows, int cols, const $T *x, $T *res)
{
    for (int j = 0; j < cols; j++) {
        $T acc = 0;
        for (int i = 0; i < rows; i++)
            acc += $term;
        res[j] = acc$post;
    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "term": pick(("x[i * cols + j]", "x[i * cols + j] * (i + 1)"), k),
            "post": pick(("", " * 0.5f"), k // 2),
        },
        lambda k: {"rows": pick((1000, 4096, 300), k), "cols": pick((8192, 2048, 30_011, 1024), k)},
        "reduction",
    ),
    Family(
        "row_spread",
        """
$inc/* cudaperf: in x[rows*cols] in -10..10; out mean[rows]; out spread[rows]; cols in 1.. */
void row_spread(int rows, int cols, const $T *x, $T *mean, $T *spread)
{
    for (int i = 0; i < rows; i++) {
        $T total = 0;
        for (int j = 0; j < cols; j++)
            total += x[i * cols + j];
        $T m0 = total / cols;
        $T square = 0;
        for (int j = 0; j < cols; j++)
            square += (x[i * cols + j] - m0) * (x[i * cols + j] - m0);
        mean[i] = m0;
        spread[i] = $last;
    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "inc": "#include <math.h>\n" if k % 2 else "",
            "last": ("sqrtf" if _REAL[k] == "float" else "sqrt") + "(square / cols)" if k % 2 else "square / cols",
        },
        lambda k: {"rows": _ROWS[(k + 2) % 8] // 2, "cols": _COLS[(k + 2) % 8]},
        "reduction",
    ),
    Family(
        "normalise_rows",
        """
#include <math.h>
/* cudaperf: in x[rows*cols] in $range; out res[rows*cols] */
void normalise_rows(const $T *x, $T *res, int rows, int cols)
{
    for (int i = 0; i < rows; i++) {
        $T total = $eps;
        for (int j = 0; j < cols; j++)
            total += $term;
        $T scale = $scale;
        for (int j = 0; j < cols; j++)
            res[i * cols + j] = $use * scale;
    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "range": "-3..3",
            "eps": pick(("1e-3f", "1e-6"), k),
            "term": pick(
                (
                    "x[i * cols + j] * x[i * cols + j]",
                    "exp(x[i * cols + j])",
                    "x[i * cols + j] < 0 ? -x[i * cols + j] : x[i * cols + j]",
                ),
                k,
            ),
            "use": pick(("x[i * cols + j]", "exp(x[i * cols + j])", "x[i * cols + j]"), k),
            "scale": pick((f"1 / {'sqrtf' if _REAL[k] == 'float' else 'sqrt'}(total)", "1 / total", "1 / total"), k),
        },
        lambda k: {"rows": _ROWS[(k + 4) % 8] // 2, "cols": _COLS[(k + 4) % 8]},
        "reduction",
    ),
    Family(
        "running_total",
        """
/* cudaperf: in x[n] in -$m..$m; out res[n] */
void running_total(int n, const $T *x, $A *res)
{
    $A acc = 0;
    for (int i = 0; i < n; i++) {
        $body
    }
}
""",
        lambda k: {
            "T": pick(("int", "int", "short", "int"), k),
            "A": pick(("int", "long", "int", "long"), k),
            "m": pick((50, 1000, 20, 7), k),
            "body": pick(("acc += x[i];\n        res[i] = acc;", "res[i] = acc;\n        acc += x[i];"), k // 2),
        },
        lambda k: {"n": pick((1 << 22, 1 << 21, 3_000_017), k)},
        "scan",
    ),
    Family(
        "bin_counts",
        """
#define BINS $bins
/* cudaperf: in x[n] in $range; inout counts[BINS] in 0..1000 */
void bin_counts(int n, const $T *x, int counts[BINS])
{
    for (int i = 0; i < n; i++)
        counts[$which]$inc;
}
""",
        lambda k: {
            "bins": pick((256, 64, 1024, 16), k),
            "T": pick(("unsigned char", "int", "int", "unsigned short"), k),
            "range": pick(("0..255", "0..63", "0..1023", "0..4095"), k),
            "which": pick(("x[i]", "x[i]", "x[i]", "x[i] / 256"), k),
            "inc": pick(("++", " += 1"), k),
        },
        lambda k: {"n": _N[(k + 5) % 8] // 2},
        "histogram",
    ),
    Family(
        "keyed_sums",
        """
/* cudaperf: index key[n] in 0..m-1; in x[n] in -100..100; m in 1..; inout total[m] in -100..100 */
void keyed_sums(int n, int m, const int *key, const $T *x, $T *total)
{
    for (int i = 0; i < n; i++)
        total[key[i]] += $term;
}
""",
        lambda k: {"T": "int", "term": pick(("x[i]", "x[i] / 2", "x[i] * 3", "1 - x[i]"), k)},
        lambda k: {"n": pick((1 << 22, 1 << 21, 5_000_011), k), "m": pick((256, 1 << 16, 1 << 20, 4096), k)},
        "histogram",
    ),
    Family(
        "segment_means",
        """
/* cudaperf: in first[m+1] ascending in 0..n; in x[n] in -10..10; out res[m] */
void segment_means(int m, int n, const int *first, const $T *x, $T *res)
{
    for (int i = 0; i < m; i++) {
        $T acc = 0;
        for (int k = first[i]; k < first[i + 1]; k++)
            acc += x[k]$square;
        res[i] = $last;
    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "square": pick(("", " * x[k]"), k // 2),
            "last": pick(("acc / (first[i + 1] - first[i] + 1)", "acc"), k),
        },
        lambda k: {"m": pick((1 << 16, 4096, 1 << 19, 1000), k), "n": pick((1 << 22, 1 << 23), k)},
        "sparse",
    ),
)
"""In a fixed order."""
