int is_palindrome(const char *s, int n)
{
    int i = 0, j = n - 1;
    while (i < j) {
        if (s[i] != s[j])
            return 0;
        i++;
        j--;
    }
    return 1;
}
