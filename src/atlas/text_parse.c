/* text_parse.c - statements of the text form: directives, labels, instructions. To add a directive: one function and
 * one row in `directives`, and its line in text_print.c. */
#include "atlas/text.h"
#include "base/bytes.h"
#include "base/error.h"

#include <string.h>

/* ---- parts of directives ------------------------------------------------------------------------------------ */

/* A word with the letters and the length of a name; goes past it. */
static hg_status parse_word(text_parser *p, const char *what, char name[ATLAS_MAX_NAME + 1]) {
  const text_token *token = &p->token;
  if (token->kind != TEXT_WORD) return atlas_text_expected(p, what);
  if (token->length > ATLAS_MAX_NAME)
    return atlas_text_fail(p, token, "a name has at most %u characters; this one has %u", (unsigned)ATLAS_MAX_NAME,
                           (unsigned)token->length);
  if (memchr(token->text, '.', token->length) != NULL)
    return atlas_text_fail(p, token, "'%s' is not a name: letters, digits and _ only", TEXT_ARG(token));
  atlas_name_copy(name, token->text, token->length);
  return atlas_text_advance(p);
}

/* A name that is valid for a declaration; goes past it. */
static hg_status parse_name(text_parser *p, const char *what, char name[ATLAS_MAX_NAME + 1]) {
  text_token token = p->token;
  HG_TRY(parse_word(p, what, name));
  if (atlas_name_is_valid(token.text, token.length)) return HG_OK;
  return atlas_text_fail(p, &token, "'%s' is a word of the language and cannot be a name", TEXT_ARG(&token));
}

static hg_status parse_type(text_parser *p, uint8_t *type) {
  char hint[128];
  const text_token *token = &p->token;
  if (token->kind != TEXT_WORD) return atlas_text_expected(p, "a type");
  *type = (uint8_t)atlas_type_lookup_name(token->text, token->length);
  if (*type == ATLAS_NONE)
    return atlas_text_fail(p, token, "'%s' is not a type%s", TEXT_ARG(token),
                           atlas_text_type_hint(token->text, token->length, hint));
  return atlas_text_advance(p);
}

static hg_status parse_access(text_parser *p, uint8_t *access) {
  for (unsigned a = ATLAS_IN; a <= ATLAS_INOUT; a++) {
    *access = (uint8_t)a;
    if (atlas_text_is_word(&p->token, atlas_access_name(a))) return atlas_text_advance(p);
  }
  return atlas_text_expected(p, "in, out or inout");
}

static hg_status parse_number(text_parser *p, atlas_type type, const char *what, uint64_t *value) {
  if (p->token.kind != TEXT_NUMBER) return atlas_text_expected(p, what);
  return atlas_text_constant(p, type, value);
}

static hg_status parse_count(text_parser *p, uint32_t *count) {
  uint64_t value = 0;
  HG_TRY(parse_number(p, ATLAS_u32, "a count", &value));
  *count = (uint32_t)value;
  return HG_OK;
}

/* Declares a symbol; errors are reported at the position of its name. */
static hg_status declare(text_parser *p, const text_token *name, const atlas_symbol *symbol) {
  hg_status status = atlas_program_declare(p->program, symbol);
  return status == HG_INVALID_ARGUMENT ? atlas_text_fail(p, name, "%s", hg_last_error()) : status;
}

/* ---- directives --------------------------------------------------------------------------------------------- */

static hg_status parse_program(text_parser *p, const text_token *at) {
  if (p->has_statement) return atlas_text_fail(p, at, ".program must come first, and once");
  return parse_name(p, "the program's name", p->program->name);
}

static hg_status parse_block(text_parser *p, const text_token *at) {
  if (p->has_block) return atlas_text_fail(p, at, ".block stands twice");
  p->has_block = 1;
  uint64_t lanes = 1, value = 0;
  uint32_t block[3];
  for (int i = 0; i < 3; i++) {
    block[i] = 1;
    if (i > 0 && !atlas_text_is(p, ',')) continue;
    if (i > 0) HG_TRY(atlas_text_advance(p));
    text_token token = p->token;
    HG_TRY(parse_number(p, ATLAS_u32, "a block size", &value));
    if (value == 0 || value * lanes > ATLAS_MAX_BLOCK_LANES)
      return atlas_text_fail(p, &token, "a block of %llu lanes is not possible: 1 to %u",
                             (unsigned long long)(value * lanes), (unsigned)ATLAS_MAX_BLOCK_LANES);
    lanes *= value;
    block[i] = (uint32_t)value;
  }
  int is_default = atlas_text_is_word(&p->token, "default");
  memcpy(is_default ? p->program->default_block : p->program->block, block, sizeof block);
  return is_default ? atlas_text_advance(p) : HG_OK;
}

