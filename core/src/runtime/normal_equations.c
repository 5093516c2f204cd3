// The normal equations of one row of a factor, from the entries of its slice.  Before this text
// stand, as literals, OTHERS (modes beside that of the slice), RANK, ROW (elements of a row with its
// padding), LANES (elements of a vector; they divide ROW) and AHEAD (how many entries ahead rows are
// asked for; 0 where they are near).
//
//     w = the rows of the other modes multiplied,   N = sum w w^T,   h = sum x w
//
// in:   rows (OTHERS an entry), values, the factors of the other modes
// out:  N, ROW x ROW, symmetric
// rhs:  h, ROW
// task: the first entry, and one past the last
#include <stddef.h>
#include <stdint.h>

typedef double vec __attribute__((vector_size(LANES * 8), may_alias));

#define PARTS (ROW / LANES)
// Elements of the last vector that are no padding.
#define LAST (RANK - (PARTS - 1) * LANES)
// Entries whose products wait in the first-level cache: tiles of N are loaded once for all of them.
#define BATCH 32

// Adds the products of COLUMNS vectors from `q` on by ROWS elements of vector `p` to a tile of N.
#define TILE(ROWS, COLUMNS)                                                                        \
    {                                                                                              \
        vec sum[ROWS][COLUMNS];                                                                    \
        _Pragma("GCC unroll 8") for (int r = 0; r < ROWS; ++r)                                     \
            _Pragma("GCC unroll 2") for (int c = 0; c < COLUMNS; ++c)                              \
                sum[r][c] = normal[(p * LANES + r) * PARTS + q + c];                               \
        for (uint64_t b = 0; b < count; ++b) {                                                     \
            const double *const left = (const double *)&w[b][p];                                   \
            _Pragma("GCC unroll 8") for (int r = 0; r < ROWS; ++r)                                 \
                _Pragma("GCC unroll 2") for (int c = 0; c < COLUMNS; ++c)                          \
                    sum[r][c] += left[r] * w[b][q + c];                                            \
        }                                                                                          \
        _Pragma("GCC unroll 8") for (int r = 0; r < ROWS; ++r)                                     \
            _Pragma("GCC unroll 2") for (int c = 0; c < COLUMNS; ++c)                              \
                normal[(p * LANES + r) * PARTS + q + c] = sum[r][c];                               \
    }

void decompose_kernel(const void *const *in, void *out, void *rhs, void *scratch,
                      const uint64_t *task)
{
    (void)scratch;
    const uint32_t *rows = in[0];
    const double *values = in[1];
    vec *const normal = out;
    vec *const right = rhs;
    // Sums in registers: in memory each would wait for the one before.
    vec w[BATCH][PARTS], sums[PARTS];
    const vec zero = {0};
    for (size_t v = 0; v < (size_t)ROW * PARTS; ++v) normal[v] = zero;
#pragma GCC unroll 8
    for (int p = 0; p < PARTS; ++p) sums[p] = zero;
    const uint64_t end = task[1];
    for (uint64_t first = task[0]; first < end; first += BATCH) {
        const uint64_t count = end - first < BATCH ? end - first : BATCH;
        for (uint64_t b = 0; b < count; ++b) {
            const uint64_t entry = first + b;
            const uint32_t *const here = rows + entry * OTHERS;
#if AHEAD
            const uint64_t later = entry + AHEAD < end ? entry + AHEAD : entry;
            const uint32_t *const soon = rows + later * OTHERS;
#endif
            const vec *row[OTHERS];
#pragma GCC unroll 8
            for (int n = 0; n < OTHERS; ++n) {
                const double *const factor = in[2 + n];
#if AHEAD
                const vec *const next = (const vec *)(factor + (size_t)soon[n] * ROW);
#pragma GCC unroll 8
                for (int p = 0; p < PARTS; ++p) __builtin_prefetch(next + p);
#endif
                row[n] = (const vec *)(factor + (size_t)here[n] * ROW);
            }
#pragma GCC unroll 8
            for (int p = 0; p < PARTS; ++p) {
                vec product = row[0][p];
#pragma GCC unroll 8
                for (int n = 1; n < OTHERS; ++n) product *= row[n][p];
                w[b][p] = product;
                sums[p] += values[entry] * product;
            }
        }
        for (int p = 0; p < PARTS; ++p) {
            int q = 0;
            if (p + 1 < PARTS) {
                for (; q + 1 <= p; q += 2) TILE(LANES, 2)
                if (q <= p) TILE(LANES, 1)
            } else {
                for (; q + 1 <= p; q += 2) TILE(LAST, 2)
                if (q <= p) TILE(LAST, 1)
            }
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < PARTS; ++p) right[p] = sums[p];
    // The tiles above the diagonal.
    double *const n = out;
    for (int r = 0; r < RANK; ++r)
        for (int c = (r / LANES + 1) * LANES; c < RANK; ++c) n[r * ROW + c] = n[c * ROW + r];
}
