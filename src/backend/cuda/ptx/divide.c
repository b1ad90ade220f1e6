/* divide.c - division by a number whose reciprocal is known. */
#include "backend/cuda/ptx/ptx.h"

/* `number` by `size`, with the largest number of the class over the size, or a little less: the high half of the
 * product is the quotient or one less, because number / size - number * reciprocal / 2^bits is at least 0 and below 1.
 */
void hg_ptx_divide(ptx *p, ptx_class class, ptx_name number, ptx_name size, ptx_name reciprocal, ptx_name quotient,
                   ptx_name rest) {
  const char *suffix = class == PTX_64 ? ".u64" : ".u32";
  ptx_name product = hg_ptx_new(p, class), is_less = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, hg_ptx_join("mul.hi", suffix).text, quotient, number, reciprocal);
  PTX(p, hg_ptx_join("mul.lo", suffix).text, product, quotient, size);
  PTX(p, hg_ptx_join("sub", suffix).text, rest, number, product);
  PTX(p, hg_ptx_join("setp.ge", suffix).text, is_less, rest, size);
  hg_ptx_put(p, "\t@%s add%s %s, %s, 1;\n", is_less.text, suffix, quotient.text, quotient.text);
  hg_ptx_put(p, "\t@%s sub%s %s, %s, %s;\n", is_less.text, suffix, rest.text, rest.text, size.text);
}
