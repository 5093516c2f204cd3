// S(i,j,k) = X(i,j,k) * A1(i,r) * A2(j,r) * A3(k,r)
//   path     A1*A2 T1*A3 X*T2
//   nest     i{ j{ r{ T1 } k{ r{ T2 } T3 } } }
//   layout   i j k
//   buffer   dense
//   buffer   dense
//   parallel i position positions
//   prefetch A2 10
//   prefetch A3 10
// | buffer T1 [16], in registers
// | buffer T2 []
// | for i in level 1 of X
// |   for j in level 2 of X
// |     T1(r) = A1(i,r) * A2(j,r)   over lanes r
// |     for k in level 3 of X
// |       T2 = 0
// |       T2() += T1(r) * A3(k,r)   over lanes r
// |       S() = X(i,j,k) * T2()
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
    const value *restrict A1 = in[6];
    const value *restrict A2 = in[7];
    const value *restrict A3 = in[8];
    (void)boundary;
    (void)scratch;
    vec8 T1_0 = {0}, T1_1 = {0};
    value T2 = 0;
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
            const size_t j = coord_j[at_j];
            {
                const char *const ahead = (const char *)(A2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                __builtin_prefetch(ahead + 0);
                __builtin_prefetch(ahead + 64);
            }
            {
                const vec8 *const row_0 = (const vec8 *)(A1 + i * 16);
                const vec8 *const row_1 = (const vec8 *)(A2 + j * 16);
                T1_0 = row_0[0] * row_1[0];
                T1_1 = row_0[1] * row_1[1];
            }
            for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                const size_t k = coord_k[at_k];
                value *const row = out + at_k * 1;
                {
                    const char *const ahead = (const char *)(A3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                    __builtin_prefetch(ahead + 0);
                    __builtin_prefetch(ahead + 64);
                }
                T2 = 0;
                {
                    const vec8 *const row_1 = (const vec8 *)(A3 + k * 16);
                    vec8 lanes = {0};
                    lanes += T1_0 * row_1[0];
                    lanes += T1_1 * row_1[1];
                    const vec4 lanes_4 = ((vec4 *)&lanes)[0] + ((vec4 *)&lanes)[1];
                    const vec2 lanes_2 = ((vec2 *)&lanes_4)[0] + ((vec2 *)&lanes_4)[1];
                    const vec1 lanes_1 = ((vec1 *)&lanes_2)[0] + ((vec1 *)&lanes_2)[1];
                    T2 += lanes_1;
                }
                row[0] = nonzero[at_k] * T2;
            }
        }
    }
}
