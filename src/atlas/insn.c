/* insn.c - uses and definitions of an instruction. */
#include "atlas/insn.h"

static void use(atlas_effects *e, int predicate, uint16_t reg, uint8_t type) {
  e->use[e->use_count++] = (atlas_use){.predicate = (uint8_t)predicate, .reg = reg, .type = type};
}

static void use_address(atlas_effects *e, const atlas_operand *address) {
  switch (address->mode) {
  case ATLAS_ADDRESS_INDEXED: use(e, 0, atlas_register_of(address), ATLAS_ANY_INTEGER); break;
  case ATLAS_ADDRESS_TABLE:
    use(e, 0, address->reg, ATLAS_ANY_INTEGER);
    use(e, 0, address->reg2, ATLAS_ANY_INTEGER);
    break;
  case ATLAS_ADDRESS_PHI:
    if (address->phi_registers & 1) use(e, 0, address->reg, ATLAS_ANY_INTEGER);
    if (address->phi_registers & 2) use(e, 0, address->reg2, ATLAS_ANY_INTEGER);
    if (address->phi_registers & 4) use(e, 0, address->reg3, ATLAS_ANY_INTEGER);
    break;
  default: break;
  }
}

static void define(atlas_effects *e, uint8_t kind, uint16_t reg, uint8_t type) {
  e->defines = kind;
  e->def_reg = reg;
  e->def_type = type;
}

void atlas_effects_of(const atlas_insn *insn, atlas_effects *e) {
  *e = (atlas_effects){0};
  const char *letters = atlas_op_lookup(insn->op)->operands;
  if (insn->guard != 0) use(e, 1, (uint8_t)((insn->guard & ATLAS_GUARD_PREDICATE) - 1), ATLAS_NONE);
  for (unsigned i = 0; letters[i] != '\0'; i++) {
    const atlas_operand *operand = &insn->operand[i];
    int is_register = operand->kind == ATLAS_OPERAND_REG;
    switch (letters[i]) {
    case 's': if (is_register) use(e, 0, atlas_register_of(operand), insn->type); break;
    case 't': if (is_register) use(e, 0, atlas_register_of(operand), insn->type2); break;
    case 'c': if (is_register) use(e, 0, atlas_register_of(operand), ATLAS_u32); break;
    case 'q': use(e, 1, operand->reg, ATLAS_NONE); break;
    case 'm': use_address(e, operand); break;
    case 'd':
    case 'o': if (is_register) define(e, 1, atlas_register_of(operand), insn->type); break;
    case 'p': define(e, 2, operand->reg, ATLAS_NONE); break;
    case 'r':
      use(e, 0, atlas_register_of(operand), ATLAS_u32);
      define(e, 1, atlas_register_of(operand), ATLAS_u32);
      break;
    default: break;
    }
  }
}

const atlas_operand *atlas_address_of(const atlas_insn *insn) {
  for (unsigned i = 0; i < insn->operand_count; i++)
    if (insn->operand[i].kind == ATLAS_OPERAND_MEM) return &insn->operand[i];
  return NULL;
}

const atlas_symbol *atlas_memory_of(const atlas_program *program, const atlas_insn *insn) {
  const atlas_operand *address = atlas_address_of(insn);
  if (address == NULL || address->mode == ATLAS_ADDRESS_PHI) return NULL;
  return atlas_symbol_at(program, address->symbol);
}

uint32_t atlas_argument_count(const atlas_op_info *info) {
  uint32_t count = 0;
  for (const char *letter = info->operands; *letter != '\0'; letter++) count += *letter == 's';
  return count;
}

int atlas_phi_exists(const atlas_operand *address) {
  uint32_t constants[3] = {address->bits & 0xffff, address->bits >> 16 & 0xffff, (uint32_t)(address->bits >> 32)};
  for (int i = 0; i < 3; i++)
    if (address->phi_registers >> i & 1) constants[i] = 0;
  return atlas_boundary_offset(constants[0], constants[1], constants[2]) >= 0;
}
