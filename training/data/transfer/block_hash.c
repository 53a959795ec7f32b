#include <stdint.h>
/* a polynomial hash of every block of len bytes */
/* cudaperf: in data[blocks*len]; out hash[blocks]; len in 0.. */
void block_hash(int blocks, int len, const uint8_t *data, uint32_t *hash)
{
    for (int k = 0; k < blocks; k++)
    {
        uint32_t h = 5381;
        for (int i = 0; i < len; i++)
            h = h * 31 + data[k * len + i];
        hash[k] = h;
    }
}
