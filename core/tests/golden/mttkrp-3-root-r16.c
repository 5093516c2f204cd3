// A1(i,r) = X(i,j,k) * A2(j,r) * A3(k,r)
//   path     X*A3 T1*A2
//   nest     i{ j{ k{ r{ T1 } } r{ T2 } } }
//   layout   i j k
//   buffer   dense
//   parallel i position boundary
//   prefetch A2 10
//   prefetch A3 10
// | buffer T1 [16], in registers
// | buffer sum [16], in registers
// | for i in level 1 of X
// |   sum = 0
// |   for j in level 2 of X
// |     T1 = 0
// |     for k in level 3 of X
// |       T1(r) += X(i,j,k) * A3(k,r)   over lanes r
// |     sum(r) += T1(r) * A2(j,r)   over lanes r
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
    const value *restrict nonzero = in[5];
    const value *restrict A2 = in[6];
    const value *restrict A3 = in[7];
    (void)scratch;
    vec8 T1_0 = {0}, T1_1 = {0};
    vec8 sum_0 = {0}, sum_1 = {0};
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        value *const row = boundary && at_i == task[0] ? boundary : out + i * 16;
        sum_0 = sum_1 = (vec8){0};
        for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
            const size_t j = coord_j[at_j];
            {
                const char *const ahead = (const char *)(A2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                __builtin_prefetch(ahead + 0);
                __builtin_prefetch(ahead + 64);
            }
            T1_0 = T1_1 = (vec8){0};
            for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                const size_t k = coord_k[at_k];
                {
                    const char *const ahead = (const char *)(A3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                    __builtin_prefetch(ahead + 0);
                    __builtin_prefetch(ahead + 64);
                }
                {
                    const value scale = nonzero[at_k];
                    const vec8 *const row_0 = (const vec8 *)(A3 + k * 16);
                    T1_0 += scale * row_0[0];
                    T1_1 += scale * row_0[1];
                }
            }
            {
                const vec8 *const row_1 = (const vec8 *)(A2 + j * 16);
                sum_0 += T1_0 * row_1[0];
                sum_1 += T1_1 * row_1[1];
            }
        }
        {
            vec8 *const result = (vec8 *)(row + 0);
            result[0] = sum_0;
            result[1] = sum_1;
        }
    }
}
