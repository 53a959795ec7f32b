#include <ctype.h>
void lower_ascii(char *s, int n)
{
    unsigned char *p = (unsigned char *)s;
    while (n-- > 0) {
        if (*p >= 'A' && *p <= 'Z')
            *p |= 0x20;
        p++;
    }
}
