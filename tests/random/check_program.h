/* check_program.h - everything that must hold for one program and launch. */
#ifndef HG_TESTS_CHECK_PROGRAM_H
#define HG_TESTS_CHECK_PROGRAM_H

#include "draft.h"
#include "hologram/hologram.h"
#include "transform.h"

typedef enum failure_kind {
  FAILURE_NONE,
  FAILURE_NOT_VERIFIED, /* no program: nothing to check */
  FAILURE_ERROR,        /* a call failed that must not */
  FAILURE_RAW,          /* the SSA form gives other results than the program */
  FAILURE_CANON,        /* the canonical form does */
  FAILURE_EXPANDED,     /* the form with functions expanded does */
  FAILURE_OPTIMISED,    /* the optimised form does */
  FAILURE_VECTOR,       /* an engine does */
  FAILURE_BROKEN,       /* a pass left a unit that is not SSA, or a broken vector program */
  FAILURE_AGAIN,        /* the canonical form after another round of passes does */
  FAILURE_IDEMPOTENCE,  /* another round of passes changed the canonical form */
  FAILURE_SAME,         /* a program that is the same has another canonical form */
  FAILURE_OTHER,        /* a program that does something else has the same canonical form */
  FAILURE_TEXT,         /* its canonical text is another program, or gives another text */
  FAILURE_CRASH
} failure_kind;

typedef struct failure {
  failure_kind kind;
  transform_kind transform; /* of FAILURE_SAME */
  int faulted;              /* the reference run did */
  int refused;              /* its canonical form takes more registers than there are */
  int unsupported;          /* the backend refuses it */
  char text[600];
  char *other;              /* text of the other program; free it */
} failure;

const char *failure_name(const failure *f);

failure_kind check_program(const draft *d, const test_launch *l, uint64_t seed, failure *out);

/* Looks for a failure of the kind of `like` only, and harder where chance decides: for shrinking. */
failure_kind check_like(const draft *d, const test_launch *l, uint64_t seed, const failure *like, failure *out);

/* From now on each program is printed to `buffer` before the compiler gets it, so that whoever survives a crash can see
 * it. */
void check_trace(char *buffer, size_t bytes);

/* From now on programs run in the compiler's forms only, not on the CPU engines, which takes a third of the time. */
void check_compiler_only(void);

/* From now on programs run on this backend, through the public interface, and not on the CPU engines. */
void check_on_backend(hg_backend_id backend);

/* Runs the program there for nothing: for its kernels, which on_backend.h defers. */
void check_kernels(const draft *d, const test_launch *l);

uint64_t check_time_ns(void);

#endif
