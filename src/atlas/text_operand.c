/* text_operand.c - operands of the text form: one function a letter of forms.def. */
#include "atlas/number.h"
#include "atlas/text.h"
#include "base/error.h"

#include <string.h>

/* ---- constants ---------------------------------------------------------------------------------------------- */

static hg_status constant_out_of_range(const text_parser *p, const text_token *at, atlas_type type) {
  char low[ATLAS_NUMBER_CHARS], high[ATLAS_NUMBER_CHARS];
  if (!atlas_is_integer(type))
    return atlas_text_fail(p, at, "'%s' is too large for %s", TEXT_ARG(at), atlas_type_name(type));
  atlas_number_print(type, atlas_integer_min(type), low);
  atlas_number_print(type, atlas_integer_max(type), high);
  return atlas_text_fail(p, at, "'%s' does not fit %s (%s to %s)", TEXT_ARG(at), atlas_type_name(type), low, high);
}

hg_status atlas_text_constant(text_parser *p, atlas_type type, uint64_t *bits) {
  text_token token = p->token;
  uint32_t skip = token.kind == TEXT_CONSTANT;
  switch (atlas_number_parse(type, token.text + skip, token.length - skip, bits)) {
  case ATLAS_NUMBER_OK: return atlas_text_advance(p);
  case ATLAS_NUMBER_RANGE: return constant_out_of_range(p, &token, type);
  case ATLAS_NUMBER_LENGTH:
    return atlas_text_fail(p, &token, "the constant has %u characters; at most %u are possible",
                           (unsigned)(token.length - skip), (unsigned)ATLAS_NUMBER_MAX_LENGTH);
  default:
    return atlas_text_fail(p, &token, "'%s' is not a constant of type %s: %s", TEXT_ARG(&token),
                           atlas_type_name(type),
                           atlas_is_integer(type) ? "write #12, #-3 or #0xff"
                                                  : "write #1.5, #-2e-3, #0x1.8p3, #inf, #nan or the bits as #0x...");
  }
}

static hg_status constant_operand(text_parser *p, atlas_type type, atlas_operand *operand) {
  if (p->token.kind != TEXT_CONSTANT) return atlas_text_expected(p, "a constant (#...)");
  operand->kind = ATLAS_OPERAND_IMM;
  return atlas_text_constant(p, type, &operand->bits);
}

/* ---- registers ---------------------------------------------------------------------------------------------- */

/* The number after the letter of `r12` or `p3`; -1 where the token is not of that shape, 1000 where it is too large. */
static int register_number(const text_token *token, char letter) {
  if (token->kind != TEXT_WORD || token->length < 2 || token->text[0] != letter) return -1;
  int number = 0;
  for (uint32_t i = 1; i < token->length; i++) {
    char c = token->text[i];
    if (c < '0' || c > '9') return -1;
    if (number < 1000) number = number * 10 + (c - '0');
  }
  return number < 1000 ? number : 1000;
}

static int is_register(const text_token *token) {
  return atlas_text_is_word(token, "lane") || atlas_text_is_word(token, "blane") || register_number(token, 'r') >= 0;
}

/* Any general or special register; goes past it. */
static hg_status any_register(text_parser *p, uint8_t *reg) {
  int number = register_number(&p->token, 'r');
  if (atlas_text_is_word(&p->token, "lane")) number = ATLAS_REG_LANE;
  if (atlas_text_is_word(&p->token, "blane")) number = ATLAS_REG_BLOCK_LANE;
  if (number < 0) return atlas_text_expected(p, "a register");
  if (number > ATLAS_REG_LANE)
    return atlas_text_fail(p, &p->token, "'%s' is not a register: there are r0 to r255", TEXT_ARG(&p->token));
  *reg = (uint8_t)number;
  return atlas_text_advance(p);
}

static hg_status written_register(text_parser *p, atlas_operand *operand) {
  text_token token = p->token;
  operand->kind = ATLAS_OPERAND_REG;
  HG_TRY(any_register(p, &operand->reg));
  if (operand->reg >= ATLAS_GENERAL_REGISTERS)
    return atlas_text_fail(p, &token, "'%s' cannot be written: results go to r0 to r251", TEXT_ARG(&token));
  return HG_OK;
}

