// y(i) = X(i,j) * v(j)
//   path     X*v
//   nest     i{ j{ T1 } }
//   layout   i j:dense
//   parallel i position boundary
//   vectorize j
// | buffer sum []
// | for i in level 1 of X
// |   sum = 0
// |   for j in dense level 2 of X, 4 sums
// |     sum() += X(i,j) * v_in2(j)
// |   y(i) = sum()
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
    const value *restrict nonzero = in[2];
    const value *restrict v_in2 = in[3];
    (void)scratch;
    value sum = 0;
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        value *const row = boundary && at_i == task[0] ? boundary : out + i * 1;
        sum = 0;
        {
            uint64_t at_j = larger(task[2], at_i * 1000);
            const uint64_t end_j = smaller(task[3], (at_i + 1) * 1000);
            if (at_j + 8 <= end_j) {
                typedef value lanes __attribute__((vector_size(64), aligned(sizeof(value)), may_alias));
                lanes all = {0};
                for (; at_j + 8 <= end_j; at_j += 8) {
                    __builtin_prefetch(nonzero + at_j + 256);
                    all += *(const lanes *)(nonzero + at_j) * *(const lanes *)(v_in2 + 0 + (at_j - at_i * 1000));
                }
                sum += (((all[0] + all[1]) + (all[2] + all[3])) + ((all[4] + all[5]) + (all[6] + all[7])));
            }
            if (at_j + 4 <= end_j) {
                value part_0 = 0, part_1 = 0, part_2 = 0, part_3 = 0;
                for (; at_j + 4 <= end_j; at_j += 4) {
                    {
                        const uint64_t first_j = at_j;
                        const uint64_t at_j = first_j + 0;
                        const size_t j = at_j - at_i * 1000;
                        part_0 += nonzero[at_j] * v_in2[j];
                    }
                    {
                        const uint64_t first_j = at_j;
                        const uint64_t at_j = first_j + 1;
                        const size_t j = at_j - at_i * 1000;
                        part_1 += nonzero[at_j] * v_in2[j];
                    }
                    {
                        const uint64_t first_j = at_j;
                        const uint64_t at_j = first_j + 2;
                        const size_t j = at_j - at_i * 1000;
                        part_2 += nonzero[at_j] * v_in2[j];
                    }
                    {
                        const uint64_t first_j = at_j;
                        const uint64_t at_j = first_j + 3;
                        const size_t j = at_j - at_i * 1000;
                        part_3 += nonzero[at_j] * v_in2[j];
                    }
                }
                sum += ((part_0 + part_1) + (part_2 + part_3));
            }
            for (; at_j < end_j; ++at_j) {
                const size_t j = at_j - at_i * 1000;
                sum += nonzero[at_j] * v_in2[j];
            }
        }
        row[0] = sum;
    }
}
