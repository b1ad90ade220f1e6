/* programs.c - the programs of the sweep, by number: every row of forms.def at every type that it has, and every route
 * at every address. What is left (displacements behind indices, branches, blocks, which atomic) changes from program to
 * program, as the seed says. */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tables -------------------------------------------------------------------------------------------------- */

typedef struct form {
  const char *name, *head, *before, *body, *behind;
  uint32_t flags;
} form;

#define ROUTE(id, head, before, body, behind, flags)
#define WHOLE(id, text, flags)
#define ADDRESS(id, head, before, index, flags) {#id, head, before, index, "", flags},
static const form addresses[] = {
#include "forms.def"
};
#undef ADDRESS
#undef ROUTE
#define ADDRESS(id, head, before, index, flags)
#define ROUTE(id, head, before, body, behind, flags) {#id, head, before, body, behind, flags},
static const form routes[] = {
#include "forms.def"
};
#undef ROUTE
#undef WHOLE
#define ROUTE(id, head, before, body, behind, flags)
#define WHOLE(id, text, flags) {#id, text, "", "", "", flags},
static const form wholes[] = {
#include "forms.def"
};

static const atlas_type types[] = {
#define ATLAS_TYPE(code, id, bits, kind, note) ATLAS_##id,
#include "hologram/types.def"
#undef ATLAS_TYPE
};

static const atlas_type wide_indices[] = {ATLAS_i32, ATLAS_u32, ATLAS_i64, ATLAS_u64},
                        small_indices[] = {ATLAS_i8, ATLAS_u8, ATLAS_i16, ATLAS_u16};

static const int64_t shifts[] = {0,          1,
                                 -1,         2,
                                 7,          -7,
                                 15,         -16,
                                 64,         -64,
                                 2147483647, INT64_C(-2147483648),
                                 -3,         31,
                                 255,        256,
                                 -33,        INT32_MAX,
                                 UINT32_MAX, INT64_MAX,
                                 INT64_MIN,  INT64_C(1) << 61};

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* What makes a program; an address of -1: none. */
typedef struct choice {
  const form *route;
  int address;
  atlas_type type, index;
  int shift; /* of an address without an index, among `shifts` */
} choice;

static choice *choices;
static uint32_t choice_count;

static int has_type(const form *f, atlas_type t) {
  const char *all[] = {f->head, f->before, f->body, f->behind};
  int is_atomic = 0, is_constant = 0, is_arithmetic = (f->flags & FORM_ARITHMETIC) != 0;
  for (size_t i = 0; i < COUNT(all); i++) {
    is_atomic |= strstr(all[i], "atom.O") != NULL;
    is_constant |= strstr(all[i], "ldc.") != NULL;
  }
  return (!is_atomic || atlas_op_has_type(ATLAS_OP_atom_add, t)) &&
         (!is_constant || atlas_op_has_type(ATLAS_OP_ldc, t)) && (!is_arithmetic || atlas_op_has_type(ATLAS_OP_add, t));
}

static void add_choice(choice c) {
  if ((choice_count & (choice_count - 1)) == 0) {
    choices = realloc(choices, (size_t)(choice_count > 0 ? 2 * choice_count : 1) * sizeof *choices);
    if (choices == NULL) abort();
  }
  choices[choice_count++] = c;
}

/* An index of 32 and of 64 bits each; of the smaller types each element's type has one, and it is of 16 bits where
 * lanes that may not meet are so many that they would with 8. */
static void add_indices(choice c, size_t turn) {
  uint32_t flags = c.route->flags | (c.address >= 0 ? addresses[c.address].flags : 0);
  int is_wide = flags & FORM_OWN && flags & (FORM_GRID | FORM_PLANE);
  for (size_t i = 0; i < COUNT(wide_indices); i++) {
    c.index = wide_indices[i];
    add_choice(c);
  }
  c.index = small_indices[is_wide ? 2 + turn % 2 : turn % COUNT(small_indices)];
  if (!(flags & FORM_LARGE)) add_choice(c);
}

