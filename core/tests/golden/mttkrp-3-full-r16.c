// A1(i,r) = X(i,j,k) * A2(j,r) * A3(k,r)
//   path     X*A2 T1*A3
//   nest     i{ j{ k{ r{ T1 } } } k{ r{ T2 } } }
//   layout   i j k:dense
//   buffer   dense
//   parallel i position boundary
// | buffer T1 [30 x 16]
// | buffer sum [16], in registers
// | for i in level 1 of X
// |   sum = 0
// |   T1 = 0
// |   for j in level 2 of X
// |     for k in dense level 3 of X
// |       T1(k,r) += X(i,j,k) * A2(j,r)   over lanes r
// |   for k in 0..30, row in 1 tile
// |     sum(r) += T1(k,r) * A3(k,r)   over lanes r
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
    const value *restrict nonzero = in[4];
    const value *restrict A2 = in[5];
    const value *restrict A3 = in[6];
    (void)scratch;
    value T1[480] __attribute__((aligned(64)));
    vec8 sum_0 = {0}, sum_1 = {0};
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        value *const row = boundary && at_i == task[0] ? boundary : out + i * 16;
        sum_0 = sum_1 = (vec8){0};
        for (size_t q = 0; q < 480; ++q) T1[q] = 0;
        for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
            const size_t j = coord_j[at_j];
            for (uint64_t at_k = larger(task[4], at_j * 30), end_k = smaller(task[5], (at_j + 1) * 30); at_k < end_k; ++at_k) {
                const size_t k = at_k - at_j * 30;
                {
                    const value scale = nonzero[at_k];
                    const vec8 *const row_0 = (const vec8 *)(A2 + j * 16);
                    vec8 *const result = (vec8 *)(T1 + k * 16);
                    result[0] += scale * row_0[0];
                    result[1] += scale * row_0[1];
                }
            }
        }
        {
            vec8 part_0_0 = {0}, part_0_1 = {0};
            vec8 part_1_0 = {0}, part_1_1 = {0};
            vec8 part_2_0 = {0}, part_2_1 = {0};
            vec8 part_3_0 = {0}, part_3_1 = {0};
            for (uint64_t from_k = 0; from_k < 28; from_k += 4) {
                {
                    const uint64_t k = from_k + 0;
                    vec8 *const row_0 = (vec8 *)(T1 + k * 16);
                    const vec8 *const row_1 = (const vec8 *)(A3 + k * 16);
                    part_0_0 += row_0[0] * row_1[0];
                    part_0_1 += row_0[1] * row_1[1];
                }
                {
                    const uint64_t k = from_k + 1;
                    vec8 *const row_0 = (vec8 *)(T1 + k * 16);
                    const vec8 *const row_1 = (const vec8 *)(A3 + k * 16);
                    part_1_0 += row_0[0] * row_1[0];
                    part_1_1 += row_0[1] * row_1[1];
                }
                {
                    const uint64_t k = from_k + 2;
                    vec8 *const row_0 = (vec8 *)(T1 + k * 16);
                    const vec8 *const row_1 = (const vec8 *)(A3 + k * 16);
                    part_2_0 += row_0[0] * row_1[0];
                    part_2_1 += row_0[1] * row_1[1];
                }
                {
                    const uint64_t k = from_k + 3;
                    vec8 *const row_0 = (vec8 *)(T1 + k * 16);
                    const vec8 *const row_1 = (const vec8 *)(A3 + k * 16);
                    part_3_0 += row_0[0] * row_1[0];
                    part_3_1 += row_0[1] * row_1[1];
                }
            }
            {
                const uint64_t k = 28;
                vec8 *const row_0 = (vec8 *)(T1 + k * 16);
                const vec8 *const row_1 = (const vec8 *)(A3 + k * 16);
                part_0_0 += row_0[0] * row_1[0];
                part_0_1 += row_0[1] * row_1[1];
            }
            {
                const uint64_t k = 29;
                vec8 *const row_0 = (vec8 *)(T1 + k * 16);
                const vec8 *const row_1 = (const vec8 *)(A3 + k * 16);
                part_1_0 += row_0[0] * row_1[0];
                part_1_1 += row_0[1] * row_1[1];
            }
            sum_0 += ((part_0_0 + part_1_0) + (part_2_0 + part_3_0));
            sum_1 += ((part_0_1 + part_1_1) + (part_2_1 + part_3_1));
        }
        {
            vec8 *const result = (vec8 *)(row + 0);
            result[0] = sum_0;
            result[1] = sum_1;
        }
    }
}
