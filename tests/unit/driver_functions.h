/* driver_functions.h - the names of libcuda's functions that the library asks for. */
#ifndef HG_TESTS_DRIVER_FUNCTIONS_H
#define HG_TESTS_DRIVER_FUNCTIONS_H

static const char *const functions[] = {
#define SYMBOL(name, parameters) #name,
#define SYMBOL_OPTIONAL SYMBOL
#include "backend/cuda/symbols.def"
#undef SYMBOL
#undef SYMBOL_OPTIONAL
};

#endif