static void add_address(choice c, size_t turn) {
  uint32_t flags = addresses[c.address].flags;
  if ((c.route->flags & FORM_OWN && flags & FORM_SAME) || (c.route->flags & FORM_OF_BLOCK && flags & FORM_LANE)) return;
  if (c.route->flags & FORM_REGISTER && !(flags & FORM_REGISTER)) return;
  if (flags & FORM_INDEX) {
    add_indices(c, turn);
    return;
  }
  int has_shift = flags & FORM_SHIFT && strchr(c.route->body, 'K') != NULL;
  for (c.shift = 0; c.shift < (has_shift ? (int)COUNT(shifts) : 1); c.shift++) add_choice(c);
}

static void list_choices(void) {
  if (choice_count > 0) return;
  for (size_t r = 0; r < COUNT(routes); r++)
    for (size_t t = 0; t < COUNT(types); t++)
      for (size_t a = 0; a < COUNT(addresses); a++)
        if (has_type(&routes[r], types[t]))
          add_address((choice){&routes[r], (int)a, types[t], ATLAS_NONE, 0}, t + r + a);
  for (size_t w = 0; w < COUNT(wholes); w++)
    for (size_t t = 0; t < COUNT(types); t++) {
      choice c = {&wholes[w], -1, types[t], ATLAS_NONE, 0};
      if (!has_type(&wholes[w], types[t])) continue;
      if (wholes[w].flags & FORM_INDEX) add_indices(c, t + w);
      else add_choice(c);
    }
}

