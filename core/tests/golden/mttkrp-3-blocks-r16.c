// A2(j,r) = X(_,i,j,k) * A1(i,r) * A3(k,r)
//   path     X*A1*A3
//   nest     _{ i{ j{ k{ r{ T1 } } } } }
//   layout   _ i j:singleton k:singleton
//   parallel _ position privatise
//   prefetch A1 10
//   prefetch A3 10
//   prefetch A2 10
// | buffer sum [16], in registers
// | for _ in level 1 of X
// |   for i in level 2 of X
// |     for j in singleton level 3 of X
// |       sum = 0
// |       for k in singleton level 4 of X
// |         sum(r) += X(_,i,j,k) * A1(i,r) * A3(k,r)   over lanes r
// |       A2(j,r) += sum(r)   over lanes r
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
    const uint16_t *restrict coord__ = in[0];
    const uint32_t *restrict child__ = in[1];
    const uint16_t *restrict coord_i = in[2];
    const uint16_t *restrict coord_j = in[3];
    const uint16_t *restrict coord_k = in[4];
    const value *restrict nonzero = in[5];
    const value *restrict A1 = in[6];
    const value *restrict A3 = in[7];
    (void)boundary;
    (void)scratch;
    vec8 sum_0 = {0}, sum_1 = {0};
    for (uint64_t at__ = task[0], end__ = task[1]; at__ < end__; ++at__) {
        const size_t _ = coord__[at__];
        for (uint64_t at_i = larger(task[2], child__[at__]), end_i = smaller(task[3], child__[at__ + 1]); at_i < end_i; ++at_i) {
            const size_t i = coord_i[at_i];
            {
                const char *const ahead = (const char *)(A1 + (size_t)coord_i[smaller(at_i + 10, task[3] - 1)] * 16);
                __builtin_prefetch(ahead + 0);
                __builtin_prefetch(ahead + 64);
            }
            {
                const uint64_t at_j = at_i;
                const size_t j = coord_j[at_j];
                {
                    const char *const ahead = (const char *)(out + (size_t)coord_j[smaller(at_i + 10, task[3] - 1)] * 16);
                    __builtin_prefetch(ahead + 0, 1);
                    __builtin_prefetch(ahead + 64, 1);
                }
                sum_0 = sum_1 = (vec8){0};
                {
                    const uint64_t at_k = at_j;
                    const size_t k = coord_k[at_k];
                    {
                        const char *const ahead = (const char *)(A3 + (size_t)coord_k[smaller(at_i + 10, task[3] - 1)] * 16);
                        __builtin_prefetch(ahead + 0);
                        __builtin_prefetch(ahead + 64);
                    }
                    {
                        const value scale = nonzero[at_k];
                        const vec8 *const row_0 = (const vec8 *)(A1 + i * 16);
                        const vec8 *const row_1 = (const vec8 *)(A3 + k * 16);
                        sum_0 += scale * row_0[0] * row_1[0];
                        sum_1 += scale * row_0[1] * row_1[1];
                    }
                }
                {
                    vec8 *const result = (vec8 *)(out + j * 16);
                    result[0] += sum_0;
                    result[1] += sum_1;
                }
            }
        }
    }
}