static hg_status parse_buffer(text_parser *p, const text_token *at) {
  (void)at;
  atlas_symbol symbol = {.kind = ATLAS_SYMBOL_BUFFER};
  text_token name = p->token;
  HG_TRY(parse_name(p, "the buffer's name", symbol.name));
  HG_TRY(parse_type(p, &symbol.type));
  HG_TRY(parse_access(p, &symbol.access));
  if (atlas_text_is_word(&p->token, "handle")) {
    HG_TRY(atlas_text_advance(p));
    text_token handle = p->token;
    HG_TRY(parse_number(p, ATLAS_u64, "a buffer handle", &symbol.handle));
    if (symbol.handle == 0) return atlas_text_fail(p, &handle, "0 is not a buffer handle");
  }
  return declare(p, &name, &symbol);
}

static hg_status parse_scalar(text_parser *p, const text_token *at) {
  (void)at;
  atlas_symbol symbol = {.kind = ATLAS_SYMBOL_SCALAR};
  text_token name = p->token;
  HG_TRY(parse_name(p, "the scalar's name", symbol.name));
  HG_TRY(parse_type(p, &symbol.type));
  return declare(p, &name, &symbol);
}

static hg_status parse_array(text_parser *p, uint8_t kind, const char *what) {
  atlas_symbol symbol = {.kind = kind};
  text_token name = p->token;
  HG_TRY(parse_name(p, what, symbol.name));
  HG_TRY(parse_type(p, &symbol.type));
  HG_TRY(parse_count(p, &symbol.count));
  return declare(p, &name, &symbol);
}

static hg_status parse_shared(text_parser *p, const text_token *at) {
  (void)at;
  return parse_array(p, ATLAS_SYMBOL_SHARED, "the shared array's name");
}

static hg_status parse_local(text_parser *p, const text_token *at) {
  (void)at;
  return parse_array(p, ATLAS_SYMBOL_LOCAL, "the local array's name");
}

static hg_status skip_newlines(text_parser *p) {
  while (p->token.kind == TEXT_NEWLINE) HG_TRY(atlas_text_advance(p));
  return HG_OK;
}

/* `{ #v, #v, ... }` over any number of lines, into `bytes` (ATLAS_MAX_CONST_BYTES of them). */
static hg_status parse_values(text_parser *p, atlas_symbol *symbol, uint8_t *bytes) {
  atlas_type type = (atlas_type)symbol->type;
  uint32_t width = atlas_bytes(type);
  HG_TRY(skip_newlines(p));
  HG_TRY(atlas_text_expect(p, '{', "'{' and the values of the table"));
  HG_TRY(skip_newlines(p));
  do {
    uint64_t bits = 0;
    if (p->token.kind != TEXT_CONSTANT) return atlas_text_expected(p, "a value (#...)");
    if ((symbol->count + 1) * width > ATLAS_MAX_CONST_BYTES)
      return atlas_text_fail(p, &p->token, "constant table '%s' is too large: at most %u bytes", symbol->name,
                             (unsigned)ATLAS_MAX_CONST_BYTES);
    HG_TRY(atlas_text_constant(p, type, &bits));
    hg_store_le(bytes + symbol->count++ * width, width, bits);
    HG_TRY(skip_newlines(p));
    if (!atlas_text_is(p, ',')) return atlas_text_expect(p, '}', "',' or '}'");
    HG_TRY(atlas_text_advance(p));
    HG_TRY(skip_newlines(p));
  } while (!atlas_text_is(p, '}'));
  return atlas_text_advance(p);
}

