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

#define ROW_0 a0
#define ROW_1 a0 + row
#define ROW_2 a0 + 2 * row
#define ROW_3 a0 + 3 * row
#define ROW_4 a0 + 4 * row
#define ROW_5 a1
#define ROW_6 a1 + row
#define ROW_7 a1 + 2 * row
#define ROW_8 a1 + 3 * row
#define ROW_9 a1 + 4 * row
#define ROW_10 a2
#define ROW_11 a2 + row
#define ROW_12 a2 + 2 * row
#define ROW_13 a2 + 3 * row
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

#ifdef MATVEC_PIECE
#  include "backend/cpu/contract/contract_matvec.h"
#endif

#undef ROW_0
#undef ROW_1
#undef ROW_2
#undef ROW_3
#undef ROW_4
#undef ROW_5
#undef ROW_6
#undef ROW_7
#undef ROW_8
#undef ROW_9
#undef ROW_10
#undef ROW_11
#undef ROW_12
#undef ROW_13
#undef LOAD
#undef STORE
#undef SPLAT
#undef T
#undef V
#undef S
#undef LANES
#undef FMA
#undef CANON
