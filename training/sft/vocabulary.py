"""Names that C programmers give to things, so that what is learned is to copy a name, not to know it."""

from __future__ import annotations

import random
from collections.abc import Iterable

SIZES = (
    "n", "N", "len", "count", "size", "num", "total", "npts", "limit", "length", "m", "M", "elems", "n_items", "nn",
    "numel", "samples", "cells", "last", "end", "amount", "width0", "K", "npix", "nobs",
)  # fmt: skip
ROWS = ("rows", "h", "H", "height", "nrows", "ny", "R", "num_rows", "lines", "n_rows", "m", "imax", "outer", "depth")
COLS = ("cols", "w", "W", "width", "ncols", "nx", "C", "num_cols", "pitch", "n_cols", "jmax", "inner", "stride", "n")
COUNTERS = ("i", "idx", "ii", "r", "p", "at", "row", "t", "pos", "a", "e", "q", "id", "v0", "u", "g", "s", "index")
SECOND = ("j", "jj", "c", "col", "k", "jx", "b", "f", "d", "jdx", "x0", "l", "o", "z0", "y0")
THIRD = ("k", "kk", "l", "s", "t", "m0", "q", "step", "w0", "e0", "tap", "z", "lag", "pass")
INPUTS = (
    "x", "a", "src", "input", "data", "values", "b", "u", "v", "p", "q", "buf", "vec", "signal", "field", "old",
    "A", "B", "X", "price", "heat", "mass", "level", "temp", "left", "right", "image", "pix", "grid", "samples_in",
    "first", "second", "xs", "ys", "weights", "speed", "height_map", "density", "cur", "prev", "now", "red", "green",
    "blue", "gain_in", "cost", "score", "raw", "key_val", "pt", "energy", "phase", "wave", "tone", "dist_in", "hits_in",
)  # fmt: skip
OUTPUTS = (
    "y", "out", "dst", "res", "result", "output", "c", "dest", "z", "r0", "target", "next", "Y", "Z", "fresh", "ans",
    "new_vals", "smooth", "filtered", "acc_out", "flux", "made", "rank", "into", "o", "sums", "means", "best", "image2",
    "goal", "after", "summary", "norms", "w_out", "mix_out", "label", "final", "answer",
)  # fmt: skip
LOCALS = (
    "v", "t", "val", "tmp", "s0", "d", "e1", "cur_val", "part", "base", "mid", "f0", "g0", "lo_val", "hi_val", "diff",
    "delta", "w1", "alpha_v", "ratio", "h0", "q0", "xi", "yi", "u0", "this_one", "term", "aux", "p1", "here",
)  # fmt: skip
TOTALS = ("acc", "sum", "total_v", "s", "tot", "running", "tally", "accum", "sofar", "got", "agg", "res0", "collected")
SCALARS = ("alpha", "beta", "k0", "scale", "gain", "bias", "shift", "factor", "eps", "dt", "c0", "c1", "lambda0", "rho",
           "threshold", "cut", "offset0", "omega", "mu", "weight", "tau", "coef", "strength", "decay")  # fmt: skip
VERBS = (
    "scale", "mix", "blend", "update", "apply", "compute", "filter", "gather", "reduce", "shift", "smooth", "advance",
    "warp", "combine", "collect", "map", "transform", "evaluate", "adjust", "fold", "measure", "relax", "project",
    "sample", "resize", "sweep", "score", "merge", "split", "trace", "fill", "build", "find", "mark", "weigh", "limit",
)  # fmt: skip
NOUNS = (
    "values", "rows", "field", "signal", "points", "cells", "image", "grid", "table", "samples", "weights", "prices",
    "levels", "frames", "lines", "buffer", "pixels", "vector", "matrix", "channel", "series", "state", "forces", "bins",
    "energy", "edges", "scores", "blocks", "words", "heights", "profile", "tracks", "layers", "colours", "units",
)  # fmt: skip
HELPERS = ("clampv", "pick_one", "bump", "curve", "adjust1", "squared", "soft", "kernel_fn", "half_of", "eval_one")
MACROS = ("SQR", "BLEND", "NEAR", "SCALE_BY", "PICK", "DIFF2", "WRAP_UP", "LERP")
CONSTANTS = (
    "RADIUS",
    "TAPS",
    "STEPS",
    "DIM",
    "ORDER",
    "WIDTH0",
    "BLOCK",
    "CHANNELS",
    "ROUNDS",
    "BAND",
    "FACTOR",
    "SPAN",
)
RESERVED = frozenset(
    "in out inout ascending entry setup stdin odd NULL EOF main printf "
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true "
    "false class new delete this template typename operator private public protected namespace using try catch throw "
    "and or not xor abs min max y0 y1 yn j0 j1 jn gamma exp log pow sin cos tan floor ceil round time index".split()
)
"""Words that a new name must not be: of C, of C++, and of what their headers define."""


class Names:
    """Hands out names of one program, no name twice."""

    def __init__(self, rng: random.Random, taken: Iterable[str] = ()) -> None:
        self._rng = rng
        self._taken = set(taken)

    def pick(self, pool: tuple[str, ...]) -> str:
        """A free name of the pool; with a digit behind it where all are taken."""
        free = [name for name in pool if name not in self._taken and name not in RESERVED]
        if free:
            name = self._rng.choice(free)
        else:
            stem = self._rng.choice(pool)
            name = next(f"{stem}_{k}" for k in range(2, 1000) if f"{stem}_{k}" not in self._taken)
        self._taken.add(name)
        return name

    def function(self) -> str:
        """A name for the entry."""
        words = [self._rng.choice(VERBS), self._rng.choice(NOUNS)]
        if self._rng.random() < 0.2:
            words.append(self._rng.choice(("2d", "fast", "step", "all", "once", "v2", "f", "kernel", "simple", "pass")))
        if self._rng.random() < 0.15:
            words = words[:1]
        name = "_".join(words)
        if self._rng.random() < 0.1:
            name = words[0] + "".join(w.capitalize() for w in words[1:])
        if name in RESERVED or name in self._taken:
            name += "_it"
        self._taken.add(name)
        return name
