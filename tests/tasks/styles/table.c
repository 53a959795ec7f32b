#include <stdint.h>
#include <stddef.h>
static const uint32_t poly_table[256] = {1, 2, 3};
void crc_each(const uint8_t *in, uint32_t *out, size_t n);
void crc_each(const uint8_t *in, uint32_t *out, size_t n) { for (size_t i = 0; i < n; i++) out[i] = poly_table[in[i]] ^ (uint32_t)i; }
