#define MATCH 2
#define MISMATCH (-1)
#define GAP (-2)

/* Best local alignment score (Smith-Waterman, linear gaps) of many pairs of short reads.
   cudaperf: len in 1..64; in a[pairs*len] in 0..3; in b[pairs*len] in 0..3; out score[pairs] */
void align_pairs(int pairs, int len, const signed char *a, const signed char *b, int *score)
{
    for (int p = 0; p < pairs; p++) {
        int row[65], best = 0;
        for (int j = 0; j <= len; j++)
            row[j] = 0;
        for (int i = 0; i < len; i++) {
            int diag = 0;
            for (int j = 1; j <= len; j++) {
                int h = diag + (a[p * len + i] == b[p * len + j - 1] ? MATCH : MISMATCH);
                diag = row[j];
                if (row[j] + GAP > h)
                    h = row[j] + GAP;
                if (row[j - 1] + GAP > h)
                    h = row[j - 1] + GAP;
                if (h < 0)
                    h = 0;
                row[j] = h;
                if (h > best)
                    best = h;
            }
        }
        score[p] = best;
    }
}
