"""Families of dynamic programming: paths in graphs, tables of two sequences, descents."""

from __future__ import annotations

from training.dataset.families.model import Family, pick

FAMILIES = (
    Family(
        "shortest_paths",
        """
/* cudaperf: inout dist[n*n] in 0..1000000 */
void shortest_paths(int n, $T *dist)
{
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                $body
}
""",
        lambda k: {
            "T": pick(("int", "int", "long"), k),
            "body": pick(
                (
                    "if (dist[i * n + k] + dist[k * n + j] < dist[i * n + j])\n"
                    "                    dist[i * n + j] = dist[i * n + k] + dist[k * n + j];",
                ),
                k,
            ),
        },
        lambda k: {"n": pick((256, 300, 384, 200, 450, 320, 128, 512), k)},
        "dynamic",
    ),
    Family(
        "reachable",
        """
/* cudaperf: inout adj[n*n] in 0..1 */
void reachable(int n, $T adj[n][n])
{
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                $body
}
""",
        lambda k: {
            "T": pick(("int", "short", "int", "unsigned char"), k),
            "body": pick(
                (
                    "if (adj[i][k] && adj[k][j])\n                    adj[i][j] = 1;",
                    "adj[i][j] = adj[i][j] || (adj[i][k] && adj[k][j]);",
                ),
                k // 2,
            ),
        },
        lambda k: {"n": pick((256, 300, 384, 200, 450), k)},
        "dynamic",
    ),
    Family(
        "edit_table",
        """
static int least(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* cudaperf: in s0[la] in $range; in t0[lb] in $range; out tab[(la+1)*(lb+1)] */
void edit_table(const $T *s0, int la, const $T *t0, int lb, int tab[la + 1][lb + 1])
{
    for (int j = 0; j <= lb; j++)
        tab[0][j] = j$gap;
    for (int i = 1; i <= la; i++)
        tab[i][0] = i$gap;
    for (int i = 1; i <= la; i++)
        for (int j = 1; j <= lb; j++)
            tab[i][j] = least(tab[i - 1][j] + $g, tab[i][j - 1] + $g,
                tab[i - 1][j - 1] + (s0[i - 1] != t0[j - 1])$w);
}
""",
        lambda k: {
            "T": pick(("char", "int", "unsigned char", "short"), k),
            "range": pick(("97..102", "0..3"), k),
            "gap": pick(("", " * 2"), k // 4),
            "g": pick((1, 2), k // 4),
            "w": pick(("", " * 3"), k // 4),
        },
        lambda k: {"la": pick((600, 1000, 400), k), "lb": pick((800, 500, 1200), k)},
        "dynamic",
    ),
    Family(
        "cheapest_descent",
        """
/* cudaperf: in cost[rows*cols] in 0..1000; out best[rows*cols]; rows in 1..; cols in 1.. */
void cheapest_descent(int rows, int cols, const $T *cost, $T *best)
{
    for (int j = 0; j < cols; j++)
        best[j] = cost[j];
    for (int i = 1; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            $T m0 = best[(i - 1) * cols + j];
            if (j > 0 && best[(i - 1) * cols + j - 1] $cmp m0)
                m0 = best[(i - 1) * cols + j - 1];
            if (j < cols - 1 && best[(i - 1) * cols + j + 1] $cmp m0)
                m0 = best[(i - 1) * cols + j + 1];
            best[i * cols + j] = cost[i * cols + j] + m0;
        }
}
""",
        lambda k: {"T": pick(("int", "long", "float", "double"), k), "cmp": pick(("<", ">"), k // 4)},
        lambda k: {"rows": pick((100, 200, 64), k), "cols": pick((20_000, 4096, 100_000), k)},
        "dynamic",
    ),
)
"""In a fixed order."""