static hg_status parse_const(text_parser *p, const text_token *at) {
  (void)at;
  atlas_symbol symbol = {.kind = ATLAS_SYMBOL_CONST};
  text_token name = p->token;
  HG_TRY(parse_name(p, "the constant table's name", symbol.name));
  text_token type = p->token;
  HG_TRY(parse_type(p, &symbol.type));
  if (atlas_kind((atlas_type)symbol.type) == ATLAS_KIND_STORAGE)
    return atlas_text_fail(p, &type, "a constant table cannot hold %s: it is a type for storage only",
                           atlas_type_name((atlas_type)symbol.type));
  uint8_t *bytes = hg_allocate(p->allocator, ATLAS_MAX_CONST_BYTES, 1);
  if (bytes == NULL) return hg_fail_memory("a constant table", ATLAS_MAX_CONST_BYTES);
  size_t byte_count = 0;
  hg_status status = parse_values(p, &symbol, bytes);
  if (status == HG_OK) {
    symbol.const_offset = (uint32_t)p->program->constants.count;
    byte_count = (size_t)symbol.count * atlas_bytes((atlas_type)symbol.type);
    status = declare(p, &name, &symbol);
  }
  if (status == HG_OK) status = atlas_program_add_constants(p->program, bytes, byte_count, &symbol.const_offset);
  hg_release(p->allocator, bytes);
  return status;
}

static hg_status parse_table(text_parser *p, const text_token *at) {
  (void)at;
  atlas_symbol symbol = {.kind = ATLAS_SYMBOL_TABLE, .type = ATLAS_u8};
  text_token name = p->token;
  HG_TRY(parse_name(p, "the buffer table's name", symbol.name));
  HG_TRY(parse_count(p, &symbol.count));
  HG_TRY(parse_access(p, &symbol.access));
  return declare(p, &name, &symbol);
}

static hg_status parse_pool(text_parser *p, const text_token *at) {
  (void)at;
  atlas_symbol symbol = {.kind = ATLAS_SYMBOL_POOL, .type = ATLAS_u8, .access = ATLAS_INOUT};
  text_token name = p->token;
  HG_TRY(parse_name(p, "the pool's name", symbol.name));
  return declare(p, &name, &symbol);
}

static hg_status unknown_instruction(const text_parser *p, const text_token *token);

static hg_status parse_entry(text_parser *p, const text_token *at) {
  (void)at;
  atlas_entry entry = {0};
  text_token name = p->token;
  if (name.kind != TEXT_WORD) return atlas_text_expected(p, "an instruction's name");
  const atlas_op_info *info = atlas_op_lookup_name(name.text, name.length);
  if (info == NULL) return unknown_instruction(p, &name);
  if ((info->flags & ATLAS_FUNC) == 0)
    return atlas_text_fail(p, &name, "'%s' is not a function: an entry defines an instruction such as exp",
                           info->mnemonic);
  HG_TRY(atlas_text_advance(p));
  entry.op = info->op;
  text_token type = p->token;
  HG_TRY(parse_type(p, &entry.type));
  if (!atlas_op_has_type((atlas_op)info->op, (atlas_type)entry.type))
    return atlas_text_fail(p, &type, "'%s' does not exist for %s", info->mnemonic,
                           atlas_type_name((atlas_type)entry.type));
  for (size_t i = 0; i < p->program->entries.count; i++)
    if (atlas_entry_at(p->program, i)->op == entry.op && atlas_entry_at(p->program, i)->type == entry.type)
      return atlas_text_fail(p, &name, "the entry of '%s.%s' stands twice", info->mnemonic,
                             atlas_type_name((atlas_type)entry.type));
  HG_TRY(atlas_text_use_label(p, p->program->entries.count, -1));
  if (hg_array_append(p->allocator, &p->program->entries, &entry, 1) == NULL)
    return hg_fail_memory("entries", sizeof entry);
  return HG_OK;
}

static hg_status parse_directive(text_parser *p) {
  static const struct {
    const char *word;
    hg_status (*parse)(text_parser *p, const text_token *at);
  } directives[] = {{".program", parse_program}, {".block", parse_block},   {".buffer", parse_buffer},
                    {".scalar", parse_scalar},   {".shared", parse_shared}, {".const", parse_const},
                    {".table", parse_table},     {".pool", parse_pool},     {".entry", parse_entry},
                    {".local", parse_local}};
  char hint[128];
  text_token token = p->token;
  text_nearest nearest = {.word = token.text, .length = token.length};
  HG_TRY(atlas_text_advance(p));
  for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++) {
    size_t length = strlen(directives[i].word);
    if (length == token.length && memcmp(directives[i].word, token.text, length) == 0)
      return directives[i].parse(p, &token);
    atlas_text_nearest_offer(&nearest, directives[i].word);
  }
  return atlas_text_fail(p, &token, "'%s' is not a directive%s", TEXT_ARG(&token), atlas_text_hint(&nearest, hint));
}

/* ---- mnemonics ---------------------------------------------------------------------------------------------- */

