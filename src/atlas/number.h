/* number.h - constants of programs: text to bits and back, exactly and independent of the locale. */
#ifndef HG_ATLAS_NUMBER_H
#define HG_ATLAS_NUMBER_H

#include "hologram/atlas.h"

typedef enum atlas_number_result {
  ATLAS_NUMBER_OK,
  ATLAS_NUMBER_SYNTAX, /* not a constant of the type at all */
  ATLAS_NUMBER_RANGE,  /* an integer or a bit pattern that does not fit, a float that rounds to infinity */
  ATLAS_NUMBER_LENGTH  /* longer than ATLAS_NUMBER_MAX_LENGTH */
} atlas_number_result;

#define ATLAS_NUMBER_MAX_LENGTH 1100 /* characters of a literal: more digits than any exact binary64 value has */
#define ATLAS_NUMBER_CHARS 48        /* room for any printed constant and its NUL */

/* The text of a constant, without its `#`.
 *   integers  decimal with an optional `-`, or `0x` and the bits
 *   floats    `0x` and the bits, `0x1.8p3`, decimal with an optional exponent, `inf`, `-inf`, `nan`; rounded once, ties
 *             to even
 * Types that have no constants (storage-only) give ATLAS_NUMBER_SYNTAX. */
atlas_number_result atlas_number_parse(atlas_type type, const char *text, size_t length, uint64_t *bits);

/* The canonical text of a constant, without its `#`; returns its length. Parsing it gives the same bits. */
size_t atlas_number_print(atlas_type type, uint64_t bits, char text[ATLAS_NUMBER_CHARS]);

/* The smallest and the largest value of an integer type, as bits of the type. */
uint64_t atlas_integer_min(atlas_type type);
uint64_t atlas_integer_max(atlas_type type);

#endif
