/* follow.c - builders that compare what they are given with a program that was built before. See builder.h. */
#include "atlas/builder.h"
#include "base/error.h"

#include <string.h>

void atlas_builder_follow(atlas_builder *b, atlas_program *program) {
  int is_possible = b->followed == NULL && b->has_many && b->program->insns.count + b->program->symbols.count == 0 &&
                    program->entries.count + program->constants.count == 0;
  if (is_possible && strcmp(program->name, b->program->name) == 0) b->followed = atlas_program_retain(program);
}

int atlas_follows_symbol(atlas_builder *b, const char *name, const atlas_symbol *symbol) {
  size_t at = b->program->symbols.count;
  if (at == b->followed->symbols.count) return 0;
  const atlas_symbol *known = atlas_symbol_at(b->followed, at);
  if (known->kind != symbol->kind || known->type != symbol->type || known->access != symbol->access ||
      known->count != symbol->count || known->handle != symbol->handle || strcmp(known->name, name) != 0)
    return 0;
  b->program->symbols.count++;
  return 1;
}

/* ---- labels: the program's are sorted by their places, the builder's are in the order of their making ------------ */

void atlas_follow_label(const atlas_builder *b, atlas_label *label) {
  const atlas_label *labels = b->program->labels.data;
  uint32_t number = 0;
  for (size_t i = 0; i < b->program->labels.count; i++) number += labels[i].name[0] == 'L';
  atlas_name_by_number(label->name, 'L', number);
}

static const atlas_label *label_of(const hg_array *labels, const char *name) {
  for (size_t i = 0; i < labels->count; i++) {
    const atlas_label *label = (const atlas_label *)labels->data + i;
    if (strcmp(label->name, name) == 0) return label;
  }
  return NULL;
}

static int is_same_label(const atlas_builder *b, const atlas_operand *known, const atlas_operand *given) {
  return given->bits < b->program->labels.count &&
         strcmp(atlas_label_at(b->followed, known->bits)->name, atlas_label_at(b->program, given->bits)->name) == 0;
}

/* The copied instructions number labels as the followed program does. */
static void renumber_labels(const atlas_builder *b, const atlas_program *followed) {
  const atlas_label *labels = b->program->labels.data;
  for (size_t i = 0; labels != NULL && i < b->program->insns.count; i++) {
    atlas_insn *insn = (atlas_insn *)b->program->insns.data + i;
    for (unsigned k = 0; k < insn->operand_count; k++) {
      atlas_operand *o = &insn->operand[k];
      if (o->kind == ATLAS_OPERAND_LABEL)
        o->bits = (uint64_t)(label_of(&b->program->labels, atlas_label_at(followed, o->bits)->name) - labels);
    }
  }
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

/* By words as they were stored: a byte that is changed first, and then read with others, takes longer than the rest. */
static int is_same_operand(const atlas_builder *b, const atlas_operand *known, const atlas_operand *given) {
  static const atlas_operand counts = {(uint8_t)~ATLAS_BEYOND_TEXT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xffff, 0};
  uint64_t head, other, mask;
  if (given->kind == ATLAS_OPERAND_LABEL && known->kind == ATLAS_OPERAND_LABEL) return is_same_label(b, known, given);
  memcpy(&head, known, sizeof head);
  memcpy(&other, given, sizeof other);
  memcpy(&mask, &counts, sizeof mask);
  return ((head ^ other) & mask) == 0 && known->bits == given->bits;
}

int atlas_follows_insn(atlas_builder *b, const atlas_insn *insn, const atlas_operand *operands) {
  size_t at = b->program->insns.count;
  if (at == b->followed->insns.count) return 0;
  const atlas_insn *known = atlas_insn_at(b->followed, at);
  if (known->op != insn->op || known->type != insn->type || known->type2 != insn->type2 ||
      known->guard != insn->guard || known->operand_count != insn->operand_count || insn->line + b->line != known->line)
    return 0;
  for (unsigned i = 0; i < insn->operand_count; i++)
    if (!is_same_operand(b, &known->operand[i], &operands[i])) return 0;
  b->program->insns.count++;
  return 1;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static int has_same_places(const atlas_builder *b) {
  for (size_t i = 0; i < b->program->labels.count; i++) {
    const atlas_label *own = atlas_label_at(b->program, i), *known = label_of(&b->followed->labels, own->name);
    if (known == NULL || known->target != own->target || !((const uint8_t *)b->placed.data)[i]) return 0;
  }
  return b->program->labels.count == b->followed->labels.count;
}

int atlas_follows_all(const atlas_builder *b) {
  const atlas_program *own = b->program, *known = b->followed;
  return own->insns.count == known->insns.count && own->symbols.count == known->symbols.count &&
         memcmp(own->block, known->block, sizeof own->block) == 0 &&
         memcmp(own->default_block, known->default_block, sizeof own->default_block) == 0 && has_same_places(b);
}

hg_status atlas_follow_end(atlas_builder *b) {
  atlas_program *followed = b->followed, *own = b->program;
  if (followed == NULL) return HG_OK;
  size_t insns = own->insns.count, symbols = own->symbols.count;
  b->followed = NULL;
  own->insns.count = own->symbols.count = 0;
  int is_complete = hg_array_append(&b->allocator, &own->insns, followed->insns.data, insns) != NULL &&
                    hg_array_append(&b->allocator, &own->symbols, followed->symbols.data, symbols) != NULL;
  if (is_complete) renumber_labels(b, followed);
  for (size_t i = 0; i < own->labels.count; i++) {
    char *name = ((atlas_label *)own->labels.data)[i].name;
    if (name[0] == 'L') name[0] = '\0';
  }
  atlas_program_release(followed);
  return is_complete ? HG_OK : hg_fail_memory("a program's instructions", insns * sizeof(atlas_insn));
}