static hg_status read_register(text_parser *p, atlas_type type, atlas_operand *operand) {
  text_token token = p->token;
  operand->kind = ATLAS_OPERAND_REG;
  HG_TRY(any_register(p, &operand->reg));
  atlas_type special = atlas_special_type(operand->reg);
  if (special != ATLAS_NONE && special != type)
    return atlas_text_fail(p, &token, "'%s' is %s; %s is needed here", TEXT_ARG(&token), atlas_type_name(special),
                           atlas_type_name(type));
  return HG_OK;
}

hg_status atlas_text_predicate(text_parser *p, uint8_t *number) {
  int n = register_number(&p->token, 'p');
  if (n < 0) return atlas_text_expected(p, "a predicate (p0 to p15)");
  if (n >= ATLAS_PREDICATES)
    return atlas_text_fail(p, &p->token, "'%s' is not a predicate: there are p0 to p15", TEXT_ARG(&p->token));
  *number = (uint8_t)n;
  return atlas_text_advance(p);
}

/* ---- symbols and labels ------------------------------------------------------------------------------------- */

enum {
  KIND_BUFFER = 1 << ATLAS_SYMBOL_BUFFER,
  KIND_SCALAR = 1 << ATLAS_SYMBOL_SCALAR,
  KIND_SHARED = 1 << ATLAS_SYMBOL_SHARED,
  KIND_CONST = 1 << ATLAS_SYMBOL_CONST,
  KIND_TABLE = 1 << ATLAS_SYMBOL_TABLE,
  KIND_POOL = 1 << ATLAS_SYMBOL_POOL,
  KIND_LOCAL = 1 << ATLAS_SYMBOL_LOCAL
};

static const char *kind_name(uint32_t kind) {
  static const char *const names[] = {
      "", "a buffer", "a scalar", "a shared array", "a constant table", "a buffer table", "a pool", "a local array"};
  return kind <= ATLAS_SYMBOL_LOCAL ? names[kind] : "";
}

/* The symbol that the current token names, which must be of one of the kinds; goes past it. */
static hg_status symbol_operand(text_parser *p, unsigned kinds, const char *what, uint16_t *symbol) {
  const text_token *token = &p->token;
  if (token->kind != TEXT_WORD) return atlas_text_expected(p, what);
  const atlas_symbol *found = atlas_program_find_symbol(p->program, token->text, token->length);
  if (found == NULL) {
    char hint[128];
    text_nearest nearest = {.word = token->text, .length = token->length};
    for (size_t i = 0; i < p->program->symbols.count; i++)
      if (1u << atlas_symbol_at(p->program, i)->kind & kinds)
        atlas_text_nearest_offer(&nearest, atlas_symbol_at(p->program, i)->name);
    if (!atlas_name_is_valid(token->text, token->length)) return atlas_text_expected(p, what);
    return atlas_text_fail(p, token, "expected %s; '%s' is not declared%s", what, TEXT_ARG(token),
                           atlas_text_hint(&nearest, hint));
  }
  if ((1u << found->kind & kinds) == 0)
    return atlas_text_fail(p, token, "expected %s; '%s' is %s", what, found->name, kind_name(found->kind));
  *symbol = (uint16_t)(found - atlas_symbol_at(p->program, 0));
  return atlas_text_advance(p);
}

hg_status atlas_text_use_label(text_parser *p, size_t index, int slot) {
  if (p->token.kind != TEXT_WORD || !atlas_label_is_valid(p->token.text, p->token.length))
    return atlas_text_expected(p, "a label");
  text_label_use use = {.token = p->token, .index = (uint32_t)index, .slot = (int8_t)slot};
  if (hg_array_append(p->allocator, &p->label_uses, &use, 1) == NULL) return hg_fail_memory("label uses", sizeof use);
  return atlas_text_advance(p);
}

/* ---- sources ------------------------------------------------------------------------------------------------ */

static hg_status source(text_parser *p, atlas_type type, atlas_operand *operand) {
  text_token token = p->token;
  if (is_register(&token)) return read_register(p, type, operand);
  if (atlas_kind(type) == ATLAS_KIND_STORAGE) {
    char what[80] = "a register: ";
    strcat(what, atlas_type_name(type));
    return atlas_text_expected(p, strcat(what, " is a type for storage only"));
  }
  if (token.kind == TEXT_CONSTANT) return constant_operand(p, type, operand);
  operand->kind = ATLAS_OPERAND_SCALAR;
  HG_TRY(symbol_operand(p, KIND_SCALAR, "a register, a constant (#...) or a scalar parameter", &operand->symbol));
  atlas_type declared = (atlas_type)atlas_symbol_at(p->program, operand->symbol)->type;
  if (declared != type)
    return atlas_text_fail(p, &token, "scalar '%s' is %s; %s is needed here", TEXT_ARG(&token),
                           atlas_type_name(declared), atlas_type_name(type));
  return HG_OK;
}

