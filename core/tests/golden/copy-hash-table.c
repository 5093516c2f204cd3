// Z(i,k) = W(i,k)
//   path     W
//   nest     i{ k{ T1 } }
//   layout   i k
//   workspace hashed
//   parallel i position assemble
// | for i in level 1 of W
// |   for k in level 2 of W
// |     Z(k) += W(i,k)
// |   append Z at (i)
#include <stddef.h>
#include <stdint.h>
typedef double value;
typedef value vec1 __attribute__((may_alias));
typedef value vec2 __attribute__((vector_size(16), may_alias));
typedef value vec4 __attribute__((vector_size(32), may_alias));
typedef value vec8 __attribute__((vector_size(64), may_alias));
static inline uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
struct assembly {
    value *cells; uint64_t *met, *words, *list; value *values; uint64_t room;
    int32_t (*append)(struct assembly *, uint64_t listed, const uint64_t *at);
    uint64_t (*lengthen)(struct assembly *, uint64_t listed);
    void *owner;
};

void decompose_kernel(const void *const *in, value *out, value *boundary, value *scratch, const uint64_t *task)
{
    const uint16_t *restrict coord_i = in[0];
    const uint32_t *restrict child_i = in[1];
    const uint16_t *restrict coord_k = in[2];
    const value *restrict nonzero = in[3];
    (void)boundary;
    (void)scratch;
    struct assembly *const output = (struct assembly *)out;
    uint64_t listed = 0;
    uint64_t *list = output->list, room = output->room;
    value *values = output->values;
    uint64_t *met = output->met;
    for (uint64_t at_i = task[0], end_i = task[1]; at_i < end_i; ++at_i) {
        const size_t i = coord_i[at_i];
        for (uint64_t at_k = larger(task[2], child_i[at_i]), end_k = smaller(task[3], child_i[at_i + 1]); at_k < end_k; ++at_k) {
            const size_t k = coord_k[at_k];
            {
                const uint64_t cell = k;
                if (listed == room) {
                    listed = output->lengthen(output, listed);
                    list = output->list; values = output->values; room = output->room;
                    met = output->met;
                }
                const uint64_t last = 2 * room - 1;
                uint64_t slot = cell * 11400714819323198485ull >> 32 & last;
                while (list[slot] && list[slot] != cell + 1) slot = slot + 1 & last;
                if (!list[slot]) { list[slot] = cell + 1; met[listed++] = slot; }
                values[slot] += nonzero[at_k];
            }
        }
        {
            const uint64_t at[1] = {i};
            if (listed && !output->append(output, listed, at)) return;
            listed = 0;
            room = output->room;
        }
    }
}
