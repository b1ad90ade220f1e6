/* program.h - the representation of an atlas_program: filled in by the parser, the decoder or the builder, completed by
 * the verifier, and read by the machine and the compiler. */
#ifndef HG_ATLAS_PROGRAM_H
#define HG_ATLAS_PROGRAM_H

#include "atlas/tables.h"
#include "base/memory.h"
#include "hologram/classes.h"
#include "ir/graph.h"

#include <stdatomic.h>

/* A function of a library program: `.entry op type label`. An entry for f16 or bf16 is a shorter variant of the f32
 * function, for arguments widened from that type: its f32 result, rounded to the type, has the same bits. */
typedef struct atlas_entry {
  uint16_t op;
  uint8_t type;
  uint8_t reserved;
  uint32_t label;
  uint32_t node; /* first node, set by the verifier */
} atlas_entry;

/* One instruction after all calls are inlined (see ir/graph.h). Several nodes may share an instruction. A `call` goes
 * on at the callee, a `ret` after the call; a function's own `ret` has no successor. */
typedef ir_node atlas_node;

struct atlas_program {
  hg_allocator allocator;
  atomic_uint references;
  char name[ATLAS_MAX_NAME + 1];
  uint32_t block[3];         /* required block size; 0,0,0: any */
  uint32_t default_block[3]; /* of launches that give none, where none is required; 0,0,0: none. Not in the hash */
  hg_array insns;    /* atlas_insn */
  hg_array symbols;  /* atlas_symbol */
  hg_array labels;   /* atlas_label */
  hg_array entries;  /* atlas_entry */
  hg_array constants;/* uint8_t: all constant tables, each padded to a multiple of 8 bytes */

  /* Set by atlas_verify. */
  hg_array nodes;    /* atlas_node; execution starts at node 0 */
  uint32_t register_count;  /* general registers in use: 1 + the highest; 0 if none */
  int observes_block;
  uint64_t digest; /* what atlas_program_digest gives, of a program that a builder has made; 0: it is computed */
};

/* A new empty program that holds one reference; NULL when out of memory (last error set). */
atlas_program *atlas_program_new(const hg_allocator *allocator);

/* A digest of everything in a program as it is written: equal programs have one digest. */
uint64_t atlas_program_digest(const atlas_program *program);
int atlas_program_same(const atlas_program *a, const atlas_program *b);

/* 1 if the last step of its making is done (assemble.h). */
static inline int atlas_program_is_complete(const atlas_program *p) { return p->nodes.count > 0; }

static inline const atlas_insn *atlas_insn_at(const atlas_program *p, size_t i) {
  return (const atlas_insn *)p->insns.data + i;
}
static inline const atlas_symbol *atlas_symbol_at(const atlas_program *p, size_t i) {
  return (const atlas_symbol *)p->symbols.data + i;
}
static inline const atlas_label *atlas_label_at(const atlas_program *p, size_t i) {
  return (const atlas_label *)p->labels.data + i;
}
static inline const atlas_entry *atlas_entry_at(const atlas_program *p, size_t i) {
  return (const atlas_entry *)p->entries.data + i;
}
/* The type of its arguments and its result. */
static inline uint8_t atlas_entry_works_in(const atlas_entry *e) {
  return e->type == ATLAS_f16 || e->type == ATLAS_bf16 ? ATLAS_f32 : e->type;
}
static inline const atlas_node *atlas_node_at(const atlas_program *p, size_t i) {
  return (const atlas_node *)p->nodes.data + i;
}

/* 1 if the name is [A-Za-z_][A-Za-z0-9_]*, not too long, and not a word of the language (lane, blane, phi, r12, p3,
 * ...). */
int atlas_name_is_valid(const char *name, size_t length);
/* The same for a label, which may be a word of the language too: where a label stands, nothing else can. */
int atlas_label_is_valid(const char *name, size_t length);

/* verify.c: checks everything, trusting no field, and fills in the nodes. `source_name` (NULL: the program's name)
 * stands before the line in messages. HG_VERIFY or HG_OUT_OF_MEMORY. */
hg_status atlas_verify(atlas_program *program, const char *source_name);
/* Fills in the same of a program that would pass. HG_OUT_OF_MEMORY. */
hg_status atlas_lay_out(atlas_program *program);

/* Fails because a shared array does not fit behind those that take `before` bytes. */
hg_status atlas_shared_too_large(hg_status status, const atlas_symbol *s, uint64_t before);

/* The bytes of a local array in its lane's memory, where arrays start at multiples of 16 bytes; 0 for other symbols. */
uint64_t atlas_local_bytes(const atlas_symbol *s);
/* Fails because a local array does not fit behind those that take `before` bytes. */
hg_status atlas_local_too_large(hg_status status, const atlas_symbol *s, uint64_t before);

#endif