static hg_status coordinate(text_parser *p, atlas_operand *operand) {
  char hint[128];
  text_nearest nearest = {.word = p->token.text, .length = p->token.length};
  if (p->token.kind != TEXT_WORD) return atlas_text_expected(p, "a coordinate (lane.x, block.y, grid_size.z, ...)");
  operand->kind = ATLAS_OPERAND_COORD;
  for (uint32_t i = 0; atlas_coord_name(i) != NULL; i++) {
    operand->bits = i;
    if (atlas_text_is_word(&p->token, atlas_coord_name(i))) return atlas_text_advance(p);
    atlas_text_nearest_offer(&nearest, atlas_coord_name(i));
  }
  return atlas_text_fail(p, &p->token,
                         "'%s' is not a coordinate: lane, block, block_size, grid_size or global with .x, .y or .z%s",
                         TEXT_ARG(&p->token), atlas_text_hint(&nearest, hint));
}

/* ---- addresses ---------------------------------------------------------------------------------------------- */

/* After `phi`: three parts, each a register or a number that exists. */
static hg_status phi_address(text_parser *p, atlas_operand *operand) {
  static const struct {
    const char *what;
    uint32_t most;
    int shift;
  } parts[3] = {{"class", ATLAS_CLASS_COUNT - 1, 0},
                {"page", ATLAS_CLASS_PAGES - 1, 16},
                {"byte", ATLAS_CLASS_PAGE_BYTES - 1, 32}};
  uint8_t *registers[3] = {&operand->reg, &operand->reg2, &operand->reg3};
  operand->mode = ATLAS_ADDRESS_PHI;
  for (int i = 0; i < 3; i++) {
    if (i > 0) HG_TRY(atlas_text_expect(p, ',', "',' and the next of class, page, byte"));
    text_token token = p->token;
    uint64_t value = 0;
    if (is_register(&token)) {
      HG_TRY(any_register(p, registers[i]));
      operand->phi_registers |= (uint8_t)(1 << i);
      continue;
    }
    if (token.kind != TEXT_NUMBER && token.kind != TEXT_CONSTANT)
      return atlas_text_expected(p, "a register or a number");
    HG_TRY(atlas_text_constant(p, ATLAS_u32, &value));
    if (value > parts[i].most)
      return atlas_text_fail(p, &token, "%s %s does not exist: 0 to %u", parts[i].what, TEXT_ARG(&token),
                             (unsigned)parts[i].most);
    operand->bits |= value << parts[i].shift;
  }
  return HG_OK;
}

/* `rH : rOff` */
static hg_status table_address(text_parser *p, atlas_operand *operand) {
  text_token token = p->token;
  operand->mode = ATLAS_ADDRESS_TABLE;
  HG_TRY(any_register(p, &operand->reg));
  HG_TRY(
      atlas_text_expect(p, ':', "':' (the address [entry : offset] of a buffer table, or start with a buffer's name)"));
  HG_TRY(any_register(p, &operand->reg2));
  for (size_t i = 0; i < p->program->symbols.count; i++) {
    operand->symbol = (uint16_t)i;
    if (atlas_symbol_at(p->program, i)->kind == ATLAS_SYMBOL_TABLE) return HG_OK;
  }
  return atlas_text_fail(p, &token, "the address [entry : offset] needs a buffer table; declare one with .table");
}

static unsigned address_kinds(const atlas_op_info *info, const char **what) {
  static const struct {
    uint32_t flag;
    unsigned kinds;
    const char *what;
  } spaces[] = {
      {ATLAS_SPACE_GLOBAL, KIND_BUFFER, "a buffer"},
      {ATLAS_SPACE_SHARED, KIND_SHARED, "a shared array"},
      {ATLAS_SPACE_LOCAL, KIND_LOCAL, "a local array"},
      {ATLAS_SPACE_CONST, KIND_CONST, "a constant table"},
      {ATLAS_SPACE_POOL, KIND_POOL, "a pool"},
      {ATLAS_ATOMIC, KIND_BUFFER | KIND_SHARED, "a buffer or a shared array"},
  };
  for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
    *what = spaces[i].what;
    if (info->flags & spaces[i].flag) return spaces[i].kinds;
  }
  return 0;
}

