/* cpu_tuning.h - the constants of tuning.def: CPU_<id>. */
#ifndef HG_CPU_TUNING_H
#define HG_CPU_TUNING_H

enum {
#define TUNED(id, value, unit, depends, measured) CPU_##id = value,
#include "backend/cpu/engine/tuning.def"
#undef TUNED
};

#endif
