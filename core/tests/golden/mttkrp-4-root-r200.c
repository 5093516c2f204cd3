// A1(i,r) = X(i,j,k,l) * A2(j,r) * A3(k,r) * A4(l,r)
//   path     X*A4 T1*A3 T2*A2
//   nest     i{ j{ k{ l{ r{ T1 } } r{ T2 } } r{ T3 } } }
//   layout   i j k l
//   buffer   dense
//   buffer   dense
//   parallel i position boundary
//   prefetch A2 10
//   prefetch A3 10
//   prefetch A4 10
// | buffer T1 [200]
// | buffer T2 [200]
// | buffer sum [200]
// | for i in level 1 of X
// |   sum = 0
// |   for j in level 2 of X
// |     T2 = 0
// |     for k in level 3 of X
// |       T1 = 0
// |       for l in level 4 of X, row in 3 tiles
// |         T1(r) += X(i,j,k,l) * A4(l,r)   over lanes r
// |       T2(r) += T1(r) * A3(k,r)   over lanes r
// |     sum(r) += T2(r) * A2(j,r)   over lanes r
// |   A1(i,r) = sum(r)   over lanes r
#include <stddef.h>
#include <stdint.h>
typedef double value;
typedef value vec1 __attribute__((may_alias));
typedef value vec2 __attribute__((vector_size(16), may_alias));
typedef value vec4 __attribute__((vector_size(32), may_alias));
typedef value vec8 __attribute__((vector_size(64), may_alias));
static inline uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

