/* test_text.c - the text form: every instruction and type through text, bytes and back, what the canonical text looks
 * like, and each kind of error with its line and column. */
#include "atlas/tables.h"
#include "programs.h"

#include <stdarg.h>

/* ---- one program for each instruction, type and kind of operand ------------------------------------------------ */

enum { VARIANTS = 4, TEXT_BYTES = 4096 };

static char text_buffer[TEXT_BYTES];

static void add(const char *format, ...) {
  va_list arguments;
  size_t length = strlen(text_buffer);
  va_start(arguments, format);
  vsnprintf(text_buffer + length, sizeof text_buffer - length, format, arguments);
  va_end(arguments);
}

static int is_storage(atlas_type type) { return atlas_kind(type) == ATLAS_KIND_STORAGE; }

static const char *constant_of(atlas_type type, int variant) {
  static const char *const floats[] = {"1.5", "-inf", "0x3c01", "-0x1.8p-3"}, *const integers[] = {"1", "0x7f", "100",
                                                                                                   "64"};
  return atlas_is_integer(type) ? integers[variant % 4] : floats[variant % 4];
}

static void add_source(atlas_type type, int reg, const char *scalar, int variant, int must_be_uniform) {
  if (is_storage(type) || (variant == 0 && !must_be_uniform)) add("r%d", reg);
  else if (variant == 1) add("%s", scalar);
  else add("#%s", constant_of(type, variant));
}

static void add_address(const atlas_op_info *info, int variant) {
  static const char *const global[VARIANTS] = {"[b + lane]", "[phi 5, r3, 200]", "[r3 : r5]",
                                               "[b + r3 + #-9223372036854775808]"};
  static const char *const other[VARIANTS] = {"[%s]", "[%s + r3 + #1]", "[%s + #2]", "[%s + blane + #3]"};
  const char *name = info->flags & ATLAS_SPACE_SHARED  ? "s"
                     : info->flags & ATLAS_SPACE_LOCAL ? "own"
                     : info->flags & ATLAS_SPACE_CONST ? "c"
                     : info->flags & ATLAS_SPACE_POOL  ? "heap"
                     : variant % 2                     ? "s"
                                                       : "b";
  if (info->flags & ATLAS_SPACE_GLOBAL) {
    add("%s", global[variant]);
    return;
  }
  char address[64];
  snprintf(address, sizeof address, other[variant], name);
  add("%s", address);
}

static void add_operand(const atlas_op_info *info, char letter, atlas_type type, atlas_type type2, int variant) {
  int uniform = (info->flags & (ATLAS_BLOCK | ATLAS_GRID)) != 0 && (letter == 's') &&
                strchr(info->operands, 'p') == NULL &&
                (strchr(info->operands, 'h') != NULL || (info->flags & ATLAS_GRID) != 0);
  switch (letter) {
  case 'd': add("r4"); break;
  case 'o': add(variant % 2 ? "_" : "r4"); break;
  case 's': add_source(type, 1, "a", variant, uniform); break;
  case 't': add_source(type2, 2, "a2", variant, 0); break;
  case 'c': add_source(ATLAS_u32, 3, "count", variant, 0); break;
  case 'n': add("#%s", constant_of(type, variant)); break;
  case 'k': add("#%d", strchr(info->operands, 'w') != NULL ? 5 + variant : 7 + variant); break;
  case 'w': add("[s + #%d]", 100 * variant); break;
  case 'm': add_address(info, variant); break;
  case 'p': add("p15"); break;
  case 'q': add("p1"); break;
  case 'l': add(strcmp(info->mnemonic, "call") == 0 ? "sub" : "done"); break;
  case 'r': add("r3"); break;
  case 'x': add("%s", atlas_coord_name((uint32_t)variant * 4)); break;
  case 'h': add("heap"); break;
  case 'b': add(variant % 2 ? "b2" : "b"); break;
  default: CHECK(letter == 0); break; /* a letter that this test does not know */
  }
}

