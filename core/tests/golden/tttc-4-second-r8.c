// Z(a,j,b) = X(i,j,k,l) * G1(i,a) * G3(b,k,c) * G4(c,l)
//   path     X*G4 T1*G3 T2*G1
//   nest     i{ j{ k{ l{ c{ T1 } } c{ b{ T2 } } } a{ b{ T3 } } } }
//   layout   i j k l
//   buffer   dense
//   buffer   dense
//   parallel i position privatise
//   prefetch G3 10
//   prefetch Z 10
// | buffer T1 [8]
// | buffer T2 [8], in registers
// | for i in level 1 of X
// |   for j in level 2 of X
// |     T2 = 0
// |     for k in level 3 of X
// |       T1 = 0
// |       for l in level 4 of X, row in 1 tile
// |         T1(c) += X(i,j,k,l) * G4(l,c)   over lanes c
// |       for c in 0..8, row in 1 tile
// |         T2(b) += T1(c) * G3(k,c,b)   over lanes b
// |     for a in 0..8
// |       Z(j,a,b) += T2(b) * G1(i,a)   over lanes b
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
    const value *restrict G1 = in[8];
    const value *restrict G3 = in[9];
    const value *restrict G4 = in[10];
    (void)boundary;
    (void)scratch;
    value T1[8] __attribute__((aligned(64)));
    vec8 T2_0 = {0};
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        for (uint64_t at_j = larger(task[2], child_i[at_i]), end_j = smaller(task[3], child_i[at_i + 1]); at_j < end_j; ++at_j) {
            const size_t j = coord_j[at_j];
            {
                const char *const ahead = (const char *)(out + (size_t)coord_j[smaller(at_j + 10, task[3] - 1)] * 64);
                __builtin_prefetch(ahead + 0, 1);
                __builtin_prefetch(ahead + 64, 1);
                __builtin_prefetch(ahead + 128, 1);
                __builtin_prefetch(ahead + 192, 1);
                __builtin_prefetch(ahead + 256, 1);
                __builtin_prefetch(ahead + 320, 1);
                __builtin_prefetch(ahead + 384, 1);
                __builtin_prefetch(ahead + 448, 1);
            }
            T2_0 = (vec8){0};
            for (uint64_t at_k = larger(task[4], child_j[at_j]), end_k = smaller(task[5], child_j[at_j + 1]); at_k < end_k; ++at_k) {
                const size_t k = coord_k[at_k];
                {
                    const char *const ahead = (const char *)(G3 + (size_t)coord_k[smaller(at_k + 10, task[5] - 1)] * 64);
                    __builtin_prefetch(ahead + 0);
                    __builtin_prefetch(ahead + 64);
                    __builtin_prefetch(ahead + 128);
                    __builtin_prefetch(ahead + 192);
                    __builtin_prefetch(ahead + 256);
                    __builtin_prefetch(ahead + 320);
                    __builtin_prefetch(ahead + 384);
                    __builtin_prefetch(ahead + 448);
                }
                for (size_t q = 0; q < 8; ++q) T1[q] = 0;
                {
                    vec8 *const sums = (vec8 *)(T1 + 0);
                    vec8 tile_0 = sums[0];
                    for (uint64_t at_l = larger(task[6], child_k[at_k]), end_l = smaller(task[7], child_k[at_k + 1]); at_l < end_l; ++at_l) {
                        const size_t l = coord_l[at_l];
                        const value scale = nonzero[at_l];
                        const vec8 *const row_0 = (const vec8 *)(G4 + l * 8);
                        tile_0 += scale * row_0[0];
                    }
                    sums[0] = tile_0;
                }
                {
                    vec8 part_0_0 = {0};
                    vec8 part_1_0 = {0};
                    vec8 part_2_0 = {0};
                    vec8 part_3_0 = {0};
                    vec8 part_4_0 = {0};
                    vec8 part_5_0 = {0};
                    vec8 part_6_0 = {0};
                    vec8 part_7_0 = {0};
                    for (uint64_t from_c = 0; from_c < 8; from_c += 8) {
                        {
                            const uint64_t c = from_c + 0;
                            const value scale = T1[c];
                            const vec8 *const row_0 = (const vec8 *)(G3 + k * 64 + c * 8);
                            part_0_0 += scale * row_0[0];
                        }
                        {
                            const uint64_t c = from_c + 1;
                            const value scale = T1[c];
                            const vec8 *const row_0 = (const vec8 *)(G3 + k * 64 + c * 8);
                            part_1_0 += scale * row_0[0];
                        }
                        {
                            const uint64_t c = from_c + 2;
                            const value scale = T1[c];
                            const vec8 *const row_0 = (const vec8 *)(G3 + k * 64 + c * 8);
                            part_2_0 += scale * row_0[0];
                        }
                        {
                            const uint64_t c = from_c + 3;
                            const value scale = T1[c];
                            const vec8 *const row_0 = (const vec8 *)(G3 + k * 64 + c * 8);
                            part_3_0 += scale * row_0[0];
                        }
                        {
                            const uint64_t c = from_c + 4;
                            const value scale = T1[c];
                            const vec8 *const row_0 = (const vec8 *)(G3 + k * 64 + c * 8);
                            part_4_0 += scale * row_0[0];
                        }
                        {
                            const uint64_t c = from_c + 5;
                            const value scale = T1[c];
                            const vec8 *const row_0 = (const vec8 *)(G3 + k * 64 + c * 8);
                            part_5_0 += scale * row_0[0];
                        }
                        {
                            const uint64_t c = from_c + 6;
                            const value scale = T1[c];
                            const vec8 *const row_0 = (const vec8 *)(G3 + k * 64 + c * 8);
                            part_6_0 += scale * row_0[0];
                        }
                        {
                            const uint64_t c = from_c + 7;
                            const value scale = T1[c];
                            const vec8 *const row_0 = (const vec8 *)(G3 + k * 64 + c * 8);
                            part_7_0 += scale * row_0[0];
                        }
                    }
                    T2_0 += (((part_0_0 + part_1_0) + (part_2_0 + part_3_0)) + ((part_4_0 + part_5_0) + (part_6_0 + part_7_0)));
                }
            }
            for (uint64_t a = 0; a < 8; ++a) {
                {
                    const value scale = G1[i * 8 + a];
                    vec8 *const result = (vec8 *)(out + j * 64 + a * 8);
                    result[0] += scale * T2_0;
                }
            }
        }
    }
}
