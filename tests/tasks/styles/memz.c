#include <string.h>
#include <stddef.h>
void hist(const unsigned short *v, size_t n, unsigned *bins, int nb) { memset(bins, 0, nb * sizeof *bins); for (size_t i = 0; i < n; i++) bins[v[i] % nb]++; }
