int tokens(const char *s, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        switch (s[i]) {
        case ',':
        case ';':
            count++;
            break;
        case '#':
            continue;
        default:
            if (s[i] < 0)
                break;
            count += 2;
        }
    }
    return count;
}
