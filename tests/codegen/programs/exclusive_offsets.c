/* in place: counts become start offsets; returns the total */
unsigned exclusive_offsets(unsigned *count, int n)
{
    unsigned at = 0;
    for (int i = 0; i < n; i++) {
        unsigned mine = count[i];
        count[i] = at;
        at += mine;
    }
    return at;
}
