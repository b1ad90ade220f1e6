/* contract_loops.h - the inner loops for one type of sum and every number of rows. contract_kernels.c includes it with
 * S (the type's name: f32), T, V, VECTORS, LANES, FMA and CANON. */
#define NAME3(a, b) a##b
#define NAME2(a, b) NAME3(a, b)
#define NAME_OF(what) NAME2(what, S)
#define LOAD(from) NAME_OF(load_)(from)
#define STORE(to, v) NAME_OF(store_)(to, v)
#define SPLAT(x) NAME_OF(splat_)(x)

static inline V LOAD(const T *from) {
  V v;
  memcpy(&v, from, sizeof v);
  return v;
}
static inline void STORE(T *to, V v) { memcpy(to, &v, sizeof v); }
static inline V SPLAT(T x) { return x - (V){0}; } /* x - 0 is x, also for -0 */

#include "backend/cpu/contract/contract_micro.h"
#include "backend/cpu/contract/contract_strip.h"

#ifdef MATVEC_PIECE
#  include "backend/cpu/contract/contract_matvec.h"
#endif

#undef LOAD
#undef STORE
#undef SPLAT
#undef T
#undef V
#undef S
#undef LANES
#undef FMA
#undef CANON
