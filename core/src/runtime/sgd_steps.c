// Steps of stochastic gradient descent at the entries of a block, one after another.  Before this
// text stand, as literals, ORDER, ROW (elements of a row, padding included: a multiple of 8), FREE
// (whether some columns stay) and BOUNDED (whether elements have a least value).
//
// in:      rows (ORDER an entry), values, the share of each row by mode, the free columns by mode
// factors: the rows that the block touches, by mode; written
// numbers: step, offset, then by mode 2 * ridge * step, then by mode the least value
// task:    the first entry, and one past the last
#include <stddef.h>
#include <stdint.h>

typedef double vec __attribute__((vector_size(64), may_alias));
typedef int64_t mask __attribute__((vector_size(64)));

#define PARTS (ROW / 8)
// Entries whose rows are asked for ahead: a step takes some tens of nanoseconds.
#define AHEAD 8

// Adds by halves.
static inline double total(vec v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

void decompose_kernel(const void *const *in, void *factors, void *numbers, void *scratch,
                      const uint64_t *task)
{
    (void)scratch;
    const uint32_t *rows = in[0];
    const double *values = in[1];
    double *const *factor = factors;
    const double *number = numbers;
    const double step = number[0], offset = number[1];
    const double *decay = number + 2, *least = number + 2 + ORDER;
    (void)least;
    const uint64_t end = task[1];
    for (uint64_t entry = task[0]; entry < end; ++entry) {
        const uint32_t *soon = rows + (entry + AHEAD < end ? entry + AHEAD : entry) * ORDER;
        const uint32_t *here = rows + entry * ORDER;
        vec *row[ORDER];
        double keep[ORDER];
#pragma GCC unroll 8
        for (int n = 0; n < ORDER; ++n) {
            const double *next = factor[n] + (uint64_t)soon[n] * ROW;
#pragma GCC unroll 8
            for (int p = 0; p < PARTS; ++p) __builtin_prefetch(next + 8 * p, 1);
            row[n] = (vec *)(factor[n] + (uint64_t)here[n] * ROW);
            keep[n] = 1 - decay[n] * ((const double *)in[2 + n])[here[n]];
        }
        vec sum = {0};
#pragma GCC unroll 8
        for (int p = 0; p < PARTS; ++p) {
            vec product = row[0][p];
#pragma GCC unroll 8
            for (int n = 1; n < ORDER; ++n) product *= row[n][p];
            sum += product;
        }
        // The slope of (x - m)^2.
        const double pull = 2 * (values[entry] - (total(sum) + offset)) * step;
#pragma GCC unroll 8
        for (int p = 0; p < PARTS; ++p) {
            // after[n]: the pull times the rows of the modes after n.
            vec old[ORDER], after[ORDER];
            after[ORDER - 1] = (vec){0} + pull;
#pragma GCC unroll 8
            for (int n = ORDER - 1; n >= 0; --n) {
                old[n] = row[n][p];
                if (n > 0) after[n - 1] = after[n] * old[n];
            }
            vec before = old[0];
#pragma GCC unroll 8
            for (int n = 0; n < ORDER; ++n) {
                vec new = n == 0 ? old[n] * keep[n] + after[n] : old[n] * keep[n] + before * after[n];
                if (n > 0) before *= old[n];
#if FREE
                const vec free = ((const vec *)in[2 + ORDER + n])[p];
                new = old[n] + free * (new - old[n]);
#endif
#if BOUNDED
                const vec floor = (vec){0} + least[n];
                const mask over = new > floor;
                new = (vec)(((mask)new & over) | ((mask)floor & ~over));
#endif
                row[n][p] = new;
            }
        }
    }
}
