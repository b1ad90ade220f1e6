/* check.h - checks a vector program against vector.h, after each pass in tests and debug builds. */
#ifndef HG_VECTOR_CHECK_H
#define HG_VECTOR_CHECK_H

#include "vector/vector.h"

/* The operands of an operation that is no primitive (those are in forms.def). A letter each, the result first:
 *   -  none                         q  a predicate
 *   s  of the instruction's type    p  a predicate, or VECTOR_ALL
 *   u  u32                          ?  u32, or none */
typedef struct hg_vector_shape {
  uint16_t op;
  const char *operands;
} hg_vector_shape;

/* `more`, up to a row of op 0: an engine's operations beside those of vector.h; or NULL. has_ranges: the live ranges of
 * registers must be right. HG_INVALID_ARGUMENT, with a sentence, if the program is broken. */
hg_status hg_vector_check(const atlas_program *program, const hg_vector *v, const hg_vector_shape *more,
                          int has_ranges);

/* Reports what is wrong with instruction or register `at`. */
hg_status hg_vector_is_broken(const char *what, uint32_t at);

#endif
