/* builder.h - the state of a builder, which build.c and follow.c share.
 *
 * A builder may follow a program: as long as what it is given is what that program has at the same place, it only
 * compares. At the end it hands out the program itself; at the first difference it copies what was the same so far and
 * goes on as any builder does. So neither speed nor a wrong guess changes what is built. */
#ifndef HG_ATLAS_BUILDER_H
#define HG_ATLAS_BUILDER_H

#include "atlas/assemble.h"

enum {
  ATLAS_BEYOND_TEXT = 0x80, /* a bit of an operand's kind: its register's number has a high byte */
  ATLAS_MESSAGE_BYTES = 1024
};

struct atlas_builder {
  hg_allocator allocator;
  atlas_program *program;  /* while a program is followed, its arrays of instructions and symbols only count */
  atlas_program *followed; /* with a reference; NULL: none */
  hg_array placed; /* uint8_t per label: 1 once it has a place */
  uint32_t line;
  int has_many;     /* registers: see atlas_builder_has_many */
  hg_status status; /* of the first error */
  char message[ATLAS_MESSAGE_BYTES];
};

/* Of a builder that follows a program: 1 if what is added is what that program has there; then it counts as added.
 * `insn` may lack its operands, which are given. */
int atlas_follows_symbol(atlas_builder *b, const char *name, const atlas_symbol *symbol);
int atlas_follows_insn(atlas_builder *b, const atlas_insn *insn, const atlas_operand *operands);
/* Names a label as atlas_builder_close would. */
void atlas_follow_label(const atlas_builder *b, atlas_label *label);
/* 1 if nothing is left of the program. */
int atlas_follows_all(const atlas_builder *b);
/* Follows no program any more. */
hg_status atlas_follow_end(atlas_builder *b);

#endif
