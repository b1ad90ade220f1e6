/* functions.h - the library of functions (src/functions/), assembled and verified when Hologram is built. */
#ifndef HG_ATLAS_FUNCTIONS_H
#define HG_ATLAS_FUNCTIONS_H

#include "atlas/program.h"

/* All files merged into one program with an entry a function and type. It is constant data, written by tools/embed.c.
 */
extern const atlas_program atlas_functions;

#endif