void decompose_kernel(const void *const *in, value *out, value *boundary, value *scratch, const uint64_t *task)
{
    const uint16_t *restrict coord_i = in[0];
    const uint32_t *restrict child_i = in[1];
    const uint16_t *restrict coord_j = in[2];
    const uint32_t *restrict child_j = in[3];
    const uint16_t *restrict coord_k = in[4];
    const uint32_t *restrict child_k = in[5];
    const uint16_t *restrict coord_l = in[6];
    const value *restrict nonzero = in[7];
    const value *restrict A2 = in[8];
    const value *restrict A3 = in[9];
    const value *restrict A4 = in[10];
    (void)scratch;
    value T1[200] __attribute__((aligned(64)));
    value T2[200] __attribute__((aligned(64)));
    value sum[200] __attribute__((aligned(64)));
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        value *const row = boundary && at_i == task[0] ? boundary : out + i * 200;
        for (size_t q = 0; q < 200; ++q) sum[q] = 0;
        for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
            const size_t j = coord_j[at_j];
            {
                const char *const ahead = (const char *)(A2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 200);
                __builtin_prefetch(ahead + 0);
                __builtin_prefetch(ahead + 64);
                __builtin_prefetch(ahead + 128);
                __builtin_prefetch(ahead + 192);
                __builtin_prefetch(ahead + 256);
                __builtin_prefetch(ahead + 320);
                __builtin_prefetch(ahead + 384);
                __builtin_prefetch(ahead + 448);
                __builtin_prefetch(ahead + 512);
                __builtin_prefetch(ahead + 576);
                __builtin_prefetch(ahead + 640);
                __builtin_prefetch(ahead + 704);
                __builtin_prefetch(ahead + 768);
                __builtin_prefetch(ahead + 832);
                __builtin_prefetch(ahead + 896);
                __builtin_prefetch(ahead + 960);
                __builtin_prefetch(ahead + 1024);
                __builtin_prefetch(ahead + 1088);
                __builtin_prefetch(ahead + 1152);
                __builtin_prefetch(ahead + 1216);
                __builtin_prefetch(ahead + 1280);
                __builtin_prefetch(ahead + 1344);
                __builtin_prefetch(ahead + 1408);
                __builtin_prefetch(ahead + 1472);
                __builtin_prefetch(ahead + 1536);
            }
            for (size_t q = 0; q < 200; ++q) T2[q] = 0;
            for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                const size_t k = coord_k[at_k];
                {
                    const char *const ahead = (const char *)(A3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 200);
                    __builtin_prefetch(ahead + 0);
                    __builtin_prefetch(ahead + 64);
                    __builtin_prefetch(ahead + 128);
                    __builtin_prefetch(ahead + 192);
                    __builtin_prefetch(ahead + 256);
                    __builtin_prefetch(ahead + 320);
                    __builtin_prefetch(ahead + 384);
                    __builtin_prefetch(ahead + 448);
                    __builtin_prefetch(ahead + 512);
                    __builtin_prefetch(ahead + 576);
                    __builtin_prefetch(ahead + 640);
                    __builtin_prefetch(ahead + 704);
                    __builtin_prefetch(ahead + 768);
                    __builtin_prefetch(ahead + 832);
                    __builtin_prefetch(ahead + 896);
                    __builtin_prefetch(ahead + 960);
                    __builtin_prefetch(ahead + 1024);
                    __builtin_prefetch(ahead + 1088);
                    __builtin_prefetch(ahead + 1152);
                    __builtin_prefetch(ahead + 1216);
                    __builtin_prefetch(ahead + 1280);
                    __builtin_prefetch(ahead + 1344);
                    __builtin_prefetch(ahead + 1408);
                    __builtin_prefetch(ahead + 1472);
                    __builtin_prefetch(ahead + 1536);
                }
                for (size_t q = 0; q < 200; ++q) T1[q] = 0;
                {
                    vec8 *const sums = (vec8 *)(T1 + 0);
                    vec8 tile_0 = sums[0];
                    vec8 tile_1 = sums[1];
                    vec8 tile_2 = sums[2];
                    vec8 tile_3 = sums[3];
                    vec8 tile_4 = sums[4];
                    vec8 tile_5 = sums[5];
                    vec8 tile_6 = sums[6];
                    vec8 tile_7 = sums[7];
                    for (uint64_t at_l = larger(task[6], child_k[at_k]), end_l = smaller(task[7], child_k[at_k + 1]); at_l < end_l; ++at_l) {
                        const size_t l = coord_l[at_l];
                        {
                            const char *const ahead = (const char *)(A4 + (size_t)coord_l[smaller(at_l + 10, task[7] - 1)] * 200);
                            __builtin_prefetch(ahead + 0);
                            __builtin_prefetch(ahead + 64);
                            __builtin_prefetch(ahead + 128);
                            __builtin_prefetch(ahead + 192);
                            __builtin_prefetch(ahead + 256);
                            __builtin_prefetch(ahead + 320);
                            __builtin_prefetch(ahead + 384);
                            __builtin_prefetch(ahead + 448);
                            __builtin_prefetch(ahead + 512);
                            __builtin_prefetch(ahead + 576);
                            __builtin_prefetch(ahead + 640);
                            __builtin_prefetch(ahead + 704);
                            __builtin_prefetch(ahead + 768);
                            __builtin_prefetch(ahead + 832);
                            __builtin_prefetch(ahead + 896);
                            __builtin_prefetch(ahead + 960);
                            __builtin_prefetch(ahead + 1024);
                            __builtin_prefetch(ahead + 1088);
                            __builtin_prefetch(ahead + 1152);
                            __builtin_prefetch(ahead + 1216);
                            __builtin_prefetch(ahead + 1280);
                            __builtin_prefetch(ahead + 1344);
                            __builtin_prefetch(ahead + 1408);
                            __builtin_prefetch(ahead + 1472);
                            __builtin_prefetch(ahead + 1536);
                        }
                        const value scale = nonzero[at_l];
                        const vec8 *const row_0 = (const vec8 *)(A4 + l * 200);
                        tile_0 += scale * row_0[0];
                        tile_1 += scale * row_0[1];
                        tile_2 += scale * row_0[2];
                        tile_3 += scale * row_0[3];
                        tile_4 += scale * row_0[4];
                        tile_5 += scale * row_0[5];
                        tile_6 += scale * row_0[6];
                        tile_7 += scale * row_0[7];
                    }
                    sums[0] = tile_0;
                    sums[1] = tile_1;
                    sums[2] = tile_2;
                    sums[3] = tile_3;
                    sums[4] = tile_4;
                    sums[5] = tile_5;
                    sums[6] = tile_6;
                    sums[7] = tile_7;
                }
                {
                    vec8 *const sums = (vec8 *)(T1 + 0);
                    vec8 tile_8 = sums[8];
                    vec8 tile_9 = sums[9];
                    vec8 tile_10 = sums[10];
                    vec8 tile_11 = sums[11];
                    vec8 tile_12 = sums[12];
                    vec8 tile_13 = sums[13];
                    vec8 tile_14 = sums[14];
                    vec8 tile_15 = sums[15];
                    for (uint64_t at_l = larger(task[6], child_k[at_k]), end_l = smaller(task[7], child_k[at_k + 1]); at_l < end_l; ++at_l) {
                        const size_t l = coord_l[at_l];
                        const value scale = nonzero[at_l];
                        const vec8 *const row_0 = (const vec8 *)(A4 + l * 200);
                        tile_8 += scale * row_0[8];
                        tile_9 += scale * row_0[9];
                        tile_10 += scale * row_0[10];
                        tile_11 += scale * row_0[11];
                        tile_12 += scale * row_0[12];
                        tile_13 += scale * row_0[13];
                        tile_14 += scale * row_0[14];
                        tile_15 += scale * row_0[15];
                    }
                    sums[8] = tile_8;
                    sums[9] = tile_9;
                    sums[10] = tile_10;
                    sums[11] = tile_11;
                    sums[12] = tile_12;
                    sums[13] = tile_13;
                    sums[14] = tile_14;
                    sums[15] = tile_15;
                }
                {
                    vec8 *const sums = (vec8 *)(T1 + 0);
                    vec8 tile_16 = sums[16];
                    vec8 tile_17 = sums[17];
                    vec8 tile_18 = sums[18];
                    vec8 tile_19 = sums[19];
                    vec8 tile_20 = sums[20];
                    vec8 tile_21 = sums[21];
                    vec8 tile_22 = sums[22];
                    vec8 tile_23 = sums[23];
                    vec8 tile_24 = sums[24];
                    for (uint64_t at_l = larger(task[6], child_k[at_k]), end_l = smaller(task[7], child_k[at_k + 1]); at_l < end_l; ++at_l) {
                        const size_t l = coord_l[at_l];
                        const value scale = nonzero[at_l];
                        const vec8 *const row_0 = (const vec8 *)(A4 + l * 200);
                        tile_16 += scale * row_0[16];
                        tile_17 += scale * row_0[17];
                        tile_18 += scale * row_0[18];
                        tile_19 += scale * row_0[19];
                        tile_20 += scale * row_0[20];
                        tile_21 += scale * row_0[21];
                        tile_22 += scale * row_0[22];
                        tile_23 += scale * row_0[23];
                        tile_24 += scale * row_0[24];
                    }
                    sums[16] = tile_16;
                    sums[17] = tile_17;
                    sums[18] = tile_18;
                    sums[19] = tile_19;
                    sums[20] = tile_20;
                    sums[21] = tile_21;
                    sums[22] = tile_22;
                    sums[23] = tile_23;
                    sums[24] = tile_24;
                }
                {
                    vec8 *const row_0 = (vec8 *)(T1 + 0);
                    const vec8 *const row_1 = (const vec8 *)(A3 + k * 200);
                    vec8 *const result = (vec8 *)(T2 + 0);
                    result[0] += row_0[0] * row_1[0];
                    result[1] += row_0[1] * row_1[1];
                    result[2] += row_0[2] * row_1[2];
                    result[3] += row_0[3] * row_1[3];
                    result[4] += row_0[4] * row_1[4];
                    result[5] += row_0[5] * row_1[5];
                    result[6] += row_0[6] * row_1[6];
                    result[7] += row_0[7] * row_1[7];
                    result[8] += row_0[8] * row_1[8];
                    result[9] += row_0[9] * row_1[9];
                    result[10] += row_0[10] * row_1[10];
                    result[11] += row_0[11] * row_1[11];
                    result[12] += row_0[12] * row_1[12];
                    result[13] += row_0[13] * row_1[13];
                    result[14] += row_0[14] * row_1[14];
                    result[15] += row_0[15] * row_1[15];
                    result[16] += row_0[16] * row_1[16];
                    result[17] += row_0[17] * row_1[17];
                    result[18] += row_0[18] * row_1[18];
                    result[19] += row_0[19] * row_1[19];
                    result[20] += row_0[20] * row_1[20];
                    result[21] += row_0[21] * row_1[21];
                    result[22] += row_0[22] * row_1[22];
                    result[23] += row_0[23] * row_1[23];
                    result[24] += row_0[24] * row_1[24];
                }
            }
            {
                vec8 *const row_0 = (vec8 *)(T2 + 0);
                const vec8 *const row_1 = (const vec8 *)(A2 + j * 200);
                vec8 *const result = (vec8 *)(sum + 0);
                result[0] += row_0[0] * row_1[0];
                result[1] += row_0[1] * row_1[1];
                result[2] += row_0[2] * row_1[2];
                result[3] += row_0[3] * row_1[3];
                result[4] += row_0[4] * row_1[4];
                result[5] += row_0[5] * row_1[5];
                result[6] += row_0[6] * row_1[6];
                result[7] += row_0[7] * row_1[7];
                result[8] += row_0[8] * row_1[8];
                result[9] += row_0[9] * row_1[9];
                result[10] += row_0[10] * row_1[10];
                result[11] += row_0[11] * row_1[11];
                result[12] += row_0[12] * row_1[12];
                result[13] += row_0[13] * row_1[13];
                result[14] += row_0[14] * row_1[14];
                result[15] += row_0[15] * row_1[15];
                result[16] += row_0[16] * row_1[16];
                result[17] += row_0[17] * row_1[17];
                result[18] += row_0[18] * row_1[18];
                result[19] += row_0[19] * row_1[19];
                result[20] += row_0[20] * row_1[20];
                result[21] += row_0[21] * row_1[21];
                result[22] += row_0[22] * row_1[22];
                result[23] += row_0[23] * row_1[23];
                result[24] += row_0[24] * row_1[24];
            }
        }
        {
            vec8 *const row_0 = (vec8 *)(sum + 0);
            vec8 *const result = (vec8 *)(row + 0);
            result[0] = row_0[0];
            result[1] = row_0[1];
            result[2] = row_0[2];
            result[3] = row_0[3];
            result[4] = row_0[4];
            result[5] = row_0[5];
            result[6] = row_0[6];
            result[7] = row_0[7];
            result[8] = row_0[8];
            result[9] = row_0[9];
            result[10] = row_0[10];
            result[11] = row_0[11];
            result[12] = row_0[12];
            result[13] = row_0[13];
            result[14] = row_0[14];
            result[15] = row_0[15];
            result[16] = row_0[16];
            result[17] = row_0[17];
            result[18] = row_0[18];
            result[19] = row_0[19];
            result[20] = row_0[20];
            result[21] = row_0[21];
            result[22] = row_0[22];
            result[23] = row_0[23];
            result[24] = row_0[24];
        }
    }
}
