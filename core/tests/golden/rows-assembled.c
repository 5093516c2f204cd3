// F(i,m,r) = X(i,j,k) * Z(k,m) * B(j,r)
//   path     X*B T1*Z
//   nest     i{ k{ j{ r{ T1 } } m{ r{ T2 } } } }
//   layout   X: i k j
//   layout   Z: k m
//   buffer   dense
//   workspace dense
//   parallel i position assemble
// | buffer T1 [24], in registers
// | for i in level 1 of X
// |   for k in level 2 of X and level 1 of Z
// |     T1 = 0
// |     for j in level 3 of X
// |       T1(r) += X(i,k,j) * B(j,r)   over lanes r
// |     for m in level 2 of Z
// |       F(m,r) += T1(r) * Z(k,m)   over lanes r
// |   append F at (i)
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
    const uint16_t *restrict coord_k = in[2];
    const uint32_t *restrict child_k = in[3];
    const uint16_t *restrict coord_j = in[4];
    const value *restrict nonzero = in[5];
    const uint16_t *restrict coord2_k = in[6];
    const uint32_t *restrict child2_k = in[7];
    const uint16_t *restrict coord2_m = in[8];
    const value *restrict nonzero2 = in[9];
    const value *restrict B = in[10];
    (void)boundary;
    (void)scratch;
    struct assembly *const output = (struct assembly *)out;
    uint64_t listed = 0;
    value *const cells = output->cells;
    uint64_t *const met = output->met;
    uint64_t *const words = output->words;
    vec8 T1_0 = {0}, T1_1 = {0}, T1_2 = {0};
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        {
            uint64_t at2_k = task[6];
            const uint64_t end2_k = task[7];
            for (uint64_t at_k = larger(task[2], child_i[at_i]), end_k = smaller(task[3], child_i[at_i + 1]); at_k < end_k; ++at_k) {
                const size_t k = coord_k[at_k];
                at2_k = seek_uint16_t(coord2_k, at2_k, end2_k, k);
                if (at2_k == end2_k) break;
                if (coord2_k[at2_k] != k) continue;
                T1_0 = T1_1 = T1_2 = (vec8){0};
                for (uint64_t at_j = larger(task[4], child_k[at_k]), end_j = smaller(task[5], child_k[at_k + 1]); at_j < end_j; ++at_j) {
                    const size_t j = coord_j[at_j];
                    {
                        const value scale = nonzero[at_j];
                        const vec8 *const row_0 = (const vec8 *)(B + j * 24);
                        T1_0 += scale * row_0[0];
                        T1_1 += scale * row_0[1];
                        T1_2 += scale * row_0[2];
                    }
                }
                {
                    for (uint64_t at2_m = child2_k[at2_k], end2_m = child2_k[at2_k + 1]; at2_m < end2_m; ++at2_m) {
                        const size_t m = coord2_m[at2_m];
                        {
                            const value scale = nonzero2[at2_m];
                            const uint64_t cell = m * 24;
                            listed = 1;
                            if (!(met[cell >> 6] >> (cell & 63) & 1)) {
                                met[cell >> 6] |= (uint64_t)1 << (cell & 63);
                                words[cell >> 12] |= (uint64_t)1 << (cell >> 6 & 63);
                            }
                            vec8 *const result = (vec8 *)(cells + m * 24);
                            result[0] += scale * T1_0;
                            result[1] += scale * T1_1;
                            result[2] += scale * T1_2;
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
