/* cudaperf: in start[n] in 1..1000; limit in 0..500 */
void collatz_steps(const int *start, int *steps, int n, int limit)
{
    for (int i = 0; i < n; i++) {
        int v = start[i], s = 0;
        while (v != 1 && s < limit) {
            v = v % 2 ? 3 * v + 1 : v / 2;
            s++;
        }
        steps[i] = s;
    }
}
