// C(i,k) = X(i,j) * Z(j,k)
//   path     X*Z
//   nest     i{ j{ k{ T1 } } }
//   layout   X: i j
//   layout   Z: j k
//   workspace dense
//   parallel i position assemble
// | for i in level 1 of X
// |   for j in level 2 of X and level 1 of Z
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
static inline uint64_t seek_uint16_t(const uint16_t *at_coord, uint64_t at, uint64_t end, uint64_t wanted)
{
    if (at >= end || at_coord[at] >= wanted) return at;
    uint64_t step = 1;
    while (at + step < end && at_coord[at + step] < wanted) { at += step; step *= 2; }
    uint64_t above = smaller(at + step, end);
    while (at + 1 < above) {
        const uint64_t middle = at + (above - at) / 2;
        if (at_coord[middle] < wanted) at = middle; else above = middle;
    }
    return above;
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
    const uint16_t *restrict coord2_k = in[6];
    const value *restrict nonzero2 = in[7];
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
            uint64_t at2_j = task[4];
            const uint64_t end2_j = task[5];
            for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
                const size_t j = coord_j[at_j];
                at2_j = seek_uint16_t(coord2_j, at2_j, end2_j, j);
                if (at2_j == end2_j) break;
                if (coord2_j[at2_j] != j) continue;
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