typedef struct suffixes {
  const char *text[2];
  uint32_t length[2];
  uint32_t count;
} suffixes;

/* Splits what follows a mnemonic, ".f32.i32", at its dots. 0 if there are more than two parts. */
static int split_suffixes(const char *text, const char *end, suffixes *s) {
  *s = (suffixes){0};
  while (text < end) {
    if (s->count == 2) return 0;
    const char *first = text + 1;
    const char *dot = memchr(first, '.', (size_t)(end - first));
    text = dot != NULL ? dot : end;
    s->text[s->count] = first;
    s->length[s->count++] = (uint32_t)(text - first);
  }
  return 1;
}

static hg_status unknown_instruction(const text_parser *p, const text_token *token) {
  char hint[128];
  text_nearest nearest = {.word = token->text, .length = token->length};
  for (;;) { /* the word without 0, 1, 2, ... of its suffixes */
    for (size_t i = 0; i < atlas_op_count(); i++) atlas_text_nearest_offer(&nearest, atlas_op_name(atlas_op_at(i)));
    size_t length = nearest.length;
    while (length > 0 && nearest.word[length - 1] != '.') length--;
    if (length <= 1 || nearest.best != NULL) break;
    nearest.length = length - 1;
  }
  return atlas_text_fail(p, token, "'%s' is not an instruction%s", TEXT_ARG(token), atlas_text_hint(&nearest, hint));
}

/* Names of the types of a set, in the table's order. */
static const char *type_list(uint32_t types, char text[128]) {
  text[0] = '\0';
  for (unsigned t = 1; t < ATLAS_TYPE_COUNT; t++) {
    if ((types >> t & 1) == 0) continue;
    if (text[0] != '\0') strcat(text, " ");
    strcat(text, atlas_type_name((atlas_type)t));
  }
  return text;
}

static hg_status check_type(const text_parser *p, const text_token *at, const atlas_op_info *info, atlas_type type) {
  char list[128];
  if (atlas_op_has_type((atlas_op)info->op, type)) return HG_OK;
  return atlas_text_fail(p, at, "'%s' does not exist for %s, only for %s", info->mnemonic, atlas_type_name(type),
                         type_list(info->types, list));
}

static hg_status apply_suffixes(const text_parser *p, const text_token *token, const atlas_op_info *info,
                                const suffixes *s, atlas_insn *insn) {
  char text[128];
  uint32_t wanted = info->types == 0 ? 0 : info->flags & ATLAS_SECOND ? 2 : 1;
  uint8_t types[2] = {0, 0};
  for (uint32_t i = 0; i < s->count; i++) {
    text_token at = *token;
    at.column += (uint32_t)(s->text[i] - token->text);
    if (wanted == 0) return atlas_text_fail(p, &at, "'%s' takes no type", info->mnemonic);
    types[i] = (uint8_t)atlas_type_lookup_name(s->text[i], s->length[i]);
    if (types[i] == ATLAS_NONE)
      return atlas_text_fail(p, &at, "'%s' is not a type%s", HG_WORD(s->text[i], s->length[i]),
                             atlas_text_type_hint(s->text[i], s->length[i], text));
    if (i >= wanted) return atlas_text_fail(p, &at, "'%s' takes one type", info->mnemonic);
    HG_TRY(check_type(p, &at, info, (atlas_type)types[i]));
  }
  if (s->count < wanted && wanted == 2)
    return atlas_text_fail(p, token, "'%s' needs two types: %s.<to>.<from>", info->mnemonic, info->mnemonic);
  if (s->count < wanted)
    return atlas_text_fail(p, token, "'%s' needs a type: one of %s", info->mnemonic, type_list(info->types, text));
  insn->type = types[0];
  insn->type2 = types[1];
  if (insn->op == ATLAS_OP_bitcast && atlas_type_bits((atlas_type)types[0]) != atlas_type_bits((atlas_type)types[1]))
    return atlas_text_fail(p, token, "'bitcast' needs two types of the same width; %s and %s differ",
                           atlas_type_name((atlas_type)types[0]), atlas_type_name((atlas_type)types[1]));
  return HG_OK;
}

