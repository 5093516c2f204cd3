// A(i,l) = X(i,j) * Y(j,k) * Z(k,l)
//   path     X*Y T1*Z
//   nest     i{ j{ k{ T1 } } k{ l{ T2 } } }
//   layout   X: i j
//   layout   Y: j k
//   layout   Z: k l
//   buffer   sparse
//   workspace dense
//   parallel i position assemble
// | buffer T1 [100000], marked
// | for i in level 1 of X
// |   T1 = 0
// |   for j in level 2 of X and level 1 of Y
// |     for k in level 2 of Y and level 1 of Z
// |       mark T1 at k
// |       T1(k) += X(i,j) * Y(j,k)
// |   for k in marked cells of T1 and level 1 of Z
// |     for l in level 2 of Z
// |       A(l) += T1(k) * Z(k,l)
// |   append A at (i)
#include <stddef.h>
#include <stdint.h>
typedef double value;
typedef value vec1 __attribute__((may_alias));
typedef value vec2 __attribute__((vector_size(16), may_alias));
typedef value vec4 __attribute__((vector_size(32), may_alias));
typedef value vec8 __attribute__((vector_size(64), may_alias));
static inline uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t seek_uint32_t(const uint32_t *at_coord, uint64_t at, uint64_t end, uint64_t wanted)
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
    const uint32_t *restrict coord_i = in[0];
    const uint32_t *restrict child_i = in[1];
    const uint32_t *restrict coord_j = in[2];
    const value *restrict nonzero = in[3];
    const uint32_t *restrict coord2_j = in[4];
    const uint32_t *restrict child2_j = in[5];
    const uint32_t *restrict coord2_k = in[6];
    const value *restrict nonzero2 = in[7];
    const uint32_t *restrict coord3_k = in[8];
    const uint32_t *restrict child3_k = in[9];
    const uint32_t *restrict coord3_l = in[10];
    const value *restrict nonzero3 = in[11];
    (void)boundary;
    struct assembly *const output = (struct assembly *)out;
    uint64_t listed = 0;
    value *const cells = output->cells;
    uint64_t *const met = output->met;
    uint64_t *const words = output->words;
    uint64_t *const words_T1 = (uint64_t *)(scratch + 0);
    uint64_t *const met_T1 = words_T1 + 25;
    value *restrict const T1 = scratch + 0 + 1592;
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        for (size_t q = 0; q < 25; ++q) words_T1[q] = 0;
        {
            uint64_t at2_j = task[4];
            const uint64_t end2_j = task[5];
            for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
                const size_t j = coord_j[at_j];
                at2_j = seek_uint32_t(coord2_j, at2_j, end2_j, j);
                if (at2_j == end2_j) break;
                if (coord2_j[at2_j] != j) continue;
                {
                    uint64_t at3_k = task[6];
                    const uint64_t end3_k = task[7];
                    for (uint64_t at2_k = child2_j[at2_j], end2_k = child2_j[at2_j + 1]; at2_k < end2_k; ++at2_k) {
                        const size_t k = coord2_k[at2_k];
                        at3_k = seek_uint32_t(coord3_k, at3_k, end3_k, k);
                        if (at3_k == end3_k) break;
                        if (coord3_k[at3_k] != k) continue;
                        if (!(words_T1[k >> 12] >> (k >> 6 & 63) & 1)) {
                            words_T1[k >> 12] |= (uint64_t)1 << (k >> 6 & 63);
                            met_T1[k >> 6] = 0;
                        }
                        if (!(met_T1[k >> 6] >> (k & 63) & 1)) {
                            met_T1[k >> 6] |= (uint64_t)1 << (k & 63);
                            T1[k] = 0;
                        }
                        T1[k] += nonzero[at_j] * nonzero2[at2_k];
                    }
                }
            }
        }
        {
            uint64_t at3_k = task[6];
            const uint64_t end3_k = task[7];
            for (uint64_t above_k = 0; above_k < 25; ++above_k) {
                for (uint64_t words_k = words_T1[above_k]; words_k; words_k &= words_k - 1) {
                    const uint64_t word_k = above_k * 64 + __builtin_ctzll(words_k);
                    for (uint64_t met_k = met_T1[word_k]; met_k; met_k &= met_k - 1) {
                        const size_t k = word_k * 64 + __builtin_ctzll(met_k);
                        at3_k = seek_uint32_t(coord3_k, at3_k, end3_k, k);
                        if (at3_k == end3_k) break;
                        if (coord3_k[at3_k] != k) continue;
                        {
                            for (uint64_t at3_l = child3_k[at3_k], end3_l = child3_k[at3_k + 1]; at3_l < end3_l; ++at3_l) {
                                const size_t l = coord3_l[at3_l];
                                {
                                    const uint64_t cell = l;
                                    listed = 1;
                                    if (!(met[cell >> 6] >> (cell & 63) & 1)) {
                                        met[cell >> 6] |= (uint64_t)1 << (cell & 63);
                                        words[cell >> 12] |= (uint64_t)1 << (cell >> 6 & 63);
                                    }
                                    cells[cell] += T1[k] * nonzero3[at3_l];
                                }
                            }
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
