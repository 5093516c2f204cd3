// C(i,k) = X(i,j) * Z(j,k)
//   path     X*Z
//   nest     i{ j{ k{ T1 } } }
//   layout   X: i j
//   layout   Z: j:bitmap k
//   workspace dense
//   parallel i position assemble
// | for i in level 1 of X
// |   for j in level 2 of X and bitmap level 1 of Z
// |     for k in level 2 of Z
// |       C(k) += X(i,j) * Z(j,k)
// |   append C at (i)
#include <stddef.h>
#include <stdint.h>
typedef double value;
typedef value vec1 __attribute__((may_alias));
typedef value vec2 __attribute__((vector_size(16), may_alias));
typedef value vec4 __attribute__((vector_size(32), may_alias));
typedef value vec8 __attribute__((vector_size(64), may_alias));
static inline uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t ranked(const uint64_t *bits, const uint32_t *ranks, uint64_t wanted)
{
    const uint64_t word = bits[wanted / 64];
    const uint64_t bit = (uint64_t)1 << (wanted % 64);
    if (!(word & bit)) return UINT64_MAX;
    return ranks[wanted / 64] + __builtin_popcountll(word & (bit - 1));
}
struct assembly {
    value *cells; uint64_t *met, *words, *list; value *values; uint64_t room;
    int32_t (*append)(struct assembly *, uint64_t listed, const uint64_t *at);
    uint64_t (*lengthen)(struct assembly *, uint64_t listed);
    void *owner;
};

void decompose_kernel(const void *const *in, value *out, value *boundary, value *scratch, const uint64_t *task)
{
    const uint16_t *restrict coord_i = in[0];
    const uint32_t *restrict child_i = in[1];
    const uint16_t *restrict coord_j = in[2];
    const value *restrict nonzero = in[3];
    const uint16_t *restrict coord2_j = in[4];
    const uint32_t *restrict child2_j = in[5];
    const uint64_t *restrict bits2_j = in[6];
    const uint32_t *restrict ranks2_j = in[7];
    const uint16_t *restrict coord2_k = in[8];
    const value *restrict nonzero2 = in[9];
    (void)boundary;
    (void)scratch;
    struct assembly *const output = (struct assembly *)out;
    uint64_t listed = 0;
    value *const cells = output->cells;
    uint64_t *const met = output->met;
    uint64_t *const words = output->words;
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        {
            for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
                const size_t j = coord_j[at_j];
                const uint64_t rank2_j = ranked(bits2_j, ranks2_j, j);
                if (rank2_j == UINT64_MAX) continue;
                const uint64_t at2_j = task[4] + rank2_j;
                {
                    for (uint64_t at2_k = child2_j[at2_j], end2_k = child2_j[at2_j + 1]; at2_k < end2_k; ++at2_k) {
                        const size_t k = coord2_k[at2_k];
                        {
                            const uint64_t cell = k;
                            listed = 1;
                            if (!(met[cell >> 6] >> (cell & 63) & 1)) {
                                met[cell >> 6] |= (uint64_t)1 << (cell & 63);
                                words[cell >> 12] |= (uint64_t)1 << (cell >> 6 & 63);
                            }
                            cells[cell] += nonzero[at_j] * nonzero2[at2_k];
                        }
                    }
                }
            }
        }
        {
            const uint64_t at[1] = {i};
            if (listed && !output->append(output, listed, at)) return;
            listed = 0;
        }
    }
}
