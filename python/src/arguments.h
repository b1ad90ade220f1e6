/* arguments.h - arguments of operations (arguments.c), as operations.def describes them. */
#ifndef HGPY_ARGUMENTS_H
#define HGPY_ARGUMENTS_H

#include "hgpy.h"

enum { NAME_BYTES = 24 };

typedef enum argument_preset { PRESET_LIST, PRESET_INTEGER, PRESET_REAL, PRESET_CHOICE, PRESET_TYPE } argument_preset;

typedef struct argument_spec {
  char name[NAME_BYTES];
  const char *choices; /* "mean|sum|none, ..." */
  uint8_t preset;
} argument_spec;

/* The form of a default decides which kind of value an argument takes. */
argument_preset hgpy_preset_of(const char *at, size_t length);
/* The default as Python signatures write it, in `text` or a constant. */
const char *hgpy_argument_default(const argument_spec *argument, char *text, size_t bytes);
/* None gives the default. `who`: the operation. False: raised. */
bool hgpy_argument_from(const char *who, const argument_spec *spec, PyObject *value, hg_argument *to);

#endif
