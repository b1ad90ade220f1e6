/* pipeline.h - from a vector program to machine code: the passes (passes.def), the plan and the emitter, for each of
 * the versions that a program has. */
#ifndef HG_NATIVE_PIPELINE_H
#define HG_NATIVE_PIPELINE_H

#include "backend/cpu/native/native.h"

/* Each has its own vector program, in `own` but where that is the given one, and its own code. */
typedef enum native_version {
  NATIVE_FOR_ALL,    /* for every launch */
  NATIVE_FOR_BLOCK,  /* for blocks that have all their lanes: straight-line code */
  NATIVE_FOR_STACK,  /* for several of them at once */
  NATIVE_FOR_ROWS,   /* for launches of lanes in rows: lane_rows.c */
  NATIVE_VERSIONS
} native_version;

typedef struct native_made {
  native_build b[NATIVE_VERSIONS]; /* b[k].code NULL: there is no such version */
  hg_vector own[NATIVE_VERSIONS];
  hg_vector divided;               /* the given program with NATIVE_QUOTIENTs, if it has any */
} native_made;

/* b[k].vector may point into `made`, which must not move. The caller releases `made` whatever the result is. may_stream
 * 0: native_build.streams is 0. `visitor` may be NULL. HG_UNSUPPORTED, with a sentence, if there is no version for all
 * launches. */
hg_status hg_native_make(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                         const hg_vector *vector, int may_stream, uint64_t stream_bytes, const native_visitor *visitor,
                         native_made *made);
void hg_native_made_release(native_made *made);

enum { NATIVE_MOST_NOTES = 480 };
/* slow.c: what makes the code of a version slower than one would expect, in the form of hg_compiled.notes; "":
 * nothing. */
hg_status hg_native_describe_slow(const native_build *b, char *text, size_t text_bytes);

#endif
