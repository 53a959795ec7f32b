/* cudaperf: in text[n]; */
int first_break(const char *text, int n)
{
    int i;
    for (i = 0; i < n && text[i] != ' '; i++)
        ;
    return i;
}