/* `symbol`, `symbol + #d`, `symbol + reg`, `symbol + reg + #d` */
static hg_status symbol_address(text_parser *p, const atlas_op_info *info, atlas_type type, atlas_operand *operand) {
  const char *what = NULL;
  text_token token = p->token;
  unsigned kinds = address_kinds(info, &what);
  HG_TRY(symbol_operand(p, kinds, what, &operand->symbol));
  const atlas_symbol *symbol = atlas_symbol_at(p->program, operand->symbol);
  if (symbol->kind != ATLAS_SYMBOL_POOL && symbol->type != type)
    return atlas_text_fail(p, &token, "'%s' holds %s, not %s", symbol->name, atlas_type_name((atlas_type)symbol->type),
                           atlas_type_name(type));
  if (!atlas_text_is(p, '+')) return HG_OK;
  HG_TRY(atlas_text_advance(p));
  if (is_register(&p->token)) {
    operand->mode = ATLAS_ADDRESS_INDEXED;
    HG_TRY(any_register(p, &operand->reg));
    if (!atlas_text_is(p, '+')) return HG_OK;
    HG_TRY(atlas_text_advance(p));
  } else if (p->token.kind != TEXT_CONSTANT) {
    return atlas_text_expected(p, "a register, lane, blane or a constant (#...)");
  }
  if (p->token.kind != TEXT_CONSTANT) return atlas_text_expected(p, "a constant (#...)");
  return atlas_text_constant(p, ATLAS_i64, &operand->bits);
}

static hg_status address(text_parser *p, const atlas_op_info *info, atlas_type type, atlas_operand *operand) {
  operand->kind = ATLAS_OPERAND_MEM;
  HG_TRY(atlas_text_expect(p, '[', "an address ([...])"));
  text_token token = p->token;
  int boundary = atlas_text_is_word(&token, "phi"), table = is_register(&token);
  if ((boundary || table) && (info->flags & ATLAS_SPACE_GLOBAL) == 0)
    return atlas_text_fail(p, &token, "'%s' does not take the address [%s]", info->mnemonic,
                           boundary ? "phi class, page, byte" : "entry : offset");
  if (boundary) {
    HG_TRY(atlas_text_advance(p));
    HG_TRY(phi_address(p, operand));
  } else if (table) {
    HG_TRY(table_address(p, operand));
  } else {
    HG_TRY(symbol_address(p, info, type, operand));
  }
  return atlas_text_expect(p, ']', operand->mode == ATLAS_ADDRESS_UNIFORM && operand->bits == 0 ? "'+' or ']'" : "']'");
}

/* ---- dispatch ----------------------------------------------------------------------------------------------- */

hg_status atlas_text_operand(text_parser *p, const atlas_op_info *info, atlas_insn *insn, unsigned slot) {
  atlas_operand *operand = &insn->operand[slot];
  atlas_type type = (atlas_type)insn->type;
  switch (info->operands[slot]) {
  case 'o':
    if (atlas_text_is_word(&p->token, "_")) return atlas_text_advance(p);
    return written_register(p, operand);
  case 'd':
  case 'r': return written_register(p, operand);
  case 's': return source(p, type, operand);
  case 't': return source(p, (atlas_type)insn->type2, operand);
  case 'c': return source(p, ATLAS_u32, operand);
  case 'n': return constant_operand(p, type, operand);
  case 'k': return constant_operand(p, ATLAS_u32, operand);
  case 'm':
  case 'w': return address(p, info, type, operand);
  case 'p':
  case 'q': operand->kind = ATLAS_OPERAND_PRED; return atlas_text_predicate(p, &operand->reg);
  case 'l': operand->kind = ATLAS_OPERAND_LABEL; return atlas_text_use_label(p, p->program->insns.count, (int)slot);
  case 'x': return coordinate(p, operand);
  case 'h': operand->kind = ATLAS_OPERAND_POOL; return symbol_operand(p, KIND_POOL, "a pool", &operand->symbol);
  case 'b': operand->kind = ATLAS_OPERAND_BUFFER; return symbol_operand(p, KIND_BUFFER, "a buffer", &operand->symbol);
  default: return atlas_text_fail(p, &p->token, "'%s' has an operand that this version cannot read", info->mnemonic);
  }
}
