#include <stdbool.h>
/* a flag set in a loop, and a count */
int any_above(const int *x, int n, int bar)
{
    int seen = 0, count = 0;
    for (int i = 0; i < n; i++) {
        if (x[i] > bar)
            seen = 1;
        if (x[i] == bar)
            count++;
    }
    return seen ? count : -1;
}
