// R(i,j,k) = A(i,p,q) * B(j,p,r) * C(k,q,r) * D(j,k,r)
//   path     A*B T1*C T2*D
//   nest     r{ j{ p{ q{ i{ T1 } } } q{ k{ i{ T2 } } } k{ i{ T3 } } } }
//   layout   B: r j p:dense
//   layout   A: p:dense q i:dense
//   layout   C: r:dense q k:dense
//   layout   D: r:dense j k:dense
//   buffer   dense
//   buffer   dense
//   parallel r position privatise
// | buffer T1 [40 x 40]
// | buffer T2 [40 x 40]
// | for r in level 1 of B and dense level 1 of C and dense level 1 of D
// |   for j in level 2 of B and level 2 of D
// |     T1 = 0
// |     for p in dense level 3 of B and dense level 1 of A
// |       for q in level 2 of A and level 2 of C
// |         for i in dense level 3 of A
// |           T1(q,i) += A(p,q,i) * B(r,j,p)
// |     T2 = 0
// |     for q in level 2 of C
// |       for k in dense level 3 of C and dense level 3 of D
// |         T2(k,i) += T1(q,i) * C(r,q,k)   over lanes i
// |     for k in dense level 3 of D
// |       R(j,k,i) += T2(k,i) * D(r,j,k)   over lanes i
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

void decompose_kernel(const void *const *in, value *out, value *boundary, value *scratch, const uint64_t *task)
{
    const uint16_t *restrict coord_r = in[0];
    const uint32_t *restrict child_r = in[1];
    const uint16_t *restrict coord_j = in[2];
    const uint32_t *restrict child_j = in[3];
    const value *restrict nonzero = in[4];
    const uint32_t *restrict child2_p = in[5];
    const uint16_t *restrict coord2_q = in[6];
    const uint32_t *restrict child2_q = in[7];
    const value *restrict nonzero2 = in[8];
    const uint32_t *restrict child3_r = in[9];
    const uint16_t *restrict coord3_q = in[10];
    const uint32_t *restrict child3_q = in[11];
    const value *restrict nonzero3 = in[12];
    const uint32_t *restrict child4_r = in[13];
    const uint16_t *restrict coord4_j = in[14];
    const uint32_t *restrict child4_j = in[15];
    const value *restrict nonzero4 = in[16];
    (void)boundary;
    (void)scratch;
    value T1[1600] __attribute__((aligned(64)));
    value T2[1600] __attribute__((aligned(64)));
    {
        for (uint64_t at_r = task[0], end_r = task[1]; at_r < end_r; ++at_r) {
            const size_t r = coord_r[at_r];
            const uint64_t at3_r = r;
            if (child3_r[at3_r] == child3_r[at3_r + 1]) continue;
            const uint64_t at4_r = r;
            if (child4_r[at4_r] == child4_r[at4_r + 1]) continue;
            {
                uint64_t at4_j = child4_r[at4_r];
                const uint64_t end4_j = child4_r[at4_r + 1];
                for (uint64_t at_j = larger(task[2], child_r[at_r]), end_j = smaller(task[3], child_r[at_r + 1]); at_j < end_j; ++at_j) {
                    const size_t j = coord_j[at_j];
                    at4_j = seek_uint16_t(coord4_j, at4_j, end4_j, j);
                    if (at4_j == end4_j) break;
                    if (coord4_j[at4_j] != j) continue;
                    for (size_t q = 0; q < 1600; ++q) T1[q] = 0;
                    {
                        for (uint64_t at_p = larger(task[4], at_j * 40), end_p = smaller(task[5], (at_j + 1) * 40); at_p < end_p; ++at_p) {
                            const size_t p = at_p - at_j * 40;
                            const uint64_t at2_p = p;
                            if (child2_p[at2_p] == child2_p[at2_p + 1]) continue;
                            {
                                uint64_t at3_q = child3_r[at3_r];
                                const uint64_t end3_q = child3_r[at3_r + 1];
                                for (uint64_t at2_q = child2_p[at2_p], end2_q = child2_p[at2_p + 1]; at2_q < end2_q; ++at2_q) {
                                    const size_t q = coord2_q[at2_q];
                                    at3_q = seek_uint16_t(coord3_q, at3_q, end3_q, q);
                                    if (at3_q == end3_q) break;
                                    if (coord3_q[at3_q] != q) continue;
                                    {
                                        for (uint64_t at2_i = at2_q * 40, end2_i = (at2_q + 1) * 40; at2_i < end2_i; ++at2_i) {
                                            const size_t i = at2_i - at2_q * 40;
                                            T1[q * 40 + i] += nonzero2[at2_i] * nonzero[at_p];
                                        }
                                    }
                                }
                            }
                        }
                    }
                    for (size_t q = 0; q < 1600; ++q) T2[q] = 0;
                    {
                        for (uint64_t at3_q = child3_r[at3_r], end3_q = child3_r[at3_r + 1]; at3_q < end3_q; ++at3_q) {
                            const size_t q = coord3_q[at3_q];
                            {
                                for (uint64_t at3_k = at3_q * 40, end3_k = (at3_q + 1) * 40; at3_k < end3_k; ++at3_k) {
                                    const size_t k = at3_k - at3_q * 40;
                                    const uint64_t at4_k = at4_j * 40 + k;
                                    {
                                        const value scale = nonzero3[at3_k];
                                        vec8 *const row_0 = (vec8 *)(T1 + q * 40);
                                        vec8 *const result = (vec8 *)(T2 + k * 40);
                                        result[0] += scale * row_0[0];
                                        result[1] += scale * row_0[1];
                                        result[2] += scale * row_0[2];
                                        result[3] += scale * row_0[3];
                                        result[4] += scale * row_0[4];
                                    }
                                }
                            }
                        }
                    }
                    {
                        for (uint64_t at4_k = at4_j * 40, end4_k = (at4_j + 1) * 40; at4_k < end4_k; ++at4_k) {
                            const size_t k = at4_k - at4_j * 40;
                            {
                                const value scale = nonzero4[at4_k];
                                vec8 *const row_0 = (vec8 *)(T2 + k * 40);
                                vec8 *const result = (vec8 *)(out + j * 1600 + k * 40);
                                result[0] += scale * row_0[0];
                                result[1] += scale * row_0[1];
                                result[2] += scale * row_0[2];
                                result[3] += scale * row_0[3];
                                result[4] += scale * row_0[4];
                            }
                        }
                    }
                }
            }
        }
    }
}
