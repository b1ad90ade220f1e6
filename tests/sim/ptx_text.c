/* ptx_text.c - parses PTX: declarations, functions, instructions. What it does not know is an error. */
#include "ptx_text.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct ptx_type_info ptx_types[T_COUNT] = {{"", 0, 0},
#define TYPE(name, bits, kind) {#name, bits, kind},
                                                 TYPES
#undef TYPE
};

static const char *const op_names[OP_COUNT] = {
#define OP(name) #name,
    OPS
#undef OP
};

typedef struct parser {
  const char *at;
  char *text;
  uint32_t line, target; /* 90: sm_90 */
  ptx_module *module;
  ptx_function *function;
  jmp_buf failed;
  char why[200];
} parser;

_Noreturn static void fail(parser *p, const char *format, ...) {
  va_list arguments;
  int used = snprintf(p->why, sizeof p->why, "line %u: ", (unsigned)p->line);
  va_start(arguments, format);
  vsnprintf(p->why + used, sizeof p->why - (size_t)used, format, arguments);
  va_end(arguments);
  longjmp(p->failed, 1);
}

static void *append(ptx_list *list, size_t element_bytes) {
  if (list->count == list->capacity) {
    list->capacity = list->capacity > 0 ? 2 * list->capacity : 8;
    list->data = realloc(list->data, list->capacity * element_bytes);
    if (list->data == NULL) abort();
  }
  void *element = (char *)list->data + list->count++ * element_bytes;
  memset(element, 0, element_bytes);
  return element;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void skip(parser *p) {
  for (;; p->at++) {
    if (*p->at == '\n') p->line++;
    else if (p->at[0] == '/' && p->at[1] == '/') {
      while (p->at[1] != '\n' && p->at[1] != '\0') p->at++;
    } else if (!isspace((unsigned char)*p->at)) {
      return;
    }
  }
}

static int accept(parser *p, char c) {
  skip(p);
  if (*p->at != c) return 0;
  p->at++;
  return 1;
}

static void expect(parser *p, char c) {
  if (!accept(p, c)) fail(p, "'%c' expected before '%.20s'", c, p->at);
}

static int is_word_char(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%'; }

static int peek_word(parser *p) {
  skip(p);
  return is_word_char(*p->at) || *p->at == '.';
}

/* Letters, digits, _ $ % and dots. */
static void word(parser *p, char *out, int with_dots) {
  size_t length = 0;
  skip(p);
  while (is_word_char(p->at[length]) || (with_dots && p->at[length] == '.')) length++;
  if (length == 0 || length >= PTX_NAME) fail(p, "a word expected before '%.20s'", p->at);
  memcpy(out, p->at, length);
  out[length] = '\0';
  p->at += length;
}

static int at_number(parser *p) {
  skip(p);
  return isdigit((unsigned char)*p->at) || *p->at == '-';
}

static uint64_t number(parser *p) {
  char *end = NULL;
  skip(p);
  int negative = accept(p, '-');
  uint64_t value = strtoull(p->at, &end, 0);
  if (end == p->at) fail(p, "a number expected before '%.20s'", p->at);
  p->at = *end == 'U' ? end + 1 : end;
  return negative ? 0 - value : value;
}

static ptx_type type_named(const char *name) {
  for (int t = 1; t < T_COUNT; t++)
    if (strcmp(ptx_types[t].name, name) == 0) return (ptx_type)t;
  return T_NONE;
}

/* ---- registers and symbols --------------------------------------------------------------------------------------- */

static uint32_t hash(const char *name) {
  uint32_t h = 2166136261u;
  for (; *name != '\0'; name++) h = (h ^ (uint8_t)*name) * 16777619u;
  return h;
}

static char *register_name(const ptx_function *f, uint32_t index) {
  return (char *)f->registers.data + (size_t)index * PTX_NAME;
}

static uint32_t *bucket_of(const ptx_function *f, const char *name) {
  uint32_t i = hash(name) % f->bucket_count;
  while (f->buckets[i] != 0 && strcmp(register_name(f, f->buckets[i] - 1), name) != 0) i = (i + 1) % f->bucket_count;
  return &f->buckets[i];
}

static uint32_t add_register(parser *p, const char *name) {
  ptx_function *f = p->function;
  if (2 * (f->registers.count + 1) > f->bucket_count) {
    f->bucket_count = f->bucket_count > 0 ? 4 * f->bucket_count : 64;
    free(f->buckets);
    f->buckets = calloc(f->bucket_count, sizeof *f->buckets);
    if (f->buckets == NULL) abort();
    for (uint32_t i = 0; i < f->registers.count; i++) *bucket_of(f, register_name(f, i)) = i + 1;
  }
  uint32_t *bucket = bucket_of(f, name);
  if (*bucket != 0) fail(p, "register %s is declared twice", name);
  strcpy(append(&f->registers, PTX_NAME), name);
  *bucket = (uint32_t)f->registers.count;
  return *bucket - 1;
}

/* The number of a register, or -1. */
static int64_t find_register(const parser *p, const char *name) {
  if (p->function == NULL || p->function->bucket_count == 0) return -1;
  return (int64_t)*bucket_of(p->function, name) - 1;
}

static int64_t find_symbol(const ptx_list *symbols, const char *name) {
  for (size_t i = 0; i < symbols->count; i++)
    if (strcmp(((ptx_symbol *)symbols->data)[i].name, name) == 0) return (int64_t)i;
  return -1;
}

/* .reg .b32 %r<10>, x; */
static void declare_registers(parser *p) {
  char name[PTX_NAME], numbered[PTX_NAME + 12];
  word(p, name, 1);
  if (name[0] != '.' || type_named(name + 1) == T_NONE) fail(p, "register type %s", name);
  do {
    word(p, name, 0);
    if (!accept(p, '<')) {
      add_register(p, name);
      continue;
    }
    uint64_t count = number(p);
    expect(p, '>');
    for (uint64_t i = 0; i < count; i++) {
      snprintf(numbered, sizeof numbered, "%s%u", name, (unsigned)i);
      add_register(p, numbered);
    }
  } while (accept(p, ','));
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

static size_t align_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

static void initialise(parser *p, ptx_symbol *symbol, size_t element_bytes) {
  int many = accept(p, '{');
  for (size_t at = 0;; at += element_bytes) {
    skip(p);
    uint64_t bits = 0;
    if (p->at[0] == '0' && (p->at[1] == 'f' || p->at[1] == 'd')) {
      char *end = NULL;
      bits = strtoull(p->at + 2, &end, 16);
      p->at = end;
    } else {
      bits = number(p);
    }
    if (at + element_bytes > symbol->byte_count) fail(p, "too many values for %s", symbol->name);
    memcpy(symbol->bytes + at, &bits, element_bytes);
    if (!many || !accept(p, ',')) break;
  }
  if (many) expect(p, '}');
}

/* The rest of a declaration after its space: [.align N] .type name [count] [= values] */
static void declare_variable(parser *p, ptx_space space) {
  char name[PTX_NAME];
  size_t alignment = 0, count = 1;
  word(p, name, 1);
  if (strcmp(name, ".align") == 0) {
    alignment = (size_t)number(p);
    word(p, name, 1);
  }
  ptx_type type = name[0] == '.' ? type_named(name + 1) : T_NONE;
  if (type == T_NONE) fail(p, "variable type %s", name);
  size_t element_bytes = ptx_types[type].bits / 8;
  if (alignment == 0) alignment = element_bytes;
  word(p, name, 0);
  if (accept(p, '[')) {
    count = *p->at == ']' ? 0 : (size_t)number(p);
    expect(p, ']');
  }
  int local = space == SPACE_PARAM || space == SPACE_LOCAL || (space == SPACE_SHARED && p->function != NULL);
  ptx_symbol *symbol = append(local ? &p->function->symbols : &p->module->symbols, sizeof *symbol);
  strcpy(symbol->name, name);
  symbol->space = space;
  symbol->byte_count = element_bytes * count;
  size_t *end = space == SPACE_PARAM    ? &p->function->parameter_bytes
                : space == SPACE_LOCAL  ? &p->function->local_bytes
                : space == SPACE_SHARED ? &p->module->shared_bytes
                                        : NULL;
  if (end != NULL) {
    symbol->offset = align_up(*end, alignment);
    *end = symbol->offset + symbol->byte_count;
    return;
  }
  symbol->bytes = calloc(symbol->byte_count + 16, 1);
  if (symbol->bytes == NULL) abort();
  if (accept(p, '=')) initialise(p, symbol, element_bytes);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  unsigned number;
} specials[] = {{"%tid", SPECIAL_TID},
                {"%ntid", SPECIAL_NTID},
                {"%ctaid", SPECIAL_CTAID},
                {"%nctaid", SPECIAL_NCTAID},
                {"%clusterid", SPECIAL_CLUSTERID},
                {"%laneid", SPECIAL_LANEID},
                {"%warpid", SPECIAL_WARPID},
                {"%lanemask_lt", SPECIAL_LANEMASK_LT},
                {"%lanemask_le", SPECIAL_LANEMASK_LE},
                {"%lanemask_gt", SPECIAL_LANEMASK_GT},
                {"%lanemask_ge", SPECIAL_LANEMASK_GE},
                {"%lanemask_eq", SPECIAL_LANEMASK_EQ},
                {"%nwarpid", SPECIAL_NWARPID},
                {"%smid", SPECIAL_SMID},
                {"%cluster_ctarank", SPECIAL_CLUSTER_RANK},
                {"%clock64", SPECIAL_CLOCK}};

static int find_special(parser *p, const char *name, ptx_operand *o) {
  for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
    if (strcmp(specials[i].name, name) != 0) continue;
    if (strncmp(name, "%cluster", strlen("%cluster")) == 0 && p->target < 90) fail(p, "clusters need sm_90");
    o->kind = O_SPECIAL;
    o->bits = specials[i].number;
    if (specials[i].number >= SPECIAL_LANEID) return 1;
    expect(p, '.');
    if (*p->at < 'x' || *p->at > 'z') fail(p, "x, y or z expected");
    o->bits += (uint64_t)(*p->at++ - 'x');
    return 1;
  }
  return 0;
}

static uint32_t need_register(parser *p, const char *name) {
  int64_t found = find_register(p, name);
  if (found < 0) fail(p, "there is no register %s", name);
  return (uint32_t)found;
}

/* Symbols of the function are numbered from 0, those of the module from 2^16. */
static int64_t any_symbol(const parser *p, const char *name) {
  int64_t found = p->function != NULL ? find_symbol(&p->function->symbols, name) : -1;
  if (found >= 0) return found;
  found = find_symbol(&p->module->symbols, name);
  return found >= 0 ? found + 65536 : -1;
}

static void address(parser *p, ptx_operand *o) {
  char name[PTX_NAME];
  o->kind = O_ADDRESS;
  skip(p);
  if (at_number(p)) {
    o->base = O_IMM;
  } else {
    word(p, name, 0);
    int64_t symbol = any_symbol(p, name);
    o->base = symbol >= 0 ? O_SYMBOL : O_REG;
    if (symbol >= 0) o->symbol = (uint32_t)symbol;
    else o->reg[0] = need_register(p, name);
    if (accept(p, ']')) return;
    skip(p);
    if (*p->at == '+') p->at++;
    else if (*p->at != '-') fail(p, "an offset expected before '%.20s'", p->at);
  }
  o->bits = number(p);
  expect(p, ']');
}

/* Labels may come later: they are looked up at the end. */
static uint64_t label_number(parser *p, const char *name) {
  ptx_list *labels = &p->function->labels;
  for (size_t i = 0; i < labels->count; i++)
    if (strcmp(((ptx_label *)labels->data)[i].name, name) == 0) return i;
  ptx_label *label = append(labels, sizeof *label);
  strcpy(label->name, name);
  label->target = UINT32_MAX;
  return labels->count - 1;
}

static void constant(parser *p, ptx_operand *o) {
  o->kind = O_IMM;
  if (p->at[0] == '0' && (p->at[1] == 'f' || p->at[1] == 'd') && isxdigit((unsigned char)p->at[2])) {
    char *end = NULL;
    o->is_float = p->at[1] == 'f' ? 32 : 64;
    o->bits = strtoull(p->at + 2, &end, 16);
    if (end - p->at != (o->is_float == 32 ? 10 : 18)) fail(p, "a constant of the wrong length");
    p->at = end;
  } else {
    o->bits = number(p);
  }
}

static void vector(parser *p, ptx_operand *o) {
  char name[PTX_NAME];
  o->kind = O_VECTOR;
  do {
    if (o->count == PTX_VECTOR) fail(p, "a vector of more than 4");
    ptx_operand value = {.kind = O_NONE};
    o->reg[o->count] = PTX_NO_REGISTER;
    if (at_number(p)) {
      constant(p, &value);
      o->constant[o->count++] = value.bits;
      continue;
    }
    word(p, name, 0);
    o->reg[o->count++] = need_register(p, name);
  } while (accept(p, ','));
  expect(p, '}');
}

static void operand(parser *p, ptx_insn *insn) {
  char name[PTX_NAME];
  if (insn->operand_count == PTX_OPERANDS) fail(p, "too many operands");
  ptx_operand *o = &insn->operand[insn->operand_count++];
  skip(p);
  if (accept(p, '[')) {
    address(p, o);
  } else if (accept(p, '{')) {
    vector(p, o);
  } else if (at_number(p)) {
    constant(p, o);
  } else {
    o->negated = (uint8_t)accept(p, '!');
    word(p, name, 0);
    int64_t found = find_register(p, name);
    if (found >= 0) {
      o->kind = O_REG;
      o->reg[0] = (uint32_t)found;
    } else if (strcmp(name, "_") == 0) {
      o->kind = O_SINK;
    } else if (!find_special(p, name, o)) {
      found = any_symbol(p, name);
      o->kind = insn->op == OP_bra ? O_LABEL : O_SYMBOL;
      if (insn->op == OP_bra) o->bits = label_number(p, name);
      else if (found >= 0) o->symbol = (uint32_t)found;
      else fail(p, "nothing is called %s", name);
      if (accept(p, '+')) o->bits = number(p);
    }
  }
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static int one_of(const char *name, const char *list) {
  size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
    if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return 1;
  return 0;
}

/* What may stand behind what in barrier.cluster; .relaxed makes an arrival that orders nothing. */
static void cluster_word(parser *p, ptx_words *w, const char *name) {
  static const char *const behind[][2] = {{"", "cluster"},
                                          {"cluster", "arrive wait"},
                                          {"arrive", "release relaxed aligned"},
                                          {"relaxed", "aligned"},
                                          {"wait", "acquire aligned"}};
  for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++) {
    if (strcmp(w->mode, behind[i][0]) != 0 || !one_of(name, behind[i][1])) continue;
    if (!one_of(name, "release acquire aligned")) snprintf(w->mode, sizeof w->mode, "%.7s", name);
    return;
  }
  fail(p, "barrier.cluster with .%s", name);
}

/* A word between the dots. */
static void modifier(parser *p, ptx_insn *insn, const char *name) {
  static const char *const spaces[SPACE_COUNT] = {"",      "global", "shared",         "param",
                                                  "const", "local",  "shared::cluster"};
  ptx_words *w = &insn->words;
  ptx_type type = type_named(name);
  int is_atomic = insn->op == OP_atom || insn->op == OP_red;
  if (type != T_NONE) {
    if (insn->type == T_NONE) insn->type = type;
    else if (insn->type2 == T_NONE) insn->type2 = type;
    else fail(p, "a third type");
    return;
  }
  for (int s = 1; s < SPACE_COUNT; s++) {
    if (strcmp(name, spaces[s]) != 0) continue;
    w->space = (ptx_space)s;
    return;
  }
  if (insn->op == OP_barrier && (w->mode[0] != '\0' || strcmp(name, "cluster") == 0)) cluster_word(p, w, name);
  else if (insn->op == OP_bar && one_of(name, "warp red")) strcpy(w->mode, name);
  else if (insn->op == OP_bar && one_of(name, "and or")) strcpy(w->logic, name);
  else if ((insn->op == OP_setp || insn->op == OP_set) &&
           one_of(name, "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"))
    strcpy(w->compare, name);
  else if (insn->op == OP_setp && one_of(name, "and or xor")) strcpy(w->logic, name);
  else if (is_atomic && one_of(name, "add min max and or xor exch cas inc dec")) strcpy(w->atomic, name);
  else if (one_of(name, "up down bfly idx any all uni ballot l r finite infinite number notanumber normal subnormal") &&
           (insn->op == OP_shfl || insn->op == OP_vote || insn->op == OP_shf || insn->op == OP_testp))
    snprintf(w->mode, sizeof w->mode, "%.7s", name);
  else if (insn->op == OP_shf && one_of(name, "clamp wrap")) w->wrap = name[0] == 'w';
  else if (one_of(name, "rn rz rm rp rni rzi rmi rpi")) strcpy(w->round, name);
  else if (strcmp(name, "wide") == 0) w->wide = 1;
  else if (strcmp(name, "hi") == 0) w->high = 1;
  else if (strcmp(name, "lo") == 0) w->low = 1;
  else if (strcmp(name, "sat") == 0) w->saturate = 1;
  else if (strcmp(name, "cc") == 0) w->carry = 1;
  else if (strcmp(name, "NaN") == 0) w->nan = 1;
  else if (one_of(name, "xorsign abs") && (insn->op == OP_min || insn->op == OP_max)) w->by_size = 1;
  else if (strcmp(name, "v2") == 0) w->vector = 2;
  else if (strcmp(name, "v4") == 0) w->vector = 4;
  else if (insn->op == OP_cp && one_of(name, "async bulk prefetch L2")) return; /* see mnemonic */
  else if (!one_of(name, "uni sync relaxed acquire release acq_rel sc weak volatile gpu sys cluster cta gl warp "
                         "aligned to nc ca cg cs lu cv wb wt") &&
           !one_of(name, "L1::no_allocate L1::evict_last L1::evict_first L2::128B L2::256B evict_first"))
    fail(p, "%s does not know .%s", op_names[insn->op], name);
}

static void mnemonic(parser *p, ptx_insn *insn, char *words) {
  int is_prefetch = strcmp(words, "cp.async.bulk.prefetch.L2.global") == 0;
  char *part = strtok(words, ".");
  for (int i = 0; i < OP_COUNT; i++)
    if (strcmp(op_names[i], part) == 0) insn->op = (ptx_op)i;
  if (strcmp(op_names[insn->op], part) != 0) fail(p, "there is no instruction %s", part);
  if (insn->op == OP_cp && (!is_prefetch || p->target < 90)) fail(p, "a copy that is no prefetch for sm_90");
  insn->words.vector = 1;
  while ((part = strtok(NULL, ".")) != NULL) modifier(p, insn, part);
}

/* call (results), function, (arguments); */
static void call(parser *p, ptx_insn *insn) {
  char name[PTX_NAME];
  if (accept(p, '(')) {
    do operand(p, insn);
    while (accept(p, ','));
    expect(p, ')');
    expect(p, ',');
    insn->result_count = insn->operand_count;
  }
  word(p, name, 0);
  const ptx_function *callee = ptx_find(p->module, name);
  if (callee == NULL || callee->is_entry) fail(p, "there is no function %s", name);
  insn->operand[PTX_OPERANDS - 1].symbol = (uint32_t)(callee - (ptx_function *)p->module->functions.data);
  if (!accept(p, ',')) return;
  expect(p, '(');
  do operand(p, insn);
  while (accept(p, ','));
  expect(p, ')');
  if (insn->operand_count != callee->formals.count) fail(p, "%s has another number of arguments", name);
}

/* ptxas takes pairs from registers only. */
static void check_pairs(parser *p, const ptx_insn *insn) {
  for (uint32_t i = 0; ptx_types[insn->type].kind == 'x' && insn->op != OP_cvt && i < insn->operand_count; i++)
    if (insn->operand[i].kind == O_IMM) fail(p, "a constant pair");
}

static void check_cluster(parser *p, const ptx_insn *insn) {
  int is_barrier = insn->op == OP_barrier && insn->words.mode[0] != '\0';
  if (is_barrier && (strcmp(insn->words.mode, "cluster") == 0 || insn->operand_count > 0))
    fail(p, "a barrier that does not say .arrive or .wait alone");
  if (insn->op == OP_mapa && (insn->words.space != SPACE_CLUSTER || insn->type != T_u32 || insn->operand_count != 3))
    fail(p, "mapa that is not .shared::cluster.u32");
  if ((is_barrier || insn->words.space == SPACE_CLUSTER) && p->target < 90) fail(p, "clusters need sm_90");
}

static void instruction(parser *p, const char *first) {
  char words[PTX_NAME], name[PTX_NAME];
  ptx_insn insn = {.line = p->line};
  strcpy(words, first);
  if (words[0] == '\0') { /* @p or @!p stands before it */
    insn.guard_negated = (uint8_t)accept(p, '!');
    word(p, name, 0);
    insn.guard = need_register(p, name) + 1;
    word(p, words, 1);
    while (*p->at == ':') { /* .L1::no_allocate */
      size_t length = strlen(words);
      size_t more = strcspn(p->at, " \t\n;");
      if (length + more >= PTX_NAME) fail(p, "a long word");
      memcpy(words + length, p->at, more);
      words[length + more] = '\0';
      p->at += more;
    }
  }
  mnemonic(p, &insn, words);
  skip(p);
  if (insn.op == OP_call) call(p, &insn);
  else if (*p->at != ';') {
    do {
      operand(p, &insn);
      if (insn.op == OP_setp || insn.op == OP_shfl) {
        if (!accept(p, '|')) continue;
        operand(p, &insn);
        insn.result_count = 2;
      }
    } while (accept(p, ','));
  }
  expect(p, ';');
  check_pairs(p, &insn);
  check_cluster(p, &insn);
  memcpy(append(&p->function->insns, sizeof insn), &insn, sizeof insn);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void directive(parser *p, const char *name) {
  if (strcmp(name, ".reg") == 0) declare_registers(p);
  else if (strcmp(name, ".shared") == 0) declare_variable(p, SPACE_SHARED);
  else if (strcmp(name, ".local") == 0) declare_variable(p, SPACE_LOCAL);
  else if (strcmp(name, ".loc") == 0 || strcmp(name, ".pragma") == 0) {
    while (*p->at != '\n' && *p->at != ';') p->at++;
    if (*p->at == '\n') return;
  } else fail(p, "directive %s", name);
  expect(p, ';');
}

/* Registers declared since the opening brace are not found by their names from here on. */
static void close_scope(parser *p, size_t register_count) {
  for (size_t i = register_count; i < p->function->registers.count; i++) *register_name(p->function, (uint32_t)i) = '}';
}

static void body(parser *p) {
  char name[PTX_NAME];
  size_t outside[PTX_DEPTH]; /* registers before each opening brace */
  for (unsigned depth = 1; depth > 0;) {
    if (accept(p, '}')) {
      if (--depth > 0) close_scope(p, outside[depth]);
    } else if (accept(p, '{')) {
      if (depth == PTX_DEPTH) fail(p, "scopes nest too deep");
      outside[depth++] = p->function->registers.count;
    } else if (accept(p, '@')) instruction(p, "");
    else {
      const char *start = p->at;
      word(p, name, 1);
      if (name[0] == '.') {
        directive(p, name);
      } else if (p->at[0] == ':' && p->at[1] != ':') {
        p->at++;
        uint64_t which = label_number(p, name); /* before the list is looked at: it may move */
        ptx_label *label = (ptx_label *)p->function->labels.data + which;
        if (label->target != UINT32_MAX) fail(p, "label %s twice", name);
        label->target = (uint32_t)p->function->insns.count;
      } else {
        if (*p->at == ':') { /* ld.global.L1::no_allocate.f32 */
          size_t length = (size_t)(p->at - start) + strcspn(p->at, " \t\n;");
          if (length >= PTX_NAME) fail(p, "a long word");
          memcpy(name, start, length);
          name[length] = '\0';
          p->at = start + length;
        }
        instruction(p, name);
      }
    }
  }
}

/* (.reg .b64 a, .reg .b32 b) or, of an entry, (.param ...) */
static void formals(parser *p) {
  char name[PTX_NAME];
  if (!accept(p, '(') || accept(p, ')')) return;
  do {
    word(p, name, 1);
    if (strcmp(name, ".param") == 0) {
      declare_variable(p, SPACE_PARAM);
      continue;
    }
    if (strcmp(name, ".reg") != 0) fail(p, "a parameter of kind %s", name);
    word(p, name, 1);
    if (type_named(name + 1) == T_NONE) fail(p, "a parameter of type %s", name);
    word(p, name, 0);
    *(uint32_t *)append(&p->function->formals, sizeof(uint32_t)) = add_register(p, name);
  } while (accept(p, ','));
  expect(p, ')');
}

static void sizes(parser *p, uint64_t size[3]) {
  unsigned count = 0;
  do {
    if (count == 3) fail(p, "sizes of more than 3 dimensions");
    size[count++] = number(p);
  } while (accept(p, ','));
}

static void function(parser *p, int is_entry) {
  p->function = append(&p->module->functions, sizeof *p->function);
  p->function->is_entry = is_entry;
  if (!is_entry) {
    skip(p);
    if (*p->at == '(') formals(p); /* results */
  }
  word(p, p->function->name, 0);
  formals(p);
  while (peek_word(p)) { /* .maxntid 256, 1, 1 and the like; .noreturn */
    char name[PTX_NAME];
    uint64_t size[3] = {0, 1, 1};
    word(p, name, 1);
    if (at_number(p)) sizes(p, size);
    if (strcmp(name, ".reqnctapercluster") != 0) continue;
    if (size[0] > PTX_CLUSTER_BLOCKS || size[1] != 1 || size[2] != 1) fail(p, "clusters of that size");
    if (p->target < 90) fail(p, "clusters need sm_90");
    p->function->cluster_blocks = (uint32_t)size[0];
  }
  expect(p, '{');
  body(p);
  for (size_t i = 0; i < p->function->labels.count; i++) {
    const ptx_label *label = (ptx_label *)p->function->labels.data + i;
    if (label->target == UINT32_MAX) fail(p, "there is no label %s", label->name);
  }
  p->function = NULL;
}

static void module_items(parser *p) {
  char name[PTX_NAME];
  while (peek_word(p)) {
    word(p, name, 1);
    if (strcmp(name, ".version") == 0) word(p, name, 1);
    else if (strcmp(name, ".target") == 0) {
      word(p, name, 1);
      p->target = strncmp(name, "sm_", 3) == 0 ? (uint32_t)strtoul(name + 3, NULL, 10) : 0;
    } else if (strcmp(name, ".address_size") == 0) (void)number(p);
    else if (strcmp(name, ".visible") == 0 || strcmp(name, ".weak") == 0 || strcmp(name, ".extern") == 0) continue;
    else if (strcmp(name, ".entry") == 0) function(p, 1);
    else if (strcmp(name, ".func") == 0) function(p, 0);
    else if (strcmp(name, ".file") == 0) {
      while (*p->at != '\n' && *p->at != '\0') p->at++;
    } else if (strcmp(name, ".const") == 0 || strcmp(name, ".global") == 0 || strcmp(name, ".shared") == 0) {
      declare_variable(p, name[1] == 'c' ? SPACE_CONST : name[1] == 'g' ? SPACE_GLOBAL : SPACE_SHARED);
      expect(p, ';');
    } else fail(p, "%s at the module's level", name);
  }
  skip(p);
  if (*p->at != '\0') fail(p, "'%.20s' at the module's level", p->at);
}

ptx_module *ptx_parse(const char *text, char *why, size_t why_bytes) {
  static parser nothing;
  parser *p = malloc(sizeof *p);
  if (p == NULL) abort();
  *p = nothing;
  p->at = text;
  p->line = 1;
  p->module = calloc(1, sizeof *p->module);
  if (p->module == NULL) abort();
  if (setjmp(p->failed) == 0) {
    module_items(p);
  } else {
    snprintf(why, why_bytes, "%s", p->why);
    ptx_release(p->module);
    p->module = NULL;
  }
  ptx_module *module = p->module;
  free(p);
  return module;
}

/* ---- what was parsed --------------------------------------------------------------------------------------------- */

void ptx_release(ptx_module *module) {
  if (module == NULL) return;
  for (size_t i = 0; i < module->functions.count; i++) {
    ptx_function *f = (ptx_function *)module->functions.data + i;
    free(f->registers.data);
    free(f->symbols.data);
    free(f->labels.data);
    free(f->insns.data);
    free(f->formals.data);
    free(f->buckets);
  }
  for (size_t i = 0; i < module->symbols.count; i++) free(((ptx_symbol *)module->symbols.data)[i].bytes);
  free(module->functions.data);
  free(module->symbols.data);
  free(module);
}

const ptx_function *ptx_find(const ptx_module *module, const char *name) {
  for (size_t i = 0; i < module->functions.count; i++) {
    const ptx_function *f = (const ptx_function *)module->functions.data + i;
    if (strcmp(f->name, name) == 0) return f;
  }
  return NULL;
}

size_t ptx_parameter_bytes(const ptx_module *module, const char *entry) {
  const ptx_function *f = ptx_find(module, entry);
  return f != NULL && f->is_entry ? f->parameter_bytes : 0;
}

uint32_t ptx_cluster_blocks(const ptx_module *module, const char *entry) {
  const ptx_function *f = ptx_find(module, entry);
  return f != NULL && f->cluster_blocks > 0 ? f->cluster_blocks : 1;
}

size_t ptx_shared_bytes(const ptx_module *module) { return module->shared_bytes; }

void ptx_gather_parameters(const ptx_module *module, const char *entry, void **values, uint8_t *bytes,
                           size_t byte_count) {
  const ptx_function *f = ptx_find(module, entry);
  for (size_t i = 0, parameter = 0; f != NULL && i < f->symbols.count; i++) {
    const ptx_symbol *symbol = (const ptx_symbol *)f->symbols.data + i;
    if (symbol->space == SPACE_PARAM && symbol->offset + symbol->byte_count <= byte_count)
      memcpy(bytes + symbol->offset, values[parameter++], symbol->byte_count);
  }
}