static void declare_all(atlas_type type, atlas_type type2) {
  atlas_type stored = type == ATLAS_NONE ? ATLAS_u32 : type, stored2 = type2 == ATLAS_NONE ? ATLAS_u32 : type2;
  const char *name = atlas_type_name(stored), *name2 = atlas_type_name(stored2);
  add(".program one\n.buffer b %s inout\n.buffer b2 %s in\n.shared s %s 2048\n.table tab 4 inout\n.pool heap\n"
      ".local own %s 512\n",
      name, name2, name, name);
  if (!is_storage(stored))
    add(".const c %s { #1, #%s,\n  #2, ; two\n\n  #3, }\n.scalar a %s\n", name, constant_of(stored, 2), name);
  if (!is_storage(stored2)) add(".scalar a2 %s\n", name2);
  add(".scalar count u32\n");
  add("    ldg.%s r1, [b + lane]\n    ldg.%s r2, [b2 + lane]\n    movi.u32 r3, #1\n    movi.u64 r5, #8\n", name, name2);
  add("    set.eq.u32 p1, r3, #1\n    set.ne.u32 p2, r3, #1\n");
}

static void test_one(const atlas_op_info *info, atlas_type type, atlas_type type2, int variant) {
  text_buffer[0] = '\0';
  declare_all(type, type2);
  uint64_t line = 1;
  for (const char *c = text_buffer; *c != '\0'; c++) line += *c == '\n';
  add("again: %s%s", info->op == ATLAS_OP_bra && variant > 0 ? variant == 1 ? "@p1 " : "@!p2 " : "", info->mnemonic);
  if (type != ATLAS_NONE) add(".%s", atlas_type_name(type));
  if (type2 != ATLAS_NONE) add(".%s", atlas_type_name(type2));
  for (unsigned i = 0; info->operands[i] != '\0'; i++) {
    add(i == 0 ? " " : ", ");
    add_operand(info, info->operands[i], type, type2, variant);
  }
  add("\ndone: exit\nsub: ret\n");
  atlas_program *program = must_parse(text_buffer);
  if (program == NULL) return;
  const atlas_insn *insn = atlas_insn_at(program, 6);
  CHECK_EQ_U64(insn->op, info->op);
  CHECK_EQ_U64(insn->type, type);
  CHECK_EQ_U64(insn->type2, type2);
  CHECK_EQ_U64(insn->line, line);
  check_round_trip(program);
  atlas_program_release(program);
}

static void test_every_instruction(void) {
  for (size_t i = 0; i < atlas_op_count(); i++) {
    const atlas_op_info *info = atlas_op_lookup(atlas_op_at(i));
    if (info->op == ATLAS_OP_ret) continue; /* in the program of every other instruction */
    for (unsigned t = 0; t < ATLAS_TYPE_COUNT; t++) {
      if (!atlas_op_has_type((atlas_op)info->op, (atlas_type)t)) continue;
      for (int variant = 0; variant < VARIANTS; variant++) {
        if ((info->flags & ATLAS_SECOND) == 0) test_one(info, (atlas_type)t, ATLAS_NONE, variant);
        for (unsigned t2 = 1; t2 < ATLAS_TYPE_COUNT && (info->flags & ATLAS_SECOND) != 0; t2++)
          if (atlas_op_has_type((atlas_op)info->op, (atlas_type)t2) &&
              (info->op != ATLAS_OP_bitcast || atlas_type_bits((atlas_type)t) == atlas_type_bits((atlas_type)t2)))
            test_one(info, (atlas_type)t, (atlas_type)t2, variant);
      }
    }
  }
}

/* ---- the canonical text ---------------------------------------------------------------------------------------- */

static void check_canonical(const char *text, const char *expected) {
  atlas_program *program = must_parse(text);
  if (program == NULL) return;
  char *printed = print_program(program);
  CHECK_STR(printed, expected);
  free(printed);
  check_round_trip(program);
  atlas_program_release(program);
}

