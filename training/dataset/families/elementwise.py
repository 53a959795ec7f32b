"""Families that map elements to elements: streaming arithmetic, gathers, layouts, integer mixing, iterations."""

from __future__ import annotations

from training.dataset.families.model import Family, pick

_REAL = ("float", "double", "float", "float", "double", "float", "float", "double")
_ANY = ("float", "double", "int", "float", "short", "double", "float", "int")
_N = (1 << 24, 1 << 23, 3 << 22, 20_000_000, 1 << 22, 10_000_019, 1 << 24, 6_000_001)


def _f(k: int) -> str:
    return "f" if _REAL[k] == "float" else ""


FAMILIES = (
    Family(
        "axpy_shift",
        """
$helper/* cudaperf: in x[n] in -100..100; inout y[n] in -100..100; a in -8..8 */
void axpy_shift(int n, $T a, const $T *x, $T *y)
{
    for (int i = 0; i < n; i++)
        y[i] = $expr;
}
""",
        lambda k: {
            "T": _ANY[k],
            "helper": pick(("", "#define MULADD(p, q, r) ((p) * (q) + (r))\n", ""), k),
            "expr": pick(("a * x[i] + y[i]", "MULADD(a, x[i], y[i])", "y[i] - a * (x[i] + 1)"), k),
        },
        lambda k: {"n": _N[k]},
        "map",
    ),
    Family(
        "scale_clamp",
        """
$helper/* cudaperf: in x[n] in -1000..1000; out res[n]; gain in -10..10; bias in -10..10 */
void scale_clamp(const $T *x, $T *res, int n, $T gain, $T bias)
{
    for (int i = 0; i < n; i++) {
        $T v = x[i] * gain + bias;
        $clamp
        res[i] = v;
    }
}
""",
        lambda k: {
            "T": pick(("float", "int", "double", "float"), k),
            "helper": "static $T clip($T v) { return v < 0 ? 0 : v > 255 ? 255 : v; }\n".replace(
                "$T", str(pick(("float", "int", "double", "float"), k))
            )
            if k % 2
            else "",
            "clamp": "v = clip(v);"
            if k % 2
            else "if (v < 0)\n            v = 0;\n        if (v > 255)\n            v = 255;",
        },
        lambda k: {"n": _N[(k + 3) % 8]},
        "map",
    ),
    Family(
        "horner",
        """
#define DEGREE $degree
/* cudaperf: in x[n] in -2..2; in wgt[DEGREE+1] in -1..1; out res[n] */
void horner(int n, const $T *x, const $T wgt[DEGREE + 1], $T *res)
{
    for (int i = 0; i < n; i++) {
        $T acc = wgt[DEGREE];
        for (int k = DEGREE - 1; k >= 0; k--)
            acc = acc * x[i] + wgt[k];
        res[i] = acc;
    }
}
""",
        lambda k: {"T": _REAL[k], "degree": pick((3, 5, 8, 12, 16, 4, 24, 10), k)},
        lambda k: {"n": _N[(k + 1) % 8]},
        "map",
    ),
    Family(
        "vector_length",
        """
#include <math.h>
/* cudaperf: $roles; out res[n] */
void vector_length(int n, $args, $T *res)
{
    for (int i = 0; i < n; i++)
        res[i] = $op$f($sum);
}
""",
        lambda k: {
            "T": _REAL[k],
            "f": _f(k),
            "op": pick(("sqrt", "sqrt", "cbrt"), k),
            "roles": "in px[n] in 0.1..100; in py[n] in 0.1..100" + ("; in pz[n] in 0.1..100" if k % 2 else ""),
            "args": f"const {_REAL[k]} *px, const {_REAL[k]} *py" + (f", const {_REAL[k]} *pz" if k % 2 else ""),
            "sum": "px[i] * px[i] + py[i] * py[i]" + (" + pz[i] * pz[i]" if k % 2 else ""),
        },
        lambda k: {"n": _N[(k + 2) % 8]},
        "map",
    ),
    Family(
        "activation",
        """
#include <math.h>
$helper/* cudaperf: in x[n] in -6..6; out res[n] */
void activation(const $T *restrict x, $T *restrict res, const int n)
{
    for (int i = 0; i < n; i++) {
        const $T v = x[i];
        res[i] = $body;
    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "helper": "" if k != 3 else "static inline float squash(float v) { return 1.0f / (1.0f + expf(-v)); }\n",
            "body": (
                "v > 0 ? v : 0",
                "1.0 / (1.0 + exp(-v))",
                "tanhf(v)",
                "v * squash(v)",
                "v > 0 ? v : 0.01 * v",
                "0.5f * v * (1.0f + tanhf(0.797885f * (v + 0.044715f * v * v * v)))",
                "logf(1.0f + expf(v))",
                "v / (1.0 + fabs(v))",
            )[k],
        },
        lambda k: {"n": _N[(k + 4) % 8]},
        "map",
    ),
    Family(
        "three_way_blend",
        """
/* cudaperf: in p[n] in -50..50; in q[n] in -50..50; in mix[n] in 0..1; $role res[n] in -50..50 */
void three_way_blend(int n, const $T *p, const $T *q, const $T *mix, $T *res)
{
    for (int i = 0; i < n; i++) {
        const $T t = mix[i];
        $body
    }
}
""",
        lambda k: {
            "T": pick(("float", "double", "float", "int"), k),
            "role": "inout" if k % 3 == 2 else "out",
            "body": pick(
                (
                    "res[i] = p[i] + t * (q[i] - p[i]);",
                    "res[i] = (1 - t) * p[i] + t * q[i];",
                    "res[i] = res[i] + t * (q[i] - p[i]);",
                ),
                k,
            ),
        },
        lambda k: {"n": _N[(k + 5) % 8] // 2},
        "map",
    ),
    Family(
        "every_other",
        """
#define STEP $step
/* cudaperf: in x[n*STEP] in -100..100; out res[n] */
void every_other(int n, const $T *x, $T *res)
{
    for (int i = 0; i < n; i++)
        res[i] = x[i * STEP]$more;
}
""",
        lambda k: {
            "T": _ANY[k],
            "step": pick((2, 3, 4, 8, 5, 2, 16, 4), k),
            "more": pick(("", " + x[i * STEP + 1]", " / 2"), k),
        },
        lambda k: {
            "n": pick((8_000_000, 4_000_000, 4_000_000, 1_500_000, 4_000_000, 5_000_000, 1_000_000, 4_000_000), k)
        },
        "access",
    ),
    Family(
        "lookup",
        """
/* cudaperf: index pick[n] in 0..m-1; in x[m] in -100..100; m in 1..; $role res[n] in -100..100 */
void lookup(int n, int m, const int *pick, const $T *x, $T *res)
{
    for (int i = 0; i < n; i++)
        $body;
}
""",
        lambda k: {
            "T": _ANY[k],
            "role": "inout" if k % 2 else "out",
            "body": "res[i] += x[pick[i]]" if k % 2 else "res[i] = x[pick[i]]",
        },
        lambda k: {"n": _N[k] // 2, "m": pick((1 << 20, 4096, 1 << 22, 256, 1 << 16, 1 << 21, 1 << 10, 1 << 18), k)},
        "access",
    ),
    Family(
        "rotate_points",
        """
/* cudaperf: in pts[n*$w] in -100..100; out moved[n*$w] */
void rotate_points(int n, $T ca, $T sa, const $T *pts, $T *moved)
{
    for (int i = 0; i < n; i++) {
        $T px = pts[$w * i], py = pts[$w * i + 1];
        moved[$w * i] = ca * px - sa * py;
        moved[$w * i + 1] = sa * px + ca * py;
$rest    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "w": 2 + k % 3,
            "rest": "".join(
                f"        moved[{2 + k % 3} * i + {c}] = pts[{2 + k % 3} * i + {c}];\n" for c in range(2, 2 + k % 3)
            ),
        },
        lambda k: {"n": _N[k] // 4},
        "access",
    ),
    Family(
        "mix_bits",
        """
$pre
/* cudaperf: in x[n]; out res[n] */
void mix_bits(const unsigned *x, unsigned *res, int n)
{
    for (int i = 0; i < n; i++) {
        unsigned h = x[i];
        for (int k = 0; k < $rounds; k++) {
            h ^= h >> $shift;
            h *= ${mul}u;
        }
        res[i] = $last;
    }
}
""",
        lambda k: {
            "pre": pick(("", "#define ROTL(v, s) (((v) << (s)) | ((v) >> (32 - (s))))"), k),
            "rounds": pick((1, 2, 4, 8, 16, 12, 3, 24), k),
            "shift": pick((16, 13, 15), k),
            "mul": pick((2654435761, 2246822519, 3266489917), k),
            "last": pick(("h ^ (h >> 13)", "ROTL(h, 7)"), k),
        },
        lambda k: {"n": _N[(k + 3) % 8]},
        "map",
    ),
    Family(
        "logistic_orbit",
        """
/* cudaperf: in rate[n] in 2.5..3.2; in start[n] in 0.2..0.8; out res[n] */
void logistic_orbit(int n, const $T *rate, const $T *start, $T *res)
{
    for (int i = 0; i < n; i++) {
        $T v = start[i];
        for (int k = 0; k < $steps; k++)
            v = rate[i] * v * (1 - v);
        res[i] = v$post;
    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "steps": pick((4, 10, 16, 24, 8, 32, 12, 20), k),
            "post": pick(("", " * 2", " - 1"), k),
        },
        lambda k: {"n": pick((1 << 22, 1 << 21, 3_000_000, 1 << 20), k)},
        "map",
    ),
    Family(
        "loan_value",
        """
#include <math.h>
$helper/* cudaperf: in amount[n] in 1..1000; in rate[n] in 0.01..0.2; in years[n] in 1..30; out res[n] */
void loan_value(const $T *amount, const $T *rate, const $T *years, $T *res, int n)
{
    for (int i = 0; i < n; i++) {
        $T grown = $growth;
        res[i] = amount[i] * grown$tail;
    }
}
""",
        lambda k: {
            "T": _REAL[k],
            "helper": f"static {_REAL[k]} factor({_REAL[k]} r, {_REAL[k]} t)\n"
            f"{{\n    return exp{_f(k)}(-r * t);\n}}\n\n"
            if k % 2
            else "",
            "growth": "factor(rate[i], years[i])" if k % 2 else f"exp{_f(k)}(-rate[i] * years[i])",
            "tail": pick(("", " / (1 + rate[i])", f" + sqrt{_f(2)}(years[i])"), k) if k != 2 else " + sqrtf(years[i])",
        },
        lambda k: {"n": _N[(k + 1) % 8] // 3},
        "map",
    ),
    Family(
        "flip_table",
        """
/* cudaperf: in x[rows*cols] in -100..100; out res[rows*cols] */
void flip_table(int rows, int cols, const $T *x, $T *res)
{
    for (int i = 0; i < $first; i++)
        for (int j = 0; j < $second; j++)
            res[$to] = x[$from];
}
""",
        lambda k: {
            "T": _ANY[k],
            "first": "rows" if k % 2 == 0 else "cols",
            "second": "cols" if k % 2 == 0 else "rows",
            "to": "j * rows + i" if k % 2 == 0 else "i * rows + j",
            "from": "i * cols + j" if k % 2 == 0 else "j * cols + i",
        },
        lambda k: {"rows": pick((2048, 4096, 1000, 3001), k), "cols": pick((4096, 2048, 6007), k)},
        "access",
    ),
    Family(
        "row_gain",
        """
/* cudaperf: in x[rows*cols] in -10..10; in gain[$per] in -2..2; $role res[rows*cols] in -10..10 */
void row_gain(int rows, int cols, const $T *x, const $T *gain, $T *res)
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) {
            res[i * cols + j] $set x[i * cols + j] * gain[$which];
        }
    }
}
""",
        lambda k: {
            "T": pick(("float", "double", "int"), k),
            "per": pick(("rows", "cols"), k),
            "which": pick(("i", "j"), k),
            "role": "inout" if k >= 4 else "out",
            "set": "+=" if k >= 4 else "=",
        },
        lambda k: {"rows": pick((4096, 1000, 16_384, 333), k), "cols": pick((2048, 8191, 600, 30_000), k)},
        "map",
    ),
    Family(
        "outer_product",
        """
/* cudaperf: in p[rows] in -10..10; in q[cols] in -10..10; $role res[rows*cols] in -10..10 */
void outer_product(int rows, int cols, const $T *p, const $T *q, $T *res)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            res[(long)i * cols + j] $set p[i] * q[j]$extra;
}
""",
        lambda k: {
            "T": pick(("float", "double", "int"), k),
            "role": "inout" if k % 2 else "out",
            "set": "+=" if k % 2 else "=",
            "extra": pick(("", " + 1"), k // 2),
        },
        lambda k: {"rows": pick((3000, 1024, 8192), k), "cols": pick((3000, 8192, 1500, 4097), k)},
        "linear",
    ),
    Family(
        "hash_noise",
        """
$typedefs
static u32 scramble(u32 v)
{
    v ^= v << 13;
    v ^= v >> 17;
    v ^= v << 5;
    return v;
}

/* cudaperf: out res[n] */
void hash_noise(int n, u32 seed, $T *res)
{
    for (int i = 0; i < n; i++) {
        u32 s = seed + 747796405u * (u32)i + 1u;
        for (int k = 0; k < $rounds; k++)
            s = scramble(s);
        res[i] = ($T)(s & 1023u)$scale;
    }
}
""",
        lambda k: {
            "typedefs": pick(("typedef unsigned int u32;", "#include <stdint.h>\n\ntypedef uint32_t u32;"), k),
            "T": pick(("float", "int", "double"), k),
            "rounds": pick((1, 3, 8, 20), k),
            "scale": pick((" * 0.125f", " * 2", " * 0.5"), k),
        },
        lambda k: {"n": _N[(k + 2) % 8]},
        "map",
    ),
)
"""In a fixed order: positions take part in nothing but reports."""
