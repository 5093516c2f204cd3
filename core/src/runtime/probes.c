// Loops that measure the machine.  Before this text stand, as literals, `value`, ROW (values of a
// row, padding included) and VECTOR (bytes of the vectors in a row).
#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512F__)
#define WIDE 64
#elif defined(__AVX__)
#define WIDE 32
#else
#define WIDE 16
#endif
// Enough to keep two units busy at a latency of up to six cycles.
#define CHAINS 12

typedef value wide __attribute__((vector_size(WIDE), may_alias));
typedef value vec __attribute__((vector_size(VECTOR), may_alias));

// Multiply-adds in registers; the values settle at 1.
static void multiply_add(uint64_t rounds, value *out)
{
    wide sum[CHAINS];
    const wide half = {0};
    const wide x = half + (value)out[0], y = half + (value)(1 - out[0]);
#pragma GCC unroll 12
    for (int c = 0; c < CHAINS; ++c) sum[c] = half + (value)c;
    for (uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; ++c) sum[c] = sum[c] * x + y;
    }
    wide all = half;
#pragma GCC unroll 12
    for (int c = 0; c < CHAINS; ++c) all += sum[c];
    out[0] = all[0];
    out[1] = (value)(2 * CHAINS * (WIDE / sizeof(value)));
}

static void read_all(const value *from, uint64_t count, value *out)
{
    wide sum[8] = {{0}};
    const wide *w = (const wide *)from;
    for (uint64_t at = 0; at + 8 <= count / (WIDE / sizeof(value)); at += 8) {
#pragma GCC unroll 8
        for (int c = 0; c < 8; ++c) sum[c] += w[at + c];
    }
    for (int c = 1; c < 8; ++c) sum[0] += sum[c];
    out[0] = sum[0][0];
}

static void triad(value *restrict to, const value *restrict a, const value *restrict b, uint64_t count)
{
    for (uint64_t at = 0; at < count; ++at) to[at] = a[at] + (value)0.5 * b[at];
}

// Vectors of a row, and rows summed at a time: chains of additions must not wait for each other.
#define VECTORS (ROW * sizeof(value) / VECTOR)
#define TOGETHER (VECTORS >= 8 ? 1 : 8 / VECTORS)

// Asks for the rows of one turn from number `at` on.
static inline __attribute__((always_inline)) void
ask(const value *table, const uint32_t *rows, uint64_t at, uint64_t count)
{
#pragma GCC unroll 8
    for (size_t next = 0; next < TOGETHER; ++next) {
        const uint64_t which = at + next < count ? at + next : count - 1;
        const char *const ahead = (const char *)(table + (size_t)rows[which] * ROW);
#pragma GCC unroll 64
        for (size_t offset = 0; offset < ROW * sizeof(value); offset += 64)
            __builtin_prefetch(ahead + offset);
    }
}

// Sums rows; asks for those `distance` ahead if it is not 0.
static inline __attribute__((always_inline)) void
gather(const value *table, const uint32_t *rows, uint64_t count, uint64_t distance, value *out)
{
    vec sum[8] = {{0}};
    uint64_t at = 0;
    for (; at + TOGETHER <= count; at += TOGETHER) {
        if (distance) ask(table, rows, at + distance, count);
#pragma GCC unroll 8
        for (size_t next = 0; next < TOGETHER; ++next) {
            const vec *const row = (const vec *)(table + (size_t)rows[at + next] * ROW);
#pragma GCC unroll 64
            for (size_t v = 0; v < VECTORS; ++v) sum[(next * VECTORS + v) % 8] += row[v];
        }
    }
    for (; at < count; ++at) {
        const vec *const row = (const vec *)(table + (size_t)rows[at] * ROW);
        for (size_t v = 0; v < VECTORS; ++v) sum[v % 8] += row[v];
    }
    for (int c = 1; c < 8; ++c) sum[0] += sum[c];
    out[0] = sum[0][0];
}

void decompose_kernel(const void *const *in, value *out, value *to, value *none, const uint64_t *task)
{
    (void)none;
    switch (task[0]) {
    case 0: multiply_add(task[1], out); break;
    case 1: read_all(in[0], task[1], out); break;
    case 2: triad(to, in[0], in[1], task[1]); break;
    case 3: gather(in[0], in[1], task[1], 0, out); break;
    default: gather(in[0], in[1], task[1], task[2], out); break;
    }
}
