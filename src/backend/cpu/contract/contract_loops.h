/* contract_loops.h - the inner loops of one type of sum, for all numbers of rows. Included by contract_kernels.c with
 * S (its name: f32), T, V, VECTORS, LANES, FMA and CANON. */
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
static inline V SPLAT(T x) { return x - (V){0}; } /* x - 0 is x, -0 too */

#define ROWS 1
#define MICRO NAME_OF(micro_1_)
#define EACH_ROW(X) X(0)
#include "backend/cpu/contract/contract_micro.h"
#define ROWS 2
#define MICRO NAME_OF(micro_2_)
#define EACH_ROW(X) X(0) X(1)
#include "backend/cpu/contract/contract_micro.h"
#define ROWS 4
#define MICRO NAME_OF(micro_4_)
#define EACH_ROW(X) X(0) X(1) X(2) X(3)
#include "backend/cpu/contract/contract_micro.h"
#if MOST_ROWS == 6
#  define ROWS 6
#  define MICRO NAME_OF(micro_6_)
#  define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#  include "backend/cpu/contract/contract_micro.h"
#else
#  define ROWS 8
#  define MICRO NAME_OF(micro_8_)
#  define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#  include "backend/cpu/contract/contract_micro.h"
#endif
#if MOST_ROWS == 14
#  define ROWS 14
#  define MICRO NAME_OF(micro_14_)
#  define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#  include "backend/cpu/contract/contract_micro.h"
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
