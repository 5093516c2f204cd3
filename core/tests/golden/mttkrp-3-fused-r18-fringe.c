// A1(i,r) = X(i,j,k) * A2(j,r) * A3(k,r)
//   path     X*A3 T1*A2
//   nest     i{ j{ k{ r{ T1 } } r{ T2 } } }
//   layout   i j+ k
//   buffer   dense
//   parallel i position boundary
// | buffer T1 [16]
// | buffer sum [16]
// | buffer T1_fringe [2]
// | buffer sum_fringe [2]
// | for i in level 1 of X
// |   sum = 0
// |   sum_fringe = 0
// |   for j in level 2 of X
// |     T1 = 0
// |     T1_fringe = 0
// |     for k in level 3 of X
// |       T1(r) += X(i,j,k) * A3(k,r)   over lanes r
// |       T1_fringe(a) += X(i,j,k) * A3_fringe(k,a)   over lanes a
// |     sum(r) += T1(r) * A2(j,r)   over lanes r
// |     sum_fringe(a) += T1_fringe(a) * A2_fringe(j,a)   over lanes a
// |   A1(i,r) = sum(r)   over lanes r
// |   A1_fringe(i,a) = sum_fringe(a)   over lanes a
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
    const uint16_t *restrict coord_k = in[3];
    const value *restrict nonzero = in[4];
    const value *restrict A2 = in[5];
    const value *restrict A3 = in[6];
    const value *restrict A2_fringe = in[7];
    const value *restrict A3_fringe = in[8];
    value *const out_fringe = (value *)in[10];
    value *const boundary_fringe = (value *)in[11];
    (void)scratch;
    vec8 T1_0 = {0}, T1_1 = {0};
    vec8 sum_0 = {0}, sum_1 = {0};
    vec2 T1_fringe_0 = {0};
    vec2 sum_fringe_0 = {0};
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        value *const row = boundary && at_i == task[0] ? boundary : out + i * 16;
        value *const row_fringe = boundary && at_i == task[0] ? boundary_fringe : out_fringe + i * 2;
        sum_0 = sum_1 = (vec8){0};
        sum_fringe_0 = (vec2){0};
        for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
            const size_t j = coord_j[at_j];
            T1_0 = T1_1 = (vec8){0};
            T1_fringe_0 = (vec2){0};
            {
                const uint64_t at_k = at_j;
                const size_t k = coord_k[at_k];
                {
                    const value scale = nonzero[at_k];
                    const vec8 *const row_0 = (const vec8 *)(A3 + k * 16);
                    T1_0 += scale * row_0[0];
                    T1_1 += scale * row_0[1];
                }
                {
                    const value scale = nonzero[at_k];
                    const vec2 *const row_0 = (const vec2 *)(A3_fringe + k * 2);
                    T1_fringe_0 += scale * row_0[0];
                }
            }
            {
                const vec8 *const row_1 = (const vec8 *)(A2 + j * 16);
                sum_0 += T1_0 * row_1[0];
                sum_1 += T1_1 * row_1[1];
            }
            {
                const vec2 *const row_1 = (const vec2 *)(A2_fringe + j * 2);
                sum_fringe_0 += T1_fringe_0 * row_1[0];
            }
        }
        {
            vec8 *const result = (vec8 *)(row + 0);
            result[0] = sum_0;
            result[1] = sum_1;
        }
        {
            vec2 *const result = (vec2 *)(row_fringe + 0);
            result[0] = sum_fringe_0;
        }
    }
}