uint32_t sweep_program_count(void) {
  list_choices();
  return choice_count;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

typedef struct letters {
  char of[26][96];
} letters;

static const char *const atomics[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas"};
enum { IN_ANY_ORDER = 6 }; /* of them */

/* Appends a text; what stands for a letter may have letters of its own. */
static size_t append(const letters *l, const char *text, char *out, size_t size) {
  for (; *text != '\0' && size < MOST_TEXT - 1; text++) {
    if (*text >= 'A' && *text <= 'Z') size = append(l, l->of[*text - 'A'], out, size);
    else out[size++] = *text;
  }
  out[size] = '\0';
  return size;
}

static void set_letter(letters *l, char letter, const char *text) {
  snprintf(l->of[letter - 'A'], sizeof l->of[0], "%s", text);
}

static void set_number(letters *l, char letter, uint64_t number) {
  snprintf(l->of[letter - 'A'], sizeof l->of[0], "%llu", (unsigned long long)number);
}

/* Types without arithmetic go by way of f32. */
static const char *other_value(atlas_type t) {
  if (atlas_op_has_type(ATLAS_OP_add, t)) return "add.T r9, r9, r9\n";
  return "cvt.f32.T r12, r9\nadd.f32 r12, r12, r12\ncvt.T.f32 r9, r12\n";
}

static int64_t choose_shift(random_state *r, const choice *c, int is_own) {
  if (c->index == ATLAS_NONE) return shifts[c->shift];
  if (random_below(r, 2) == 0) return 0;
  return shifts[random_below(r, is_own ? 10 : COUNT(shifts))];
}

static void set_letters(letters *l, random_state *r, const choice *c, sweep_program *p) {
  static const uint32_t counts[] = {1, 5, 16, 31, 64, 100, 256, 300}, blocks[] = {64, 256, 32, 48, 128, 1024, 7};
  int of_block = (p->flags & FORM_OF_BLOCK) != 0, is_own = (p->flags & FORM_OWN) != 0;
  uint64_t atomic = random_below(r, is_own ? COUNT(atomics) : IN_ANY_ORDER);
  p->shift = choose_shift(r, c, is_own && c->address >= 0 && strcmp(addresses[c->address].name, "gathered") == 0);
  p->block = blocks[random_below(r, COUNT(blocks))];
  if (p->flags & FORM_LARGE) p->block = 256;
  set_letter(l, 'T', atlas_type_name(c->type));
  set_letter(l, 'I', c->index != ATLAS_NONE ? atlas_type_name(c->index) : "u64");
  set_letter(l, 'Q', of_block ? "u32 r1, blane" : "u64 r1, lane");
  set_letter(l, 'P', of_block ? "blane" : "lane");
  set_letter(l, 'A', c->address >= 0 ? addresses[c->address].body : "");
  if (p->shift != 0) snprintf(l->of['K' - 'A'], sizeof l->of[0], " + #%lld", (long long)p->shift);
  set_letter(l, 'O', atomics[atomic]);
  set_letter(l, 'X', strcmp(atomics[atomic], "cas") == 0 ? "#3, " : "");
  uint32_t count = counts[random_below(r, COUNT(counts))];
  set_number(l, 'N', count);
  set_number(l, 'U', of_block && count < 4 ? count - 1 : 3);
  set_number(l, 'B', p->block);
  p->part = p->block - 1 - (uint32_t)random_below(r, p->block < 20 ? p->block : 20);
  set_number(l, 'J', p->part);
  set_number(l, 'Z', atlas_type_bits(c->type) / 8);
  set_letter(l, 'Y', other_value(c->type));
}

/* Code before what stands under a branch; its end is `behind_it`. */
static const char *choose_guard(random_state *r, const sweep_program *p) {
  if (!(p->flags & FORM_GUARD)) return NULL;
  switch (random_below(r, 6)) {
  case 0: return "set.lt.u64 p0, lane, limit\n@!p0 bra behind_it\n";
  case 1: return "and.u64 r21, lane, #5\nset.eq.u64 p0, r21, #1\n@p0 bra behind_it\n";
  case 2: return "and.u64 r21, lane, #64\nset.ne.u64 p0, r21, #0\n@p0 bra behind_it\n";
  default: return NULL;
  }
}

static void write_text(const letters *l, random_state *r, const choice *c, sweep_program *p) {
  static const form none = {"", "", "", "", "", 0};
  const form *address = c->address >= 0 ? &addresses[c->address] : &none;
  const char *guard = choose_guard(r, p);
  int has_block = c->address >= 0 && random_below(r, p->flags & (FORM_OF_BLOCK | FORM_GRID) ? 2 : 4) == 0;
  size_t size = append(l, ".program sweep\n", p->text, 0);
  if (strstr(c->route->head, ".block") == NULL && !has_block) p->block = 0;
  if (has_block) size = append(l, p->flags & FORM_PLANE ? ".block 8, 4\n" : ".block B\n", p->text, size);
  if (guard != NULL && strstr(guard, "limit") != NULL) size = append(l, ".scalar limit u64\n", p->text, size);
  const char *const parts[] = {c->route->head,
                               address->head,
                               c->route->before,
                               address->before,
                               guard != NULL ? guard : "",
                               c->route->body,
                               guard != NULL ? "behind_it:\n" : "",
                               c->route->behind,
                               c->address >= 0 ? "exit\n" : ""};
  for (size_t i = 0; i < COUNT(parts); i++) size = append(l, parts[i], p->text, size);
}

void sweep_program_make(uint64_t seed, uint32_t number, int is_brief, sweep_program *out) {
  list_choices();
  const choice *c = &choices[number];
  random_state r = random_of(seed, number);
  letters l = {0};
  *out = (sweep_program){.number = number, .type = c->type, .index = c->index, .is_brief = is_brief};
  out->route = c->route->name;
  out->address = c->address >= 0 ? addresses[c->address].name : "";
  out->flags = c->route->flags | (c->address >= 0 ? addresses[c->address].flags : 0);
  set_letters(&l, &r, c, out);
  write_text(&l, &r, c, out);
}