static void test_canonical_forms(void) {
  check_canonical("exit", ".program program\n\n    exit\n");
  check_canonical("\r\n; anything \xff goes here\r\n.program  p ; its name\n\t.block 4\n exit",
                  ".program p\n.block 4\n\n    exit\n");
  check_canonical(".block 8, 2\nexit\n", ".program program\n.block 8, 2\n\n    exit\n");
  check_canonical(".block 8,1 default\nexit\n", ".program program\n.block 8 default\n\n    exit\n");
  check_canonical(".block 1, 2, 4 default\nexit\n", ".program program\n.block 1, 2, 4 default\n\n    exit\n");
  check_canonical(".block 8,1,2\nexit\n", ".program program\n.block 8, 1, 2\n\n    exit\n");
  check_canonical(
      ".buffer x f32 in handle 18446744073709551615\nfirst: second: ldg.f32 r0,[x+lane]\n ldg.f32 r1,[ x ]\nldg.f32 "
      "r2, [x+r255 + #0]\n"
      "bra last\nlast:\nexit\n",
      ".program program\n.buffer x f32 in handle 18446744073709551615\n\nfirst:\nsecond:\n    ldg.f32 r0, [x + lane]\n"
      "    ldg.f32 r1, [x + #0]\n    ldg.f32 r2, [x + lane]\n    bra last\nlast:\n    exit\n");
  check_canonical("movi.f32 r0, #2e-1\nmovi.f32 r0, #0x1.8p1\nmovi.i8 r1, #0xff\nmovi.f16 r2, #nan\nmov.u64 r3, "
                  "lane\nmov.u32 r4, blane\nmov.u32 r4, r253\nexit\nend:",
                  ".program program\n\n    movi.f32 r0, #0x3e4ccccd\n    movi.f32 r0, #3\n    movi.i8 r1, #-1\n    "
                  "movi.f16 r2, #0x7e00\n"
                  "    mov.u64 r3, lane\n    mov.u32 r4, blane\n    mov.u32 r4, r253\n    exit\nend:\n");
  check_canonical(".const t i32\n{\n#1\n,#-1,}\n.entry exp f32 f\nf: ret\n",
                  ".program program\n.const t i32 { #1, #-1 }\n.entry exp f32 f\n\nf:\n    ret\n");
}

/* Long tables are broken into lines, and read back. */
static void test_long_table(void) {
  static char text[80000];
  size_t length = 0;
  length += (size_t)snprintf(text, sizeof text, ".const t u16 {");
  for (int i = 0; i < 5000; i++) length += (size_t)snprintf(text + length, sizeof text - length, " #%d,", i * 13);
  snprintf(text + length, sizeof text - length, "}\nldc.u16 r0, [t + blane]\nexit\n");
  atlas_program *program = must_parse(text);
  if (program == NULL) return;
  CHECK_EQ_U64(atlas_symbol_at(program, 0)->count, 5000);
  char *printed = print_program(program);
  for (const char *line = printed; *line != '\0'; line += strcspn(line, "\n") + 1) CHECK(strcspn(line, "\n") <= 100);
  free(printed);
  check_round_trip(program);
  atlas_program_release(program);
}

