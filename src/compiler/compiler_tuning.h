/* compiler_tuning.h - the constants of tuning.def: COMPILER_<id>. */
#ifndef HG_COMPILER_TUNING_H
#define HG_COMPILER_TUNING_H

enum {
#define TUNED(id, value, unit, depends, measured) COMPILER_##id = value,
#include "compiler/tuning.def"
#undef TUNED
};

#endif
