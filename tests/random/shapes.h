/* shapes.h - what a random program was made to hold, as bits. */
#ifndef HG_TESTS_SHAPES_H
#define HG_TESTS_SHAPES_H

enum shape {
#define SHAPE(id, what) SHAPE_##id,
#include "shapes.def"
#undef SHAPE
  SHAPE_COUNT
};

#endif