static void test_names_in_any_number(void) {
  static char text[1 << 20];
  size_t length = 0;
  for (int i = 0; i < 20000; i++)
    length += (size_t)snprintf(text + length, sizeof text - length, "l%d:\nbra l%d\n", i, i + 1);
  snprintf(text + length, sizeof text - length, "l20000: exit\n");
  atlas_program *program = must_parse(text);
  if (program == NULL) return;
  size_t count = 0;
  atlas_program_labels(program, &count);
  CHECK_EQ_U64(count, 20001);
  check_round_trip(program);
  atlas_program_release(program);
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

typedef struct bad_text {
  const char *text, *message; /* message after "t:" */
} bad_text;

#define DECLARATIONS \
  ".buffer x f32 inout\n.buffer bytes u8 in\n.scalar a f32\n.shared tile u32 8\n.const k f32 { #1 }\n.pool heap\n"

#define EIGHTY "a1234567890123456789b1234567890123456789c1234567890123456789d1234567890123456789"

static const bad_text bad_texts[] = {
    /* bytes and lines */
    {"exit\n  \x01", "2:3: byte 0x01 is not text; outside comments only printable ASCII is"},
    {"exit\n \xc3\xa9: exit", "2:2: byte 0xc3 is not text; outside comments only printable ASCII is"},
    {"exit exit", "1:6: 'exit' takes no operands, got 1"},
    {"exit\n, exit", "2:1: expected an instruction, a label or a directive, found ','"},
    {"#1", "1:1: expected an instruction, a label or a directive, found '#1'"},
    {"12: exit", "1:1: expected an instruction, a label or a directive, found '12'"},
    {"add.f32 r0, r1, r2 r3", "1:20: expected the end of the line, found 'r3'"},
    {"add.f32 r0, r1, r2, r3", "1:21: 'add' needs 3 operands, got 4: add rD, a, b"},
    {"add.f32 r0 r1, r2, r3", "1:12: expected ',', found 'r1'"},
    /* directives */
    {".bufer x f32 in", "1:1: '.bufer' is not a directive; did you mean '.buffer'?"},
    {".frobnicate", "1:1: '.frobnicate' is not a directive"},
    {"exit\n.program p", "2:1: .program must come first, and once"},
    {".program a\n.program b", "2:1: .program must come first, and once"},
    {".program", "1:9: expected the program's name, found the end of the text"},
    {".program r1", "1:10: 'r1' is a word of the language and cannot be a name"},
    {".program a.b", "1:10: 'a.b' is not a name: letters, digits and _ only"},
    {".program a b", "1:12: expected the end of the line, found 'b'"},
    {".block 0", "1:8: a block of 0 lanes is not possible: 1 to 1024"},
    {".block 33, 32", "1:12: a block of 1056 lanes is not possible: 1 to 1024"},
    {".block 8\n.block 8", "2:1: .block stands twice"},
    {".block 8\n.block 8 default", "2:1: .block stands twice"},
    {".block 8 defalt", "1:10: expected the end of the line, found 'defalt'"},
    {".block 33, 32 default", "1:12: a block of 1056 lanes is not possible: 1 to 1024"},
    {".block x", "1:8: expected a block size, found 'x'"},
    {".block 5000000000", "1:8: '5000000000' does not fit u32 (0 to 4294967295)"},
    {".buffer x", "1:10: expected a type, found the end of the text"},
    {".buffer x f23 in", "1:11: 'f23' is not a type; did you mean 'f32'?"},
    {".buffer x f32", "1:14: expected in, out or inout, found the end of the text"},
    {".buffer x f32 rw", "1:15: expected in, out or inout, found 'rw'"},
    {".buffer x f32 in handle 0", "1:25: 0 is not a buffer handle"},
    {".buffer x f32 in handle", "1:24: expected a buffer handle, found the end of the text"},
    {".buffer x f32 in\n.scalar x f32", "2:9: 'x' is declared twice"},
    {".buffer lane f32 in", "1:9: 'lane' is a word of the language and cannot be a name"},
    {".buffer _ f32 in", "1:9: '_' is a word of the language and cannot be a name"},
    {".buffer abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl f32 in",
     "1:9: a name has at most 63 characters; this one has 64"},
    {".scalar a bool", "1:9: 'a' cannot be of type bool: bool is for buffers, shared memory and local arrays only"},
    {".shared s u8 232449", "1:9: 's' has 232449 bytes; a block has at most 232448 bytes of shared memory"},
    {".shared a u8 1\n.shared b f64 29055",
     "2:9: 'b' has 232440 bytes, and what is declared before it takes 16; a block has at most 232448 bytes of shared "
     "memory"},
    {".shared s u8 0", "1:9: shared array 's' has no elements"},
    {".shared s u8 #4", "1:14: expected a count, found '#4'"},
    {".local l u8 4097", "1:8: 'l' has 4097 bytes; a lane has at most 4096 bytes of local arrays"},
    {".local a u8 1\n.local b f64 511",
     "2:8: 'b' has 4088 bytes, and what is declared before it takes 16; a lane has at most 4096 bytes of local arrays"},
    {".local l u8 0", "1:8: local array 'l' has no elements"},
    {".local l f32", "1:13: expected a count, found the end of the text"},
    {".const k f32", "1:13: expected '{' and the values of the table, found the end of the text"},
    {".const k f32 {}", "1:15: expected a value (#...), found '}'"},
    {".const k f32 { #1 #2 }", "1:19: expected ',' or '}', found '#2'"},
    {".const k f32 { #1\n\n, 2 }", "3:3: expected a value (#...), found '2'"},
    {".const k f32 { #1,", "1:19: expected a value (#...), found the end of the text"},
    {".const k u8 { #1, #256 }", "1:19: '#256' does not fit u8 (0 to 255)"},
    {".const k bool { #1 }", "1:10: a constant table cannot hold bool: it is a type for storage only"},
    {".table t 0 in", "1:8: buffer table 't' has 0 entries; 1 to 65536 are possible"},
    {".table t 1 in\n.table u 1 in", "2:8: 'u' is one too many: a program has at most 1 buffer tables"},
    {".pool a\n.pool b\n.pool c\n.pool d\n.pool e", "5:7: 'e' is one too many: a program has at most 4 pools"},
    {".entry exq f32 f", "1:8: 'exq' is not an instruction; did you mean 'exp'?"},
    {".entry add f32 f", "1:8: 'add' is not a function: an entry defines an instruction such as exp"},
    {".entry exp u32 f", "1:12: 'exp' does not exist for u32"},
    {".entry exp f32 f\n.entry exp f32 g", "2:8: the entry of 'exp.f32' stands twice"},
    {".entry exp f32 f\nret", "1:16: there is no label 'f'"},
    /* labels */
    {"a: exit\na: exit", "2:1: label 'a' stands twice"},
    {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl: exit",
     "1:1: a name has at most 63 characters; this one has 64"},
    {"set.eq: exit", "1:1: 'set.eq' is not a name: letters, digits and _ only"},
    {"bra dome\ndone: exit", "1:5: there is no label 'dome'; did you mean 'done'?"},
    {"bra r3\nexit", "1:5: there is no label 'r3'"},
    {"lane: bra out\n@p0 bra lane\nexit", "1:11: there is no label 'out'"},
    {"bra lane.x\nexit", "1:5: expected a label, found 'lane.x'"},
    {"bra #3\nexit", "1:5: expected a label, found '#3'"},
    /* mnemonics and types */
    {"  fmaa.f32 r0, r1, r2, r3", "1:3: 'fmaa.f32' is not an instruction; did you mean 'fma'?"},
    {"gelu.tahn.f32 r0, r1", "1:6: 'tahn' is not a type"},
    {"frobnicate", "1:1: 'frobnicate' is not an instruction"},
    {EIGHTY "abc: exit", "1:1: a name has at most 63 characters; this one has 83"},
    {EIGHTY "abc", "1:1: '" EIGHTY "abc' is not an instruction"}, /* cut where that makes it shorter */
    {EIGHTY "abcd", "1:1: '" EIGHTY "...' is not an instruction"},
    {"add." EIGHTY "abcd r0, r1, r2", "1:5: '" EIGHTY "...' is not a type"},
    {"set.f32 p0, r0, r1", "1:1: 'set.f32' is not an instruction; did you mean 'sel'?"},
    {"add r0, r1, r2", "1:1: 'add' needs a type: one of i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"},
    {"add.f33 r0, r1, r2", "1:5: 'f33' is not a type; did you mean 'f32'?"},
    {"and.f32 r0, r1, r2", "1:5: 'and' does not exist for f32, only for i8 i16 i32 i64 u8 u16 u32 u64"},
    {"add.f32.f32 r0, r1, r2", "1:9: 'add' takes one type"},
    {"add.f32.f32.f32 r0, r1, r2", "1:1: 'add.f32.f32.f32' is not an instruction; did you mean 'add'?"},
    {"exit.u32", "1:6: 'exit' takes no type"},
    {"cvt.f32 r0, r1", "1:1: 'cvt' needs two types: cvt.<to>.<from>"},
    {"cvt r0, r1", "1:1: 'cvt' needs two types: cvt.<to>.<from>"},
    {"bitcast.f32.u64 r0, r1", "1:1: 'bitcast' needs two types of the same width; f32 and u64 differ"},
    {"@p0 add.f32 r0, r1, r2",
     "1:1: only 'bra' can stand behind a predicate, not 'add'; use 'sel' to choose between values"},
    {"@p16 bra x", "1:2: 'p16' is not a predicate: there are p0 to p15"},
    {"@r0 bra x", "1:2: expected a predicate (p0 to p15), found 'r0'"},
    {"@!bra x", "1:3: expected a predicate (p0 to p15), found 'bra'"},
    {"@p0", "1:4: expected an instruction, found the end of the text"},
    /* operands */
    {"    fma.f32 r3, r2, r0 ; c is missing", "1:23: 'fma' needs 4 operands, got 3: fma rD, a, b, c"},
    {"fma.f32", "1:8: 'fma' needs 4 operands, got 0: fma rD, a, b, c"},
    {"bra a, b", "1:8: 'bra' needs 1 operand, got 2: bra label"},
    {"add.f32 r256, r1, r2", "1:9: 'r256' is not a register: there are r0 to r255"},
    {"add.f32 lane, r1, r2", "1:9: 'lane' cannot be written: results go to r0 to r251"},
    {"add.f32 r252, r1, r2", "1:9: 'r252' cannot be written: results go to r0 to r251"},
    {"add.f32 _, r1, r2", "1:9: expected a register, found '_'"},
    {"add.f32 p0, r1, r2", "1:9: expected a register, found 'p0'"},
    {"add.f32 r0, , r2", "1:13: expected a register, a constant (#...) or a scalar parameter, found ','"},
    {"add.f32 r0, lane, r2", "1:13: 'lane' is u64; f32 is needed here"},
    {"add.f32 r0, 1.5, r2", "1:13: expected a register, a constant (#...) or a scalar parameter, found '1.5'"},
    {"add.u8 r0, r1, #256", "1:16: '#256' does not fit u8 (0 to 255)"},
    {"add.i8 r0, r1, #-129", "1:16: '#-129' does not fit i8 (-128 to 127)"},
    {"add.u8 r0, r1, #1.5", "1:16: '#1.5' is not a constant of type u8: write #12, #-3 or #0xff"},
    {"movi.f32 r0, #1e39", "1:14: '#1e39' is too large for f32"},
    {"movi.f32 r0, #-",
     "1:14: '#-' is not a constant of type f32: write #1.5, #-2e-3, #0x1.8p3, #inf, #nan or the bits as #0x..."},
    {"movi.f32 r0, #0x1ffffffff", "1:14: '#0x1ffffffff' is too large for f32"},
    {"movi.f32 r0, r1", "1:14: expected a constant (#...), found 'r1'"},
    {"trap r0", "1:6: expected a constant (#...), found 'r0'"},
    {"mov.bool r0, #1", "1:14: expected a register: bool is a type for storage only, found '#1'"},
    {"sreg.u32 r0, lane.w", "1:14: 'lane.w' is not a coordinate: lane, block, block_size, grid_size or global with .x, "
                            ".y or .z; did you mean 'lane.x'?"},
    {"sreg.u32 r0, #1", "1:14: expected a coordinate (lane.x, block.y, grid_size.z, ...), found '#1'"},
    {"pand p0, p1, r2", "1:14: expected a predicate (p0 to p15), found 'r2'"},
    {DECLARATIONS "mul.f32 r0, b, b",
     "7:13: expected a register, a constant (#...) or a scalar parameter; 'b' is not declared"},
    {".scalar alpha f32\nmul.f32 r0, alhpa, alpha", "2:13: expected a register, a constant (#...) or a scalar "
                                                    "parameter; 'alhpa' is not declared; did you mean 'alpha'?"},
    {DECLARATIONS "mul.f32 r0, x, x",
     "7:13: expected a register, a constant (#...) or a scalar parameter; 'x' is a buffer"},
    {DECLARATIONS "mul.f64 r0, a, a", "7:13: scalar 'a' is f32; f64 is needed here"},
    {DECLARATIONS "pool.free.u64 x, #0", "7:15: expected a pool; 'x' is a buffer"},
    {DECLARATIONS "len.u64 r0, tile", "7:13: expected a buffer; 'tile' is a shared array"},
    {DECLARATIONS "len.u64 r0, heap", "7:13: expected a buffer; 'heap' is a pool"},
    {DECLARATIONS "len.u64 r0, [x]", "7:13: expected a buffer, found '['"},
    {DECLARATIONS "len.u32 r0, x", "7:5: 'len' does not exist for u32, only for u64"},
    /* addresses */
    {DECLARATIONS "ldg.f32 r0, x", "7:13: expected an address ([...]), found 'x'"},
    {DECLARATIONS "ldg.f32 r0, [y]", "7:14: expected a buffer; 'y' is not declared"},
    {DECLARATIONS "ldg.u8 r0, [byte]", "7:13: expected a buffer; 'byte' is not declared; did you mean 'bytes'?"},
    {DECLARATIONS "ldg.f64 r0, [x]", "7:14: 'x' holds f32, not f64"},
    {DECLARATIONS "ldg.u32 r0, [tile]", "7:14: expected a buffer; 'tile' is a shared array"},
    {DECLARATIONS "lds.f32 r0, [x]", "7:14: expected a shared array; 'x' is a buffer"},
    {DECLARATIONS "ldl.f32 r0, [tile]", "7:14: expected a local array; 'tile' is a shared array"},
    {DECLARATIONS "ldc.f32 r0, [x]", "7:14: expected a constant table; 'x' is a buffer"},
    {DECLARATIONS "pool.load.f32 r0, [x]", "7:20: expected a pool; 'x' is a buffer"},
    {DECLARATIONS "atom.add.u32 _, [heap], #1", "7:18: expected a buffer or a shared array; 'heap' is a pool"},
    {DECLARATIONS "ldg.f32 r0, [x", "7:15: expected '+' or ']', found the end of the text"},
    {DECLARATIONS "ldg.f32 r0, [x - #8]", "7:16: expected '+' or ']', found '-'"},
    {DECLARATIONS "ldg.f32 r0, [x + 8]", "7:18: expected a register, lane, blane or a constant (#...), found '8'"},
    {DECLARATIONS "ldg.f32 r0, [x + lane + lane]", "7:25: expected a constant (#...), found 'lane'"},
    {DECLARATIONS "ldg.f32 r0, [x + lane + #9223372036854775808]",
     "7:25: '#9223372036854775808' does not fit i64 (-9223372036854775808 to 9223372036854775807)"},
    {DECLARATIONS "ldg.f32 r0, [x + lane + #1 + #1]", "7:28: expected ']', found '+'"},
    {"ldg.f32 r0, [r1 : r2]", "1:14: the address [entry : offset] needs a buffer table; declare one with .table"},
    {".table t 2 in\nldg.f32 r0, [r1 : #2]", "2:19: expected a register, found '#2'"},
    {".table t 2 in\nldg.f32 r0, [r1]",
     "2:16: expected ':' (the address [entry : offset] of a buffer table, or start with a buffer's name), found ']'"},
    {"ldg.f32 r0, [phi 96, 0, 0]", "1:18: class 96 does not exist: 0 to 95"},
    {"ldg.f32 r0, [phi 0, #48, 0]", "1:21: page #48 does not exist: 0 to 47"},
    {"ldg.f32 r0, [phi 0, 0, 256]", "1:24: byte 256 does not exist: 0 to 255"},
    {"ldg.f32 r0, [phi 0, 0]", "1:22: expected ',' and the next of class, page, byte, found ']'"},
    {"ldg.f32 r0, [phi a, 0, 0]", "1:18: expected a register or a number, found 'a'"},
    {"lds.f32 r0, [phi 0, 0, 0]", "1:14: 'lds' does not take the address [phi class, page, byte]"},
    {"ldl.f32 r0, [r1 : r2]", "1:14: 'ldl' does not take the address [entry : offset]"},
    {"atom.add.u32 _, [r0 : r1], #1", "1:18: 'atom.add' does not take the address [entry : offset]"},
};

static void check_rejected(const char *text, size_t length, const char *message) {
  atlas_program *program = NULL;
  char expected[512];
  snprintf(expected, sizeof expected, "t:%s", message);
  CHECK_EQ_U64(atlas_parse(NULL, text, length, "t", &program), HG_PARSE);
  CHECK(program == NULL);
  CHECK_STR(hg_last_error(), expected);
  atlas_program_release(program);
}

static void test_errors(void) {
  for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++)
    check_rejected(bad_texts[i].text, strlen(bad_texts[i].text), bad_texts[i].message);
  char line[300] = ""; /* of a long path the beginning */
  memset(line, 's', 250);
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, "x", 1, line, &program), HG_PARSE);
  memset(line + 200, '.', 3);
  strcpy(line + 203, ":1:1: 'x' is not an instruction");
  CHECK_STR(hg_last_error(), line);
  check_rejected("exit\0exit", 9, "1:5: byte 0x00 is not text; outside comments only printable ASCII is");
  static char text[3000] = "movi.f64 r0, #";
  size_t start = strlen(text);
  memset(text + start, '1', 1101);
  check_rejected(text, strlen(text), "1:14: the constant has 1101 characters; at most 1100 are possible");
}