/* The longest prefix of the word, cut at a dot, that is a mnemonic; the rest must be its types. */
static hg_status parse_mnemonic(text_parser *p, atlas_insn *insn, const atlas_op_info **info) {
  text_token token = p->token;
  const char *end = token.text + token.length, *cut = end;
  if (token.kind != TEXT_WORD) return atlas_text_expected(p, "an instruction");
  while ((*info = atlas_op_lookup_name(token.text, (size_t)(cut - token.text))) == NULL) {
    do {
      if (--cut <= token.text) return unknown_instruction(p, &token);
    } while (*cut != '.');
  }
  suffixes s;
  insn->op = (*info)->op;
  if (!split_suffixes(cut, end, &s)) return unknown_instruction(p, &token);
  HG_TRY(apply_suffixes(p, &token, *info, &s, insn));
  return atlas_text_advance(p);
}

/* ---- instructions ------------------------------------------------------------------------------------------- */

/* How many operands the rest of the line holds, and where the one after the `wanted` first stands (or where one is
 * missing). Looks ahead; the parser does not move. */
static hg_status count_operands(const text_parser *p, uint32_t wanted, uint32_t *count, text_token *where) {
  text_parser ahead = *p;
  int depth = 0;
  *count = 0;
  *where = p->token;
  if (p->token.kind == TEXT_END || p->token.kind == TEXT_NEWLINE) {
    where->column = p->past_column;
    return HG_OK;
  }
  for (*count = 1; ahead.token.kind != TEXT_END && ahead.token.kind != TEXT_NEWLINE;) {
    int separates = atlas_text_is(&ahead, ',') && depth == 0;
    if (atlas_text_is(&ahead, '[')) depth++;
    if (atlas_text_is(&ahead, ']')) depth--;
    HG_TRY(atlas_text_advance(&ahead));
    if (separates) {
      ++*count;
      if (*count == wanted + 1) *where = ahead.token;
    }
  }
  if (*count < wanted) {
    *where = ahead.token;
    where->column = ahead.past_column;
  }
  return HG_OK;
}

static hg_status parse_operands(text_parser *p, const atlas_op_info *info, atlas_insn *insn) {
  uint32_t wanted = (uint32_t)strlen(info->operands), count = 0;
  text_token where;
  HG_TRY(count_operands(p, wanted, &count, &where));
  if (count != wanted) {
    if (wanted == 0)
      return atlas_text_fail(p, &where, "'%s' takes no operands, got %u", info->mnemonic, (unsigned)count);
    return atlas_text_fail(p, &where, "'%s' needs %u operand%s, got %u: %s %s", info->mnemonic, (unsigned)wanted,
                           wanted == 1 ? "" : "s", (unsigned)count, info->mnemonic, info->syntax);
  }
  insn->operand_count = (uint8_t)wanted;
  for (uint32_t i = 0; i < wanted; i++) {
    if (i > 0) HG_TRY(atlas_text_expect(p, ',', "','"));
    HG_TRY(atlas_text_operand(p, info, insn, i));
  }
  return HG_OK;
}

static hg_status parse_guard(text_parser *p, atlas_insn *insn) {
  HG_TRY(atlas_text_advance(p));
  int negated = atlas_text_is(p, '!');
  uint8_t number = 0;
  if (negated) HG_TRY(atlas_text_advance(p));
  HG_TRY(atlas_text_predicate(p, &number));
  insn->guard = (uint8_t)((negated ? ATLAS_GUARD_NEGATED : 0) | (1 + number));
  return HG_OK;
}

static hg_status parse_instruction(text_parser *p) {
  atlas_insn insn = {.line = p->token.line};
  const atlas_op_info *info = NULL;
  text_token first = p->token;
  if (atlas_text_is(p, '@')) HG_TRY(parse_guard(p, &insn));
  HG_TRY(parse_mnemonic(p, &insn, &info));
  if (insn.guard != 0 && insn.op != ATLAS_OP_bra)
    return atlas_text_fail(p, &first,
                           "only 'bra' can stand behind a predicate, not '%s'; use 'sel' to choose between values",
                           info->mnemonic);
  HG_TRY(parse_operands(p, info, &insn));
  if (p->program->insns.count >= ATLAS_MAX_INSTRUCTIONS)
    return atlas_text_fail(p, &first, "a program has at most %u instructions", (unsigned)ATLAS_MAX_INSTRUCTIONS);
  if (hg_array_append(p->allocator, &p->program->insns, &insn, 1) == NULL)
    return hg_fail_memory("instructions", sizeof insn);
  return HG_OK;
}

/* ---- labels ------------------------------------------------------------------------------------------------- */

