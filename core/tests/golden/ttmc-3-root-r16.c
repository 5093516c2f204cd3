// Y(i,s,t) = X(i,j,k) * U2(j,s) * U3(k,t)
//   path     X*U3 T1*U2
//   nest     i{ j{ k{ t{ T1 } } s{ t{ T2 } } } }
//   layout   i j k
//   buffer   dense
//   parallel i position boundary
//   prefetch U2 10
//   prefetch U3 10
// | buffer T1 [16], in registers
// | buffer sum [16 x 16]
// | for i in level 1 of X, rows of up to 4 nodes at once
// |   sum = 0
// |   for j in level 2 of X, 4 at a time
// |     T1 = 0
// |     for k in level 3 of X
// |       T1(t) += X(i,j,k) * U3(k,t)   over lanes t
// |     for s in 0..16
// |       sum(s,t) += T1(t) * U2(j,s)   over lanes t
// |   for s in 0..16
// |     Y(i,s,t) = sum(s,t)   over lanes t
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
    const value *restrict U2 = in[6];
    const value *restrict U3 = in[7];
    (void)scratch;
    vec8 T1_0 = {0}, T1_1 = {0};
    value sum[256] __attribute__((aligned(64)));
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        value *const row = boundary && at_i == task[0] ? boundary : out + i * 256;
        const uint64_t at_j = larger(task[2], child_i[at_i]);
        const uint64_t count = smaller(task[3], child_i[at_i + 1]) - at_j;
        if (0 < count && count <= 4) {
            vec8 T1_0_of_0, T1_1_of_0;
            vec8 T1_0_of_1, T1_1_of_1;
            vec8 T1_0_of_2, T1_1_of_2;
            vec8 T1_0_of_3, T1_1_of_3;
            const value *scale_0[4];
            switch (count) {
            case 4: { // and all below
                const uint64_t first_j = at_j;
                const uint64_t at_j = first_j + 3;
                const size_t j = coord_j[at_j];
                {
                    const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                    __builtin_prefetch(ahead + 0);
                    __builtin_prefetch(ahead + 64);
                }
                T1_0 = T1_1 = (vec8){0};
                for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                    const size_t k = coord_k[at_k];
                    {
                        const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                        __builtin_prefetch(ahead + 0);
                        __builtin_prefetch(ahead + 64);
                    }
                    {
                        const value scale = nonzero[at_k];
                        const vec8 *const row_0 = (const vec8 *)(U3 + k * 16);
                        T1_0 += scale * row_0[0];
                        T1_1 += scale * row_0[1];
                    }
                }
                T1_0_of_3 = T1_0;
                T1_1_of_3 = T1_1;
                scale_0[3] = &U2[j * 16];
            }
            case 3: { // and all below
                const uint64_t first_j = at_j;
                const uint64_t at_j = first_j + 2;
                const size_t j = coord_j[at_j];
                {
                    const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                    __builtin_prefetch(ahead + 0);
                    __builtin_prefetch(ahead + 64);
                }
                T1_0 = T1_1 = (vec8){0};
                for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                    const size_t k = coord_k[at_k];
                    {
                        const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                        __builtin_prefetch(ahead + 0);
                        __builtin_prefetch(ahead + 64);
                    }
                    {
                        const value scale = nonzero[at_k];
                        const vec8 *const row_0 = (const vec8 *)(U3 + k * 16);
                        T1_0 += scale * row_0[0];
                        T1_1 += scale * row_0[1];
                    }
                }
                T1_0_of_2 = T1_0;
                T1_1_of_2 = T1_1;
                scale_0[2] = &U2[j * 16];
            }
            case 2: { // and all below
                const uint64_t first_j = at_j;
                const uint64_t at_j = first_j + 1;
                const size_t j = coord_j[at_j];
                {
                    const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                    __builtin_prefetch(ahead + 0);
                    __builtin_prefetch(ahead + 64);
                }
                T1_0 = T1_1 = (vec8){0};
                for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                    const size_t k = coord_k[at_k];
                    {
                        const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                        __builtin_prefetch(ahead + 0);
                        __builtin_prefetch(ahead + 64);
                    }
                    {
                        const value scale = nonzero[at_k];
                        const vec8 *const row_0 = (const vec8 *)(U3 + k * 16);
                        T1_0 += scale * row_0[0];
                        T1_1 += scale * row_0[1];
                    }
                }
                T1_0_of_1 = T1_0;
                T1_1_of_1 = T1_1;
                scale_0[1] = &U2[j * 16];
            }
            case 1: { // and all below
                const uint64_t first_j = at_j;
                const uint64_t at_j = first_j + 0;
                const size_t j = coord_j[at_j];
                {
                    const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                    __builtin_prefetch(ahead + 0);
                    __builtin_prefetch(ahead + 64);
                }
                T1_0 = T1_1 = (vec8){0};
                for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                    const size_t k = coord_k[at_k];
                    {
                        const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                        __builtin_prefetch(ahead + 0);
                        __builtin_prefetch(ahead + 64);
                    }
                    {
                        const value scale = nonzero[at_k];
                        const vec8 *const row_0 = (const vec8 *)(U3 + k * 16);
                        T1_0 += scale * row_0[0];
                        T1_1 += scale * row_0[1];
                    }
                }
                T1_0_of_0 = T1_0;
                T1_1_of_0 = T1_1;
                scale_0[0] = &U2[j * 16];
            }
            }
            switch (count) {
            case 1: {
                for (uint64_t s = 0; s < 16; ++s) {
                    const value scale_of_0 = scale_0[0][s * 1];
                    vec8 *const result = (vec8 *)(row + s * 16);
                    result[0] = scale_of_0 * T1_0_of_0;
                    result[1] = scale_of_0 * T1_1_of_0;
                }
                break;
            }
            case 2: {
                for (uint64_t s = 0; s < 16; ++s) {
                    const value scale_of_0 = scale_0[0][s * 1];
                    const value scale_of_1 = scale_0[1][s * 1];
                    vec8 *const result = (vec8 *)(row + s * 16);
                    result[0] = scale_of_0 * T1_0_of_0 + scale_of_1 * T1_0_of_1;
                    result[1] = scale_of_0 * T1_1_of_0 + scale_of_1 * T1_1_of_1;
                }
                break;
            }
            case 3: {
                for (uint64_t s = 0; s < 16; ++s) {
                    const value scale_of_0 = scale_0[0][s * 1];
                    const value scale_of_1 = scale_0[1][s * 1];
                    const value scale_of_2 = scale_0[2][s * 1];
                    vec8 *const result = (vec8 *)(row + s * 16);
                    result[0] = scale_of_0 * T1_0_of_0 + scale_of_1 * T1_0_of_1 + scale_of_2 * T1_0_of_2;
                    result[1] = scale_of_0 * T1_1_of_0 + scale_of_1 * T1_1_of_1 + scale_of_2 * T1_1_of_2;
                }
                break;
            }
            case 4: {
                for (uint64_t s = 0; s < 16; ++s) {
                    const value scale_of_0 = scale_0[0][s * 1];
                    const value scale_of_1 = scale_0[1][s * 1];
                    const value scale_of_2 = scale_0[2][s * 1];
                    const value scale_of_3 = scale_0[3][s * 1];
                    vec8 *const result = (vec8 *)(row + s * 16);
                    result[0] = scale_of_0 * T1_0_of_0 + scale_of_1 * T1_0_of_1 + scale_of_2 * T1_0_of_2 + scale_of_3 * T1_0_of_3;
                    result[1] = scale_of_0 * T1_1_of_0 + scale_of_1 * T1_1_of_1 + scale_of_2 * T1_1_of_2 + scale_of_3 * T1_1_of_3;
                }
                break;
            }
            }
        }
        else {
            for (size_t q = 0; q < 256; ++q) sum[q] = 0;
            {
                uint64_t at_j = larger(task[2], child_i[at_i]);
                const uint64_t end_j = smaller(task[3], child_i[at_i + 1]);
                for (; at_j + 4 <= end_j; at_j += 4) {
                    vec8 T1_0_of_0, T1_1_of_0;
                    vec8 T1_0_of_1, T1_1_of_1;
                    vec8 T1_0_of_2, T1_1_of_2;
                    vec8 T1_0_of_3, T1_1_of_3;
                    const value *scale_0[4];
                    {
                        const uint64_t first_j = at_j;
                        const uint64_t at_j = first_j + 0;
                        const size_t j = coord_j[at_j];
                        {
                            const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                            __builtin_prefetch(ahead + 0);
                            __builtin_prefetch(ahead + 64);
                        }
                        T1_0 = T1_1 = (vec8){0};
                        for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                            const size_t k = coord_k[at_k];
                            {
                                const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                                __builtin_prefetch(ahead + 0);
                                __builtin_prefetch(ahead + 64);
                            }
                            {
                                const value scale = nonzero[at_k];
                                const vec8 *const row_0 = (const vec8 *)(U3 + k * 16);
                                T1_0 += scale * row_0[0];
                                T1_1 += scale * row_0[1];
                            }
                        }
                        T1_0_of_0 = T1_0;
                        T1_1_of_0 = T1_1;
                        scale_0[0] = &U2[j * 16];
                    }
                    {
                        const uint64_t first_j = at_j;
                        const uint64_t at_j = first_j + 1;
                        const size_t j = coord_j[at_j];
                        {
                            const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                            __builtin_prefetch(ahead + 0);
                            __builtin_prefetch(ahead + 64);
                        }
                        T1_0 = T1_1 = (vec8){0};
                        for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                            const size_t k = coord_k[at_k];
                            {
                                const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                                __builtin_prefetch(ahead + 0);
                                __builtin_prefetch(ahead + 64);
                            }
                            {
                                const value scale = nonzero[at_k];
                                const vec8 *const row_0 = (const vec8 *)(U3 + k * 16);
                                T1_0 += scale * row_0[0];
                                T1_1 += scale * row_0[1];
                            }
                        }
                        T1_0_of_1 = T1_0;
                        T1_1_of_1 = T1_1;
                        scale_0[1] = &U2[j * 16];
                    }
                    {
                        const uint64_t first_j = at_j;
                        const uint64_t at_j = first_j + 2;
                        const size_t j = coord_j[at_j];
                        {
                            const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                            __builtin_prefetch(ahead + 0);
                            __builtin_prefetch(ahead + 64);
                        }
                        T1_0 = T1_1 = (vec8){0};
                        for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                            const size_t k = coord_k[at_k];
                            {
                                const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                                __builtin_prefetch(ahead + 0);
                                __builtin_prefetch(ahead + 64);
                            }
                            {
                                const value scale = nonzero[at_k];
                                const vec8 *const row_0 = (const vec8 *)(U3 + k * 16);
                                T1_0 += scale * row_0[0];
                                T1_1 += scale * row_0[1];
                            }
                        }
                        T1_0_of_2 = T1_0;
                        T1_1_of_2 = T1_1;
                        scale_0[2] = &U2[j * 16];
                    }
                    {
                        const uint64_t first_j = at_j;
                        const uint64_t at_j = first_j + 3;
                        const size_t j = coord_j[at_j];
                        {
                            const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                            __builtin_prefetch(ahead + 0);
                            __builtin_prefetch(ahead + 64);
                        }
                        T1_0 = T1_1 = (vec8){0};
                        for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                            const size_t k = coord_k[at_k];
                            {
                                const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                                __builtin_prefetch(ahead + 0);
                                __builtin_prefetch(ahead + 64);
                            }
                            {
                                const value scale = nonzero[at_k];
                                const vec8 *const row_0 = (const vec8 *)(U3 + k * 16);
                                T1_0 += scale * row_0[0];
                                T1_1 += scale * row_0[1];
                            }
                        }
                        T1_0_of_3 = T1_0;
                        T1_1_of_3 = T1_1;
                        scale_0[3] = &U2[j * 16];
                    }
                    for (uint64_t s = 0; s < 16; ++s) {
                        const value scale_of_0 = scale_0[0][s * 1];
                        const value scale_of_1 = scale_0[1][s * 1];
                        const value scale_of_2 = scale_0[2][s * 1];
                        const value scale_of_3 = scale_0[3][s * 1];
                        vec8 *const result = (vec8 *)(sum + s * 16);
                        result[0] = result[0] + scale_of_0 * T1_0_of_0 + scale_of_1 * T1_0_of_1 + scale_of_2 * T1_0_of_2 + scale_of_3 * T1_0_of_3;
                        result[1] = result[1] + scale_of_0 * T1_1_of_0 + scale_of_1 * T1_1_of_1 + scale_of_2 * T1_1_of_2 + scale_of_3 * T1_1_of_3;
                    }
                }
                for (; at_j < end_j; ++at_j) {
                    const size_t j = coord_j[at_j];
                    {
                        const char *const ahead = (const char *)(U2 + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 16);
                        __builtin_prefetch(ahead + 0);
                        __builtin_prefetch(ahead + 64);
                    }
                    T1_0 = T1_1 = (vec8){0};
                    for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                        const size_t k = coord_k[at_k];
                        {
                            const char *const ahead = (const char *)(U3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 16);
                            __builtin_prefetch(ahead + 0);
                            __builtin_prefetch(ahead + 64);
                        }
                        {
                            const value scale = nonzero[at_k];
                            const vec8 *const row_0 = (const vec8 *)(U3 + k * 16);
                            T1_0 += scale * row_0[0];
                            T1_1 += scale * row_0[1];
                        }
                    }
                    for (uint64_t s = 0; s < 16; ++s) {
                        {
                            const value scale = U2[j * 16 + s];
                            vec8 *const result = (vec8 *)(sum + s * 16);
                            result[0] += scale * T1_0;
                            result[1] += scale * T1_1;
                        }
                    }
                }
            }
            for (uint64_t s = 0; s < 16; ++s) {
                {
                    vec8 *const row_0 = (vec8 *)(sum + s * 16);
                    vec8 *const result = (vec8 *)(row + s * 16);
                    result[0] = row_0[0];
                    result[1] = row_0[1];
                }
            }
        }
    }
}
