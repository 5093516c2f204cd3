// Y(r,s,t) = X(i,j,k) * U1(i,r) * U2(j,s) * U3(k,t)
//   path     X*U3 T1*U2 T2*U1
//   nest     i{ j{ k{ t{ T1 } } s{ t{ T2 } } } r{ s{ t{ T3 } } } }
//   layout   i j k
//   buffer   dense
//   buffer   dense
//   parallel i position privatise
//   prefetch U2 10
//   prefetch U3 10
// | buffer T1 [64], in registers
// | buffer T2 [64 x 64]
// | for i in level 1 of X
// |   T2 = 0
// |   for j in level 2 of X, 2 at a time
// |     T1 = 0
// |     for k in level 3 of X
// |       T1(t) += X(i,j,k) * U3(k,t)   over lanes t
// |     for s in 0..64
// |       T2(s,t) += T1(t) * U2(j,s)   over lanes t
// |   for r in 0..64
// |     for s in 0..64
// |       Y(r,s,t) += T2(s,t) * U1(i,r)   over lanes t
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
    const value *restrict U1 = in[6];
    const value *restrict U2 = in[7];
    const value *restrict U3 = in[8];
    (void)boundary;
    vec8 T1_0 = {0}, T1_1 = {0}, T1_2 = {0}, T1_3 = {0}, T1_4 = {0}, T1_5 = {0}, T1_6 = {0}, T1_7 = {0};
    value *restrict const T2 = scratch + 0;
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        for (size_t q = 0; q < 4096; ++q) T2[q] = 0;
        {
            uint64_t at_j = larger(task[2], child_i[at_i]);
            const uint64_t end_j = smaller(task[3], child_i[at_i + 1]);
            for (; at_j + 2 <= end_j; at_j += 2) {
                vec8 T1_0_of_0, T1_1_of_0, T1_2_of_0, T1_3_of_0, T1_4_of_0, T1_5_of_0, T1_6_of_0, T1_7_of_0;
                vec8 T1_0_of_1, T1_1_of_1, T1_2_of_1, T1_3_of_1, T1_4_of_1, T1_5_of_1, T1_6_of_1, T1_7_of_1;
                const value *scale_0[2];
                {
                    const uint64_t first_j = at_j;
                    const uint64_t at_j = first_j + 0;
                    const size_t j = coord_j[at_j];
                    {
                        const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 64);
                        __builtin_prefetch(ahead + 0);
                        __builtin_prefetch(ahead + 64);
                        __builtin_prefetch(ahead + 128);
                        __builtin_prefetch(ahead + 192);
                        __builtin_prefetch(ahead + 256);
                        __builtin_prefetch(ahead + 320);
                        __builtin_prefetch(ahead + 384);
                        __builtin_prefetch(ahead + 448);
                    }
                    T1_0 = T1_1 = T1_2 = T1_3 = T1_4 = T1_5 = T1_6 = T1_7 = (vec8){0};
                    for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                        const size_t k = coord_k[at_k];
                        {
                            const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 64);
                            __builtin_prefetch(ahead + 0);
                            __builtin_prefetch(ahead + 64);
                            __builtin_prefetch(ahead + 128);
                            __builtin_prefetch(ahead + 192);
                            __builtin_prefetch(ahead + 256);
                            __builtin_prefetch(ahead + 320);
                            __builtin_prefetch(ahead + 384);
                            __builtin_prefetch(ahead + 448);
                        }
                        {
                            const value scale = nonzero[at_k];
                            const vec8 *const row_0 = (const vec8 *)(U3 + k * 64);
                            T1_0 += scale * row_0[0];
                            T1_1 += scale * row_0[1];
                            T1_2 += scale * row_0[2];
                            T1_3 += scale * row_0[3];
                            T1_4 += scale * row_0[4];
                            T1_5 += scale * row_0[5];
                            T1_6 += scale * row_0[6];
                            T1_7 += scale * row_0[7];
                        }
                    }
                    T1_0_of_0 = T1_0;
                    T1_1_of_0 = T1_1;
                    T1_2_of_0 = T1_2;
                    T1_3_of_0 = T1_3;
                    T1_4_of_0 = T1_4;
                    T1_5_of_0 = T1_5;
                    T1_6_of_0 = T1_6;
                    T1_7_of_0 = T1_7;
                    scale_0[0] = &U2[j * 64];
                }
                {
                    const uint64_t first_j = at_j;
                    const uint64_t at_j = first_j + 1;
                    const size_t j = coord_j[at_j];
                    {
                        const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 64);
                        __builtin_prefetch(ahead + 0);
                        __builtin_prefetch(ahead + 64);
                        __builtin_prefetch(ahead + 128);
                        __builtin_prefetch(ahead + 192);
                        __builtin_prefetch(ahead + 256);
                        __builtin_prefetch(ahead + 320);
                        __builtin_prefetch(ahead + 384);
                        __builtin_prefetch(ahead + 448);
                    }
                    T1_0 = T1_1 = T1_2 = T1_3 = T1_4 = T1_5 = T1_6 = T1_7 = (vec8){0};
                    for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                        const size_t k = coord_k[at_k];
                        {
                            const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 64);
                            __builtin_prefetch(ahead + 0);
                            __builtin_prefetch(ahead + 64);
                            __builtin_prefetch(ahead + 128);
                            __builtin_prefetch(ahead + 192);
                            __builtin_prefetch(ahead + 256);
                            __builtin_prefetch(ahead + 320);
                            __builtin_prefetch(ahead + 384);
                            __builtin_prefetch(ahead + 448);
                        }
                        {
                            const value scale = nonzero[at_k];
                            const vec8 *const row_0 = (const vec8 *)(U3 + k * 64);
                            T1_0 += scale * row_0[0];
                            T1_1 += scale * row_0[1];
                            T1_2 += scale * row_0[2];
                            T1_3 += scale * row_0[3];
                            T1_4 += scale * row_0[4];
                            T1_5 += scale * row_0[5];
                            T1_6 += scale * row_0[6];
                            T1_7 += scale * row_0[7];
                        }
                    }
                    T1_0_of_1 = T1_0;
                    T1_1_of_1 = T1_1;
                    T1_2_of_1 = T1_2;
                    T1_3_of_1 = T1_3;
                    T1_4_of_1 = T1_4;
                    T1_5_of_1 = T1_5;
                    T1_6_of_1 = T1_6;
                    T1_7_of_1 = T1_7;
                    scale_0[1] = &U2[j * 64];
                }
                for (uint64_t s = 0; s < 64; ++s) {
                    const value scale_of_0 = scale_0[0][s * 1];
                    const value scale_of_1 = scale_0[1][s * 1];
                    vec8 *const result = (vec8 *)(T2 + s * 64);
                    result[0] = result[0] + scale_of_0 * T1_0_of_0 + scale_of_1 * T1_0_of_1;
                    result[1] = result[1] + scale_of_0 * T1_1_of_0 + scale_of_1 * T1_1_of_1;
                    result[2] = result[2] + scale_of_0 * T1_2_of_0 + scale_of_1 * T1_2_of_1;
                    result[3] = result[3] + scale_of_0 * T1_3_of_0 + scale_of_1 * T1_3_of_1;
                    result[4] = result[4] + scale_of_0 * T1_4_of_0 + scale_of_1 * T1_4_of_1;
                    result[5] = result[5] + scale_of_0 * T1_5_of_0 + scale_of_1 * T1_5_of_1;
                    result[6] = result[6] + scale_of_0 * T1_6_of_0 + scale_of_1 * T1_6_of_1;
                    result[7] = result[7] + scale_of_0 * T1_7_of_0 + scale_of_1 * T1_7_of_1;
                }
            }
            for (; at_j < end_j; ++at_j) {
                const size_t j = coord_j[at_j];
                {
                    const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 64);
                    __builtin_prefetch(ahead + 0);
                    __builtin_prefetch(ahead + 64);
                    __builtin_prefetch(ahead + 128);
                    __builtin_prefetch(ahead + 192);
                    __builtin_prefetch(ahead + 256);
                    __builtin_prefetch(ahead + 320);
                    __builtin_prefetch(ahead + 384);
                    __builtin_prefetch(ahead + 448);
                }
                T1_0 = T1_1 = T1_2 = T1_3 = T1_4 = T1_5 = T1_6 = T1_7 = (vec8){0};
                for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                    const size_t k = coord_k[at_k];
                    {
                        const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 64);
                        __builtin_prefetch(ahead + 0);
                        __builtin_prefetch(ahead + 64);
                        __builtin_prefetch(ahead + 128);
                        __builtin_prefetch(ahead + 192);
                        __builtin_prefetch(ahead + 256);
                        __builtin_prefetch(ahead + 320);
                        __builtin_prefetch(ahead + 384);
                        __builtin_prefetch(ahead + 448);
                    }
                    {
                        const value scale = nonzero[at_k];
                        const vec8 *const row_0 = (const vec8 *)(U3 + k * 64);
                        T1_0 += scale * row_0[0];
                        T1_1 += scale * row_0[1];
                        T1_2 += scale * row_0[2];
                        T1_3 += scale * row_0[3];
                        T1_4 += scale * row_0[4];
                        T1_5 += scale * row_0[5];
                        T1_6 += scale * row_0[6];
                        T1_7 += scale * row_0[7];
                    }
                }
                for (uint64_t s = 0; s < 64; ++s) {
                    {
                        const value scale = U2[j * 64 + s];
                        vec8 *const result = (vec8 *)(T2 + s * 64);
                        result[0] += scale * T1_0;
                        result[1] += scale * T1_1;
                        result[2] += scale * T1_2;
                        result[3] += scale * T1_3;
                        result[4] += scale * T1_4;
                        result[5] += scale * T1_5;
                        result[6] += scale * T1_6;
                        result[7] += scale * T1_7;
                    }
                }
            }
        }
        for (uint64_t r = 0; r < 64; ++r) {
            for (uint64_t s = 0; s < 64; ++s) {
                {
                    const value scale = U1[i * 64 + r];
                    vec8 *const row_0 = (vec8 *)(T2 + s * 64);
                    vec8 *const result = (vec8 *)(out + r * 4096 + s * 64);
                    result[0] += scale * row_0[0];
                    result[1] += scale * row_0[1];
                    result[2] += scale * row_0[2];
                    result[3] += scale * row_0[3];
                    result[4] += scale * row_0[4];
                    result[5] += scale * row_0[5];
                    result[6] += scale * row_0[6];
                    result[7] += scale * row_0[7];
                }
            }
        }
    }
}