static int at_label(const text_parser *p) {
  const char *next = p->next;
  while (next < p->end && (*next == ' ' || *next == '\t')) next++;
  return p->token.kind == TEXT_WORD && next < p->end && *next == ':';
}

static hg_status parse_label(text_parser *p) {
  atlas_label label = {.target = (uint32_t)p->program->insns.count};
  text_token token = p->token;
  uint32_t found = ATLAS_NO_LABEL;
  HG_TRY(parse_word(p, "a label", label.name));
  if (hg_array_append(p->allocator, &p->program->labels, &label, 1) == NULL)
    return hg_fail_memory("labels", sizeof label);
  HG_TRY(
      atlas_label_enter(p->allocator, &p->labels, &p->program->labels, (uint32_t)p->program->labels.count - 1, &found));
  if (found != ATLAS_NO_LABEL) return atlas_text_fail(p, &token, "label '%s' stands twice", label.name);
  return atlas_text_expect(p, ':', "':'");
}

static hg_status resolve_labels(text_parser *p) {
  const hg_array *labels = &p->program->labels;
  for (size_t i = 0; i < p->label_uses.count; i++) {
    const text_label_use *use = (const text_label_use *)p->label_uses.data + i;
    uint32_t label = atlas_label_find(&p->labels, labels, use->token.text, use->token.length);
    if (label == ATLAS_NO_LABEL) {
      char hint[128];
      text_nearest nearest = {.word = use->token.text, .length = use->token.length};
      for (size_t k = 0; k < labels->count; k++)
        atlas_text_nearest_offer(&nearest, atlas_label_at(p->program, k)->name);
      return atlas_text_fail(p, &use->token, "there is no label '%s'%s", TEXT_ARG(&use->token),
                             atlas_text_hint(&nearest, hint));
    }
    if (use->slot < 0) ((atlas_entry *)p->program->entries.data)[use->index].label = label;
    else ((atlas_insn *)p->program->insns.data)[use->index].operand[use->slot].bits = label;
  }
  return HG_OK;
}

/* ---- the whole text ----------------------------------------------------------------------------------------- */

static hg_status parse_line(text_parser *p) {
  if (p->token.kind == TEXT_DIRECTIVE) {
    HG_TRY(parse_directive(p));
  } else {
    while (at_label(p)) HG_TRY(parse_label(p));
    if (atlas_text_is(p, '@') || p->token.kind == TEXT_WORD) HG_TRY(parse_instruction(p));
    else if (p->token.kind != TEXT_NEWLINE && p->token.kind != TEXT_END)
      return atlas_text_expected(p, "an instruction, a label or a directive");
  }
  p->has_statement = 1;
  if (p->token.kind == TEXT_NEWLINE || p->token.kind == TEXT_END) return HG_OK;
  return atlas_text_expected(p, "the end of the line");
}

static hg_status parse_text(text_parser *p) {
  HG_TRY(atlas_text_advance(p));
  for (;;) {
    HG_TRY(skip_newlines(p));
    if (p->token.kind == TEXT_END) return resolve_labels(p);
    HG_TRY(parse_line(p));
  }
}

hg_status atlas_parse(const hg_allocator *allocator, const char *text, size_t length, const char *source_name,
                      atlas_program **out) {
  if (out == NULL || (text == NULL && length > 0))
    return hg_fail(HG_INVALID_ARGUMENT, "atlas_parse needs a text and an `out`");
  *out = NULL;
  hg_allocator resolved;
  HG_TRY(hg_allocator_resolve(allocator, &resolved));
  const char *source = source_name != NULL ? source_name : "program";
  if (length > INT32_MAX) /* positions are 32-bit */
    return hg_fail_at(HG_PARSE, &(hg_place){.source = source, .instruction = -1},
                      "the text has %llu bytes; at most 2 GiB are possible", (unsigned long long)length);
  text_parser parser = {
      .allocator = &resolved, .source = source, .line = 1, .label_uses = {.element_size = sizeof(text_label_use)}};
  parser.next = parser.line_start = text != NULL ? text : "";
  parser.end = parser.next + length;
  parser.program = atlas_program_new(&resolved);
  if (parser.program == NULL) return HG_OUT_OF_MEMORY;
  hg_status status = parse_text(&parser);
  atlas_label_index_release(&resolved, &parser.labels);
  hg_array_release(&resolved, &parser.label_uses);
  if (status == HG_OK) return atlas_program_complete(parser.program, source, out);
  atlas_program_release(parser.program);
  return status;
}
