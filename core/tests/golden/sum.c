// Z(i,k) = X(i,j) * Y(j,k) + W(i,k)
//   path     X*Y
//   nest     i{ j{ k{ T1 } } }
//   layout   X: i j
//   layout   Y: j:dense k
//   workspace dense
//   parallel i position assemble
//   path     W
//   nest     i{ k{ T1 } }
//   layout   i k
//   workspace dense
//   parallel i position assemble
// | for i in level 1 of X or level 1 of W
// |   if in level 1 of X
// |     for j in level 2 of X and dense level 1 of Y
// |       for k in level 2 of Y
// |         Z(k) += X(i,j) * Y(j,k)
// |   if in level 1 of W
// |     for k in level 2 of W
// |       Z(k) += W(i,k)
// |   append Z at (i)
#include <stddef.h>
#include <stdint.h>
typedef double value;
typedef value vec1 __attribute__((may_alias));
typedef value vec2 __attribute__((vector_size(16), may_alias));
typedef value vec4 __attribute__((vector_size(32), may_alias));
typedef value vec8 __attribute__((vector_size(64), may_alias));
static inline uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
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
    const uint32_t *restrict child2_j = in[4];
    const uint16_t *restrict coord2_k = in[5];
    const value *restrict nonzero2 = in[6];
    const uint16_t *restrict coord3_i = in[7];
    const uint32_t *restrict child3_i = in[8];
    const uint16_t *restrict coord3_k = in[9];
    const value *restrict nonzero3 = in[10];
    (void)boundary;
    (void)scratch;
    struct assembly *const output = (struct assembly *)out;
    uint64_t listed = 0;
    value *const cells = output->cells;
    uint64_t *const met = output->met;
    uint64_t *const words = output->words;
    {
        uint64_t at_i = task[0];
        const uint64_t end_i = task[1];
        uint64_t at3_i = task[6];
        const uint64_t end3_i = task[7];
        while (at_i < end_i || at3_i < end3_i) {
            const uint64_t next_i = at_i < end_i ? coord_i[at_i] : UINT64_MAX;
            const uint64_t next3_i = at3_i < end3_i ? coord3_i[at3_i] : UINT64_MAX;
            const size_t i = smaller(next_i, next3_i);
            if (next_i == i) {
                {
                    for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
                        const size_t j = coord_j[at_j];
                        const uint64_t at2_j = j;
                        if (child2_j[at2_j] == child2_j[at2_j + 1]) continue;
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
            }
            if (next3_i == i) {
                {
                    for (uint64_t at3_k = child3_i[at3_i], end3_k = child3_i[at3_i + 1]; at3_k < end3_k; ++at3_k) {
                        const size_t k = coord3_k[at3_k];
                        {
                            const uint64_t cell = k;
                            listed = 1;
                            if (!(met[cell >> 6] >> (cell & 63) & 1)) {
                                met[cell >> 6] |= (uint64_t)1 << (cell & 63);
                                words[cell >> 12] |= (uint64_t)1 << (cell >> 6 & 63);
                            }
                            cells[cell] += nonzero3[at3_k];
                        }
                    }
                }
            }
            {
                const uint64_t at[1] = {i};
                if (listed && !output->append(output, listed, at)) return;
                listed = 0;
            }
            at_i += next_i == i;
            at3_i += next3_i == i;
        }
    }
}
