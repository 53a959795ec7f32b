"""Families of signal and image filters, and of byte processing."""

from __future__ import annotations

from training.dataset.families.model import Family, pick

_REAL = ("float", "double", "float", "float", "double", "float", "float", "double")
_H = (2048, 1024, 4096, 700, 1536, 3000, 2048, 1000)
_W = (2048, 4096, 1024, 5003, 1536, 2000, 4099, 3001)
_BYTES = (1 << 25, 1 << 24, 20_000_003, 1 << 24, 30_000_000, 1 << 25, 33_000_001, 1 << 25)

FAMILIES = (
    Family(
        "fir",
        """
/* cudaperf: in x[n+taps] in -1..1; in wgt[taps] in -1..1; out y[n]; taps in 1..64 */
void fir(int n, int taps, const $T *x, const $T *wgt, $T *y)
{
    for (int i = 0; i < n; i++) {
        $T acc = 0;
        for (int k = 0; k < taps; k++)
            acc += wgt[k] * x[$at];
        y[i] = acc;
    }
}
""",
        lambda k: {
            "T": pick(("float", "double", "int", "float"), k),
            "at": pick(("i + k", "i + taps - k"), k // 4),
        },
        lambda k: {"n": pick((4_000_000, 2_000_000, 3_000_001), k), "taps": pick((8, 16, 32, 5, 64), k)},
        "filter",
    ),
    Family(
        "filter_image",
        """
/* cudaperf: in img[rows*cols] in -10..10; in wgt[(2*$r+1)*(2*$r+1)] in -1..1; out res[rows*cols] */
void filter_image(const $T *img, const $T *wgt, $T *res, int rows, int cols)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            $T acc = 0;
            for (int a0 = -$r; a0 <= $r; a0++)
                for (int b0 = -$r; b0 <= $r; b0++) {
                    int r0 = i + a0, c0 = j + b0;
                    if (r0 >= 0 && r0 < rows && c0 >= 0 && c0 < cols)
                        acc += img[r0 * cols + c0] * wgt[(a0 + $r) * (2 * $r + 1) + b0 + $r];
                }
            res[i * cols + j] = acc;
        }
}
""",
        lambda k: {"T": pick(("float", "double", "float", "int"), k), "r": pick((1, 2, 1, 3), k)},
        lambda k: {"rows": _H[k] // 2, "cols": _W[k] // 2},
        "filter",
    ),
    Family(
        "box_blur",
        """
#define R0 $r
/* cudaperf: in img[rows*cols] in 0..255; inout res[rows*cols] in 0..255 */
void box_blur(const $T *img, $T *res, int rows, int cols)
{
    for (int i = R0; i < rows - R0; i++)
        for (int j = R0; j < cols - R0; j++) {
            $A total = 0;
            for (int a0 = -R0; a0 <= R0; a0++)
                for (int b0 = -R0; b0 <= R0; b0++)
                    total += img[(i + a0) * cols + j + b0];
            res[i * cols + j] = total / ((2 * R0 + 1) * (2 * R0 + 1));
        }
}
""",
        lambda k: {
            "T": pick(("unsigned char", "float", "int", "unsigned short"), k),
            "A": pick(("int", "float", "int", "int"), k),
            "r": pick((1, 2, 3), k),
        },
        lambda k: {"rows": _H[(k + 2) % 8] // 2, "cols": _W[(k + 2) % 8]},
        "filter",
    ),
    Family(
        "blur_across",
        """
/* cudaperf: in img[rows*cols] in -10..10; in wgt[$w] in -1..1; out res[rows*cols] */
void blur_across(int rows, int cols, const $T *img, const $T wgt[$w], $T *res)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            $T acc = 0;
            for (int k = 0; k < $w; k++) {
                int at0 = $dir + k - $w / 2;
                at0 = at0 < 0 ? 0 : at0 >= $lim ? $lim - 1 : at0;
                acc += wgt[k] * img[$index];
            }
            res[i * cols + j] = acc;
        }
}
""",
        lambda k: {
            "T": _REAL[k],
            "w": pick((3, 5, 7, 9), k),
            "dir": pick(("j", "i"), k),
            "lim": pick(("cols", "rows"), k),
            "index": pick(("i * cols + at0", "at0 * cols + j"), k),
        },
        lambda k: {"rows": _H[(k + 4) % 8] // 2, "cols": _W[(k + 4) % 8] // 2},
        "filter",
    ),
    Family(
        "grey_levels",
        """
/* cudaperf: in img[n*$c] in 0..255; out res[n] */
void grey_levels(const $T *img, $T *res, int n)
{
    for (int i = 0; i < n; i++) {
        int r0 = img[$c * i], g0 = img[$c * i + 1], b0 = img[$c * i + 2];
        res[i] = $mix;
    }
}
""",
        lambda k: {
            "T": pick(("unsigned char", "unsigned char", "unsigned short", "int"), k),
            "c": 3 + k % 2,
            "mix": pick(("(77 * r0 + 150 * g0 + 29 * b0) >> 8", "(r0 + 2 * g0 + b0) / 4", "(r0 + g0 + b0) / 3"), k),
        },
        lambda k: {"n": pick((8_000_000, 12_000_000, 5_000_000, 3_000_001), k)},
        "image",
    ),
    Family(
        "pool_max",
        """
/* cudaperf: in img[rows*$p*cols*$p] in -100..100; out res[rows*cols] */
void pool_max(int rows, int cols, const $T *img, $T *res)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            $T m0 = img[i * $p * cols * $p + j * $p];
            for (int a0 = 0; a0 < $p; a0++)
                for (int b0 = 0; b0 < $p; b0++) {
                    $T v0 = img[(i * $p + a0) * cols * $p + j * $p + b0];
                    $body
                }
            res[i * cols + j] = m0;
        }
}
""",
        lambda k: {
            "T": pick(("float", "int", "double", "short"), k),
            "p": pick((2, 3, 4), k),
            "body": pick(("if (v0 > m0)\n                        m0 = v0;", "m0 = v0 < m0 ? v0 : m0;"), k // 4),
        },
        lambda k: {"rows": _H[k] // 2, "cols": _W[k] // 2},
        "image",
    ),
    Family(
        "halve_image",
        """
/* cudaperf: in img[4*rows*cols] in $range; out res[rows*cols] */
void halve_image(const $T *img, int rows, int cols, $T *res)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            const int top = 2 * i * 2 * cols + 2 * j;
            res[i * cols + j] = (img[top] + img[top + 1] + img[top + 2 * cols] + img[top + 2 * cols + 1])$div;
        }
}
""",
        lambda k: {
            "T": pick(("float", "unsigned char", "double", "int"), k),
            "range": "0..255",
            "div": pick((" / 4", " / 4", " * 0.25", " >> 2"), k),
        },
        lambda k: {"rows": _H[(k + 1) % 8], "cols": _W[(k + 1) % 8] // 2},
        "image",
    ),
    Family(
        "enlarge_image",
        """
/* cudaperf: in img[rows*cols] in 0..255; out res[rows*cols*$z*$z] */
void enlarge_image(int rows, int cols, const $T *img, $T *res)
{
    for (int i = 0; i < rows * $z; i++)
        for (int j = 0; j < cols * $z; j++)
            res[i * cols * $z + j] = img[(i / $z) * cols + j / $z]$post;
}
""",
        lambda k: {
            "T": pick(("float", "unsigned char", "int", "double"), k),
            "z": pick((2, 3, 4), k),
            "post": pick(("", " / 2"), k // 4),
        },
        lambda k: {"rows": _H[(k + 3) % 8] // 4, "cols": _W[(k + 3) % 8] // 2},
        "image",
    ),
    Family(
        "composite",
        """
/* cudaperf: in top[n*4] in 0..255; in under[n*4] in 0..255; out res[n*4] */
void composite(int n, const $T *top, const $T *under, $T *res)
{
    for (int i = 0; i < n; i++) {
        int alpha = top[4 * i + 3];
        for (int k = 0; k < 3; k++)
            res[4 * i + k] = (top[4 * i + k] * alpha + under[4 * i + k] * (255 - alpha)) / $d;
        res[4 * i + 3] = $last;
    }
}
""",
        lambda k: {
            "T": pick(("unsigned char", "int", "unsigned char", "unsigned short"), k),
            "d": pick((255, 256), k),
            "last": pick(("255", "alpha"), k // 2),
        },
        lambda k: {"n": pick((4_000_000, 2_000_000, 6_000_000), k)},
        "image",
    ),
    Family(
        "shrink_shapes",
        """
/* cudaperf: in img[rows*cols] in 0..255; inout res[rows*cols] in 0..255 */
void shrink_shapes(int rows, int cols, const $T *img, $T *res)
{
    for (int i = $r; i < rows - $r; i++)
        for (int j = $r; j < cols - $r; j++) {
            $T m0 = img[i * cols + j];
            for (int a0 = -$r; a0 <= $r; a0++)
                for (int b0 = -$r; b0 <= $r; b0++)
                    if (img[(i + a0) * cols + j + b0] $cmp m0)
                        m0 = img[(i + a0) * cols + j + b0];
            res[i * cols + j] = m0;
        }
}
""",
        lambda k: {
            "T": pick(("unsigned char", "int", "float", "short"), k),
            "r": 1 + k % 2,
            "cmp": pick(("<", ">"), k // 4),
        },
        lambda k: {"rows": _H[(k + 5) % 8] // 2, "cols": _W[(k + 5) % 8]},
        "filter",
    ),
    Family(
        "upper_case",
        """
$helper/* cudaperf: $role text[n] in 32..122$outrole */
void upper_case($args, int n)
{
    for (int i = 0; i < n; i++) {
        char c = text[i];
        $body
        $dest[i] = c;
    }
}
""",
        lambda k: {
            "helper": "#define IS_LOW(c) ((c) >= 'a' && (c) <= 'z')\n" if k % 2 else "",
            "role": "inout" if k < 4 else "in",
            "outrole": "" if k < 4 else "; out res[n]",
            "args": "char *text" if k < 4 else "const char *text, char *res",
            "dest": "text" if k < 4 else "res",
            "body": "if (IS_LOW(c))\n            c -= 32;"
            if k % 2
            else "c = c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;"
            if k % 4
            else "if (c >= 'a' && c <= 'z')\n            c = c - 32;",
        },
        lambda k: {"n": _BYTES[k]},
        "bytes",
    ),
    Family(
        "xor_stream",
        """
/* cudaperf: in x[n]; in key[$k]; out res[n] */
void xor_stream(const $T *x, const $T key[$k], $T *res, int n)
{
    for (int i = 0; i < n; i++)
        res[i] = x[i] ^ key[$at]$post;
}
""",
        lambda k: {
            "T": pick(("unsigned char", "unsigned int", "unsigned char", "unsigned short"), k),
            "k": pick((16, 32, 7, 64), k),
            "at": pick(("i % 16", "i & 31", "i % 7", "i % 64"), k),
            "post": pick(("", " ^ 0x5a"), k // 4),
        },
        lambda k: {"n": _BYTES[(k + 1) % 8] // 2},
        "bytes",
    ),
    Family(
        "ones_in_words",
        """
/* cudaperf: in x[n]; out res[n] */
void ones_in_words(int n, const $T *x, $O *res)
{
    for (int i = 0; i < n; i++) {
        $T v = x[i];
        int c = 0;
        $loop
        res[i] = c;
    }
}
""",
        lambda k: {
            "T": pick(("unsigned int", "unsigned char", "unsigned short", "unsigned long"), k),
            "O": pick(("int", "unsigned char", "int", "short"), k),
            "loop": pick(
                (
                    "for (int b = 0; b < 32; b++)\n            c += (v >> b) & 1;",
                    "for (int b = 0; b < 8; b++)\n            c += (v >> b) & 1;",
                    "for (int b = 0; b < 16; b++)\n            if (v & (1 << b))\n                c++;",
                    "for (int b = 0; b < 64; b++)\n            c += (int)((v >> b) & 1);",
                ),
                k,
            ),
        },
        lambda k: {"n": _BYTES[(k + 2) % 8] // 8},
        "bytes",
    ),
    Family(
        "pair_sums",
        """
/* cudaperf: in x[$w*n] in 0..200; out res[n] */
void pair_sums(int n, const $T *x, $O *res)
{
    for (int i = 0; i < n; i++) {
        $O acc = 0;
        for (int k = 0; k < $w; k++)
            acc += x[i * $w + k];
        res[i] = acc;
    }
}
""",
        lambda k: {
            "T": pick(("unsigned char", "short", "float", "int"), k),
            "O": pick(("int", "int", "float", "long"), k),
            "w": pick((2, 4, 8, 3, 16), k),
        },
        lambda k: {"n": pick((4_000_000, 3_000_000, 1_500_000), k)},
        "access",
    ),
)
"""In a fixed order."""