static void test_arguments(void) {
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, NULL, 4, "t", &program), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(atlas_parse(NULL, "exit", 4, "t", NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(atlas_parse(&(hg_allocator){0}, "exit", 4, "t", &program), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(atlas_parse(NULL, "exi", 3, NULL, &program), HG_PARSE);
  CHECK_STR(hg_last_error(), "program:1:1: 'exi' is not an instruction; did you mean 'exit'?");
  CHECK_EQ_U64(atlas_parse(NULL, NULL, 0, "t", &program), HG_VERIFY);
  CHECK_EQ_U64(atlas_parse(NULL, "exit", 4, NULL, &program), HG_OK);
  CHECK_EQ_U64(atlas_print(NULL, NULL, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_STR(atlas_program_name(program), "program");
  CHECK(atlas_program_retain(program) == program && atlas_program_retain(NULL) == NULL);
  atlas_program_release(program);
  atlas_program_release(program);
  atlas_program_release(NULL);
  CHECK_EQ_U64(atlas_type_from_name(NULL), ATLAS_NONE);
  CHECK_EQ_U64(atlas_op_from_name(NULL), ATLAS_OP_none);
}

/* No program is one with nothing in it. */
static void test_no_program(void) {
  size_t count[4] = {1, 1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  CHECK_STR(atlas_program_name(NULL), "");
  CHECK(atlas_program_insns(NULL, &count[0]) == NULL && count[0] == 0);
  CHECK(atlas_program_symbols(NULL, &count[1]) == NULL && count[1] == 0);
  CHECK(atlas_program_labels(NULL, &count[2]) == NULL && count[2] == 0);
  CHECK(atlas_program_constants(NULL, &count[3]) == NULL && count[3] == 0);
  atlas_program_block(NULL, block);
  CHECK(block[0] == 0 && block[1] == 0 && block[2] == 0);
  atlas_program_block(NULL, NULL);
  CHECK(!atlas_program_observes_block(NULL) && !atlas_program_is_library(NULL));
}

/* ---- whatever the text --------------------------------------------------------------------------------------------
 */

static const char sample[] =
    ".program sample\n.block 64\n.buffer x f32 in handle 9\n.buffer y f32 inout\n.scalar a f32\n.shared s f32 64\n"
    ".const c f32 { #1, #0x1p-3,\n #-2e3 }\n.table t 3 inout\n.pool heap\n"
    "    ldg.f32 r0, [x + lane]\n    ldc.f32 r1, [c + #2]\n    fma.f32 r0, r0, r1, a\n    sts.f32 [s + blane], r0\n"
    "    bar.sync\n    set.lt.f32 p0, r0, #1.5\n@!p0 bra skip\n    stg.f32 [y + lane + #-1], r0\n"
    "skip: ldg.u8 r2, [phi 1, 2, 3]\n    movi.u32 r3, #3\nback: loop r3, back\n    pool.alloc.u64 r4, heap, #16\n"
    "    ldg.i16 r5, [r3 : r4]\n    cvt.f32.i16 r6, r5\n    exit\n";

/* Every prefix, and every byte replaced by a few others: an answer, never a crash. */
static void test_damaged_text(void) {
  static const char replacements[] = {'\0', ' ', '\n', '#', '.', ',', '[', '}', ':', '@', '9', 'z', '-', '\x80'};
  char text[sizeof sample];
  atlas_program *program = NULL;
  unsigned long accepted = 0, rejected = 0;
  for (size_t i = 0; i < sizeof sample; i++) {
    char *exact = malloc(i + 1); /* so that a sanitizer sees a read past the end */
    memcpy(exact, sample, i);
    if (atlas_parse(NULL, exact, i, "t", &program) == HG_OK) accepted++;
    else rejected++;
    atlas_program_release(program);
    free(exact);
    for (size_t k = 0; k < sizeof replacements && i + 1 < sizeof sample; k++) {
      memcpy(text, sample, sizeof sample);
      text[i] = replacements[k];
      hg_status status = atlas_parse(NULL, text, sizeof sample - 1, "t", &program);
      CHECK(status == HG_OK || status == HG_PARSE || status == HG_VERIFY);
      if (status == HG_OK) accepted++;
      else rejected++;
      atlas_program_release(program);
    }
  }
  CHECK(accepted > 100 && rejected > 1000);
}

static hg_status parse_and_print(const hg_allocator *allocator, void *argument) {
  atlas_program *program = NULL;
  char *text = NULL;
  size_t length = 0;
  hg_status status = atlas_parse(allocator, argument, strlen(argument), "t", &program);
  if (status != HG_OK) return status;
  status = atlas_print(allocator, program, &text, &length);
  atlas_memory_release(allocator, text);
  atlas_program_release(program);
  return status;
}

int main(void) {
  test_every_instruction();
  test_canonical_forms();
  test_long_table();
  test_names_in_any_number();
  test_errors();
  test_arguments();
  test_no_program();
  test_damaged_text();
  char text[sizeof sample];
  memcpy(text, sample, sizeof sample);
  check_every_allocation(parse_and_print, text);
  return check_report();
}
