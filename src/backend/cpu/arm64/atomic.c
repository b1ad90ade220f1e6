/* atomic.c - one atomic update. Where other workers may see the memory it uses exclusive loads and stores, which every
 * processor has; shared memory belongs to one worker. */
#include "backend/cpu/arm64/emit_neon.h"

#include "compiler/machine_ops.h"

enum { OLD = 0, PLACE = 1, VALUE = 3, NEW = 4, COMPARED = 5 }; /* x registers */

/* NEW = OLD or VALUE, by `condition` of OLD compared with VALUE. */
static unsigned choose(neon_emit *e, a64_condition condition, int is_64) {
  hg_a64(&e->a, is_64 ? A64_subs_x : A64_subs_w, 0, A64_ZR, OLD, VALUE);
  hg_a64_select(&e->a, NEW, OLD, VALUE, condition);
  return NEW;
}

/* The register that is to be stored. Jumps to `done` if nothing is. */
static unsigned combine(neon_emit *e, int is_64, uint32_t done) {
  a64_asm *a = &e->a;
  int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
  switch ((machine_atomic)hg_machine_op(e->insn->op)) {
  case ATOMIC_atom_add: hg_a64(a, A64_add_x, 0, NEW, OLD, VALUE); return NEW;
  case ATOMIC_atom_and: hg_a64(a, A64_and_x, 0, NEW, OLD, VALUE); return NEW;
  case ATOMIC_atom_or: hg_a64(a, A64_orr_x, 0, NEW, OLD, VALUE); return NEW;
  case ATOMIC_atom_xor: hg_a64(a, A64_eor_x, 0, NEW, OLD, VALUE); return NEW;
  case ATOMIC_atom_min: return choose(e, is_signed ? A64_LE : A64_LS, is_64);
  case ATOMIC_atom_max: return choose(e, is_signed ? A64_GE : A64_HS, is_64);
  case ATOMIC_atom_cas:
    hg_a64(a, is_64 ? A64_subs_x : A64_subs_w, 0, A64_ZR, OLD, COMPARED);
    hg_a64_jump_if(a, A64_NE, done);
    return VALUE;
  case ATOMIC_atom_exch: break;
  }
  return VALUE;
}

void hg_neon_update(neon_emit *e) {
  a64_asm *a = &e->a;
  int is_64 = atlas_bytes((atlas_type)e->insn->type) == 8;
  uint32_t again = hg_a64_new_label(a), done = hg_a64_new_label(a);
  if (atlas_symbol_at(e->b->program, e->insn->symbol)->kind == ATLAS_SYMBOL_SHARED) {
    hg_a64_memory(a, is_64 ? A64_ldr_x : A64_ldr_w, OLD, PLACE, 0);
    hg_a64_memory(a, is_64 ? A64_str_x : A64_str_w, combine(e, is_64, done), PLACE, 0);
  } else {
    hg_a64_place(a, again);
    hg_a64_load_exclusive(a, is_64, OLD, PLACE);
    hg_a64_store_exclusive(a, is_64, A64_X16, combine(e, is_64, done), PLACE);
    hg_a64_jump_not_zero(a, A64_X16, again);
  }
  hg_a64_place(a, done);
}
