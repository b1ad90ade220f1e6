/* test_x86_asm.c - every row of x86_asm.def, with several registers and addresses, against a disassembler; and some
 * byte strings that need none. */
#define _GNU_SOURCE /* mkstemp, popen */
#include "backend/cpu/x86/x86_asm.h"
#include "check.h"

#include <ctype.h>
#include <stdlib.h>

#ifndef _WIN32

enum { MOST_CASES = 8192, TEXT_BYTES = 160 };

typedef struct expectations {
  x86_asm code;
  uint32_t begin[MOST_CASES + 1];
  char text[MOST_CASES][TEXT_BYTES]; /* Intel syntax without blanks and sizes */
  uint32_t count;
} expectations;

static const char *const general64[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
static const char *const general32[] = {"eax", "ecx",  "edx",  "ebx",  "esp",  "ebp",  "esi",  "edi",
                                        "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"};

static void print_register(char *text, uint8_t class, unsigned width, unsigned w, unsigned reg) {
  static const char letters[] = {'x', 'y', 'z'};
  int shift = class == X86_CLASS_V ? 0 : class == X86_CLASS_H ? 1 : 2;
  if (class == X86_CLASS_K) sprintf(text, "k%u", reg);
  else if (class == X86_CLASS_G) sprintf(text, "%s", w ? general64[reg] : general32[reg]);
  else {
    int size = class == X86_CLASS_X ? 0 : (int)width - shift;
    sprintf(text, "%cmm%u", letters[size < 0 ? 0 : size], reg);
  }
}

static void print_memory(char *text, const x86_row *row, const x86_vector_insn *insn) {
  const x86_rm *rm = &insn->rm;
  int is_vector_index = insn->op == X86_vpgatherdd || insn->op == X86_vpscatterdd || insn->op == X86_vpgatherdd_vex ||
                        insn->op == X86_vpgatherdq || insn->op == X86_vpscatterdq || insn->op == X86_vpgatherdq_vex;
  char index[16] = "";
  int is_quad = row->w && is_vector_index;
  if (is_vector_index) print_register(index, is_quad ? X86_CLASS_H : X86_CLASS_V, insn->width, 0, rm->index);
  else if (rm->index != X86_NO_INDEX) sprintf(index, "%s", general64[rm->index]);
  text += sprintf(text, "[%s", general64[rm->reg]);
  if (index[0] != 0)
    text += rm->scale != 0 ? sprintf(text, "+%d*%s", 1 << rm->scale, index) : sprintf(text, "+%s", index);
  if (rm->displacement != 0) text += sprintf(text, "%+d", rm->displacement);
  text += sprintf(text, "]");
  if (rm->broadcast) {
    int vector = row->tuple == X86_TUPLE_HALF_B ? 8 << insn->width : 16 << insn->width;
    sprintf(text, "{1to%d}", vector / (row->w ? 8 : 4));
  }
}

static void print_rm(char *text, const x86_row *row, const x86_vector_insn *insn) {
  if (insn->rm.is_memory) print_memory(text, row, insn);
  else print_register(text, row->rm_class, insn->width, row->w, insn->rm.reg);
}

/* Where EVEX and VEX have two names. */
static const char *mnemonic_of(const x86_row *row, int evex) {
  static const char *const names[][2] = {{"vmovdqu32", "vmovdqu"}, {"vmovdqu64", "vmovdqu"}, {"vmovdqa32", "vmovdqa"},
                                         {"vmovdqa64", "vmovdqa"}, {"vpandd", "vpand"},      {"vpandq", "vpand"},
                                         {"vpandnd", "vpandn"},    {"vpandnq", "vpandn"},    {"vpord", "vpor"},
                                         {"vporq", "vpor"},        {"vpxord", "vpxor"},      {"vpxorq", "vpxor"},
                                         {"vrndscaleps", "vroundps"}, {"vrndscalepd", "vroundpd"},
                                         {"vpdpbusd", "{vex}vpdpbusd"}}; /* the EVEX form came first */
  for (size_t i = 0; !evex && i < sizeof names / sizeof names[0]; i++)
    if (strcmp(row->mnemonic, names[i][0]) == 0) return names[i][1];
  return row->mnemonic;
}

/* A comparison is named after its immediate, which is no operand then: vcmpeqps, vpcmplenud. 1 if it is one. */
static int print_comparison(char *text, const x86_vector_insn *insn, const char *operands) {
  static const char *const relations[2][8] = {{"eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord"},
                                              {"eq", "lt", "le", "", "neq", "nlt", "nle", ""}};
  const char *name = hg_x86_rows[insn->op].mnemonic, *end = strstr(name, "cmp");
  if (end == NULL || hg_x86_rows[insn->op].form != X86_FORM_RVMI) return 0;
  const char *relation = relations[name[1] == 'p'][insn->immediate & 7];
  if (relation[0] == 0) return 0;
  sprintf(text, "%.*s%s%s%s", (int)(end + 3 - name), name, relation, end + 3, operands);
  return 1;
}

static void print_insn(char *text, const x86_vector_insn *insn, int evex) {
  const x86_row *row = &hg_x86_rows[insn->op];
  char reg[32], second[32], rm[64], mask[16] = "", operands[128];
  int has_mask = insn->mask != 0;
  int is_vector_result = row->form == X86_FORM_VMI || (!evex && strncmp(row->mnemonic, "vcmp", 4) == 0);
  print_register(reg, is_vector_result ? X86_CLASS_V : row->reg_class, insn->width, row->w, insn->reg);
  print_register(second, row->reg_class == X86_CLASS_K && row->rm_class == X86_CLASS_K ? X86_CLASS_K : X86_CLASS_V,
                 insn->width, row->w, insn->vvvv);
  print_rm(rm, row, insn);
  if (has_mask) sprintf(mask, "{k%u}%s", insn->mask, insn->zero ? "{z}" : "");
  const char *name = mnemonic_of(row, evex);
  unsigned imm = insn->immediate;
  snprintf(operands, sizeof operands, "%s%s,%s,%s", reg, mask, second, rm);
  if (print_comparison(text, insn, operands)) return;
  switch (row->form) {
  case X86_FORM_RVM: sprintf(text, "%s%s%s,%s,%s", name, reg, mask, second, rm); break;
  case X86_FORM_RM: sprintf(text, "%s%s%s,%s", name, reg, mask, rm); break;
  case X86_FORM_MR: sprintf(text, "%s%s%s,%s", name, rm, mask, reg); break;
  case X86_FORM_RMV: sprintf(text, "%s%s%s,%s,%s", name, reg, mask, rm, second); break;
  case X86_FORM_MVR: sprintf(text, "%s%s%s,%s,%s", name, rm, mask, second, reg); break;
  case X86_FORM_VMI: sprintf(text, "%s%s%s,%s,%u", name, second, mask, rm, imm); break;
  case X86_FORM_RVMI:
    if (insn->op == X86_vblendvps) sprintf(text, "%s%s%s,%s,%s,ymm%u", name, reg, mask, second, rm, imm >> 4);
    else sprintf(text, "%s%s%s,%s,%s,%u", name, reg, mask, second, rm, imm);
    break;
  case X86_FORM_RMI: sprintf(text, "%s%s%s,%s,%u", name, reg, mask, rm, imm); break;
  default: sprintf(text, "%s%s%s,%s,%u", name, rm, mask, reg, imm); break;
  }
}

static void add_case(expectations *e, const x86_vector_insn *insn, int evex) {
  if (e->count == MOST_CASES) return;
  e->code.evex = (uint8_t)evex;
  e->begin[e->count] = (uint32_t)e->code.count;
  hg_x86_vector(&e->code, insn);
  print_insn(e->text[e->count++], insn, evex);
  e->begin[e->count] = (uint32_t)e->code.count;
}

static int is_gather(unsigned op) {
  return op == X86_vpgatherdd || op == X86_vpgatherdq || op == X86_vpscatterdd || op == X86_vpscatterdq ||
         op == X86_vpgatherdd_vex || op == X86_vpgatherdq_vex;
}

static int is_memory_only(unsigned op) {
  return op == X86_vstream || op == X86_vpmaskload || op == X86_vpmaskload64 || op == X86_vpmaskstore ||
         op == X86_vpmaskstore64 || op == X86_kmovw_store || is_gather(op);
}

static uint8_t width_of(const x86_row *row, int evex) {
  if (row->rm_class == X86_CLASS_K && row->reg_class == X86_CLASS_K) return row->form == X86_FORM_RVM;
  if (row->reg_class == X86_CLASS_X || row->rm_class == X86_CLASS_G)
    return row->reg_class == X86_CLASS_X || row->reg_class == X86_CLASS_K ? 0 : 2;
  if (row->rm_class == X86_CLASS_K && row->reg_class == X86_CLASS_G) return 0;
  return evex ? 2 : 1;
}

static unsigned register_for(uint8_t class, unsigned n, int evex) {
  static const uint8_t some[] = {1, 8, 19, 30, 5, 15};
  unsigned reg = some[n % 6];
  if (class < X86_CLASS_V) return class;
  if (class == X86_CLASS_K) return 1 + n % 7;
  if (class == X86_CLASS_G) return reg & 15;
  return evex ? reg : reg & 15;
}

/* EVEX masks: only where the result is a vector or a comparison's mask. */
static int may_mask(const x86_row *row, unsigned op) {
  return row->tuple != X86_TUPLE_NONE && row->reg_class == X86_CLASS_V && row->form != X86_FORM_MR &&
         row->form != X86_FORM_MRI && row->form != X86_FORM_VMI && op != X86_vshufps && !is_gather(op);
}

static void add_row(expectations *e, unsigned op, int evex) {
  const x86_row *row = &hg_x86_rows[op];
  for (unsigned n = 0; n < 6; n++) {
    x86_vector_insn insn = {.op = (uint16_t)op, .width = width_of(row, evex), .immediate = (uint8_t)(n * 3 % 8)};
    if (op == X86_vblendvps) insn.immediate = (uint8_t)((n * 5 % 16) << 4);
    if (op == X86_kshiftrw) insn.immediate = 8;
    insn.reg = (uint8_t)register_for(row->reg_class, n, evex);
    int has_second = row->form == X86_FORM_RVM || row->form == X86_FORM_RVMI || row->form == X86_FORM_VMI ||
                     row->form == X86_FORM_RMV || row->form == X86_FORM_MVR;
    uint8_t second_class = row->reg_class == X86_CLASS_K && row->rm_class == X86_CLASS_K ? X86_CLASS_K : X86_CLASS_V;
    if (has_second) insn.vvvv = (uint8_t)register_for(second_class, n + 1, evex);
    insn.rm = x86_reg(register_for(row->rm_class, n + 2, evex));
    if (evex && may_mask(row, op) && n % 2) {
      insn.mask = (uint8_t)(1 + n);
      insn.zero = n == 3;
    }
    if (!is_memory_only(op)) add_case(e, &insn, evex);
    if (row->tuple == X86_TUPLE_NONE || (row->form == X86_FORM_VMI && !evex)) continue;
    static const int32_t displacements[] = {0, 64, 4, -128, 4096, -8};
    static const uint8_t bases[] = {X86_RSP, X86_R13, X86_RAX, X86_R12, X86_RBP, X86_R15};
    insn.rm = n % 2 ? x86_indexed(bases[n], n == 1 ? X86_R9 : X86_RBX, n % 4, displacements[n])
                    : x86_at(bases[n], displacements[n]);
    if (is_gather(op)) {
      insn.rm = x86_indexed(bases[n], evex ? 3 + n * 5 : 7 + n, 2, displacements[n]);
      insn.mask = evex ? 2 : 0;
      if (!evex) insn.vvvv = 14, insn.reg = 1;
      if (evex) insn.reg = 2;
    }
    int may_broadcast = row->tuple == X86_TUPLE_FULL || row->tuple == X86_TUPLE_HALF_B;
    insn.rm.broadcast = evex && may_broadcast && n % 3 == 0;
    if (op == X86_vblendvps) insn.reg &= 15;
    add_case(e, &insn, evex);
  }
}

/* One line of a disassembly as the expectations are written: no blanks, no sizes, no comments. */
static void normalise(char *line) {
  static const char *const sizes[] = {"zmmword ptr", "ymmword ptr", "xmmword ptr",
                                      "qword ptr",   "dword ptr",   "word ptr"};
  line[strcspn(line, "#\n")] = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    char *found = strstr(line, sizes[i]);
    if (found != NULL) memmove(found, found + strlen(sizes[i]), strlen(found + strlen(sizes[i])) + 1);
  }
  char *out = line;
  for (const char *in = line; *in != 0; in++)
    if (!isspace((unsigned char)*in)) *out++ = *in;
  *out = 0;
}

static void write_hex(const expectations *e, FILE *file) {
  for (uint32_t i = 0; i < e->count; i++) {
    for (uint32_t b = e->begin[i]; b < e->begin[i + 1]; b++) fprintf(file, "0x%02x ", e->code.code[b]);
    fprintf(file, "\n");
  }
}

static uint32_t compare_lines(const expectations *e, FILE *disassembly) {
  char line[1024]; /* a comment may name each byte of a vector */
  uint32_t at = 0, wrong = 0;
  while (fgets(line, sizeof line, disassembly) != NULL && at < e->count) {
    normalise(line);
    if (line[0] == 0 || line[0] == '.') continue;
    if (strcmp(line, e->text[at]) != 0 && wrong++ < 20) printf("  expected %s, found %s\n", e->text[at], line);
    at++;
  }
  return at == e->count ? wrong : UINT32_MAX;
}

static void check_disassembly(const expectations *e) {
  char name[] = "/tmp/x86-asm-XXXXXX", command[256];
  int descriptor = mkstemp(name);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
  CHECK(file != NULL);
  if (file == NULL) return;
  write_hex(e, file);
  fclose(file);
  snprintf(command, sizeof command,
           "llvm-mc --disassemble --triple=x86_64 --mattr=+avx512f --output-asm-variant=1 %s 2>/dev/null", name);
  FILE *disassembly = popen(command, "r");
  CHECK(disassembly != NULL);
  if (disassembly != NULL) {
    CHECK(compare_lines(e, disassembly) == 0);
    pclose(disassembly);
  }
  remove(name);
}

static void test_rows(const hg_allocator *allocator) {
  if (system("llvm-mc --version >/dev/null 2>&1") != 0) {
    printf("SKIP rows: no llvm-mc to disassemble with\n");
    return;
  }
  expectations *e = calloc(1, sizeof *e);
  CHECK(e != NULL);
  if (e == NULL) return;
  hg_x86_begin(&e->code, allocator, 1);
  for (unsigned op = 0; op < X86_OP_COUNT; op++) {
    if (hg_x86_rows[op].has & X86_HAS_E) add_row(e, op, 1);
    if (hg_x86_rows[op].has & X86_HAS_V) add_row(e, op, 0);
  }
  CHECK(e->count < MOST_CASES);
  check_disassembly(e);
  hg_x86_release(&e->code);
  free(e);
}

#else
static void test_rows(const hg_allocator *allocator) {
  (void)allocator;
  printf("SKIP rows: disassembled on other systems\n");
}
#endif

static int ends_in(const x86_asm *a, size_t from, const char *bytes, size_t count) {
  return a->count - from == count && memcmp(a->code + from, bytes, count) == 0;
}

#define EXPECT(bytes, call)                                    \
  do {                                                         \
    size_t from = a.count;                                     \
    call;                                                      \
    CHECK(ends_in(&a, from, bytes, sizeof bytes - 1));         \
  } while (0)

static void test_general(const hg_allocator *allocator) {
  x86_asm a;
  hg_x86_begin(&a, allocator, 1);
  EXPECT("\x48\x8b\x44\x24\x08", hg_x86_load(&a, 1, X86_RAX, x86_at(X86_RSP, 8)));
  EXPECT("\x4d\x89\x65\x00", hg_x86_store(&a, 1, x86_at(X86_R13, 0), X86_R12));
  EXPECT("\x48\x83\xc3\x20", hg_x86_alu_imm(&a, X86_ADD, 1, x86_reg(X86_RBX), 32));
  EXPECT("\x48\x81\xec\x00\x10\x00\x00", hg_x86_alu_imm(&a, X86_SUB, 1, x86_reg(X86_RSP), 4096));
  EXPECT("\x48\x3b\x1c\x24", hg_x86_alu_rm(&a, X86_CMP, 1, X86_RBX, x86_at(X86_RSP, 0)));
  EXPECT("\xf3\x0f\xbc\xc1", hg_x86_tzcnt(&a, 0, X86_RAX, x86_reg(X86_RCX)));
  EXPECT("\xc4\xe2\x70\xf5\xc2", hg_x86_bzhi(&a, 0, X86_RAX, x86_reg(X86_RDX), X86_RCX));
  EXPECT("\xc4\xc2\x18\xf3\xcc", hg_x86_blsr(&a, 0, X86_R12, x86_reg(X86_R12)));
  EXPECT("\x48\xf7\x74\x24\x20", hg_x86_divide_by(&a, 1, x86_at(X86_RSP, 32)));
  EXPECT("\xf3\x0f\xb8\xd8", hg_x86_popcnt(&a, 0, X86_RBX, x86_reg(X86_RAX)));
  EXPECT("\x49\x0f\x4e\xdc", hg_x86_move_if(&a, X86_LESS_EQUAL, 1, X86_RBX, x86_reg(X86_R12)));
  EXPECT("\x42\x87\x04\xae", hg_x86_exchange_memory(&a, 0, x86_indexed(X86_RSI, X86_R13, 2, 0), X86_RAX));
  EXPECT("\xf0\x01\x1c\x8e", (hg_x86_lock(&a), hg_x86_alu_store(&a, X86_ADD, 0, x86_indexed(X86_RSI, X86_RCX, 2, 0),
                                                               X86_RBX)));
  EXPECT("\x4a\x0f\xb1\x1c\xee", hg_x86_compare_exchange(&a, 1, x86_indexed(X86_RSI, X86_R13, 3, 0), X86_RBX));
  EXPECT("\x42\x0f\xc1\x04\xaf", hg_x86_add_fetch(&a, 0, x86_indexed(X86_RDI, X86_R13, 2, 0), X86_RAX));
  EXPECT("\x88\x1c\x0f\x66\x89\x1c\x4f", (hg_x86_store_narrow(&a, 1, x86_indexed(X86_RDI, X86_RCX, 0, 0), X86_RBX),
                                             hg_x86_store_narrow(&a, 2, x86_indexed(X86_RDI, X86_RCX, 1, 0), X86_RBX)));
  EXPECT("\x41\x54\x41\x5c", (hg_x86_push(&a, X86_R12), hg_x86_pop(&a, X86_R12)));
  EXPECT("\x0f\x18\x8c\x9e\x00\x08\x00\x00", hg_x86_prefetch(&a, 1, x86_indexed(X86_RSI, X86_RBX, 2, 2048)));
  EXPECT("\x0f\x0d\x8c\x9e\x00\x08\x00\x00",
         hg_x86_prefetch_to_write(&a, x86_indexed(X86_RSI, X86_RBX, 2, 2048)));
  EXPECT("\x62\xf1\x74\x58\x58\x47\x01", /* vaddps zmm0, zmm1, dword ptr [rdi + 4]{1to16} */
         hg_x86_vector(&a, &(x86_vector_insn){.op = X86_vaddps, .width = 2, .vvvv = 1,
                                           .rm = {1, X86_RDI, X86_NO_INDEX, 0, 1, 4}}));
  EXPECT("\xc5\xf4\x58\xc2", (a.evex = 0, hg_x86_vector(&a, &(x86_vector_insn){.op = X86_vaddps, .width = 1, .vvvv = 1,
                                                                            .rm = x86_reg(2)})));
  EXPECT("\xc5\xf2\x58\xc2", hg_x86_vector(&a, &(x86_vector_insn){.op = X86_vaddps, .is_scalar = 1, .vvvv = 1,
                                                                  .rm = x86_reg(2)}));
  EXPECT("\xc4\xe1\xeb\x51\xda", /* vsqrtsd xmm3, xmm2, xmm2 */
         hg_x86_vector(&a, &(x86_vector_insn){.op = X86_vsqrtpd, .is_scalar = 1, .reg = 3, .rm = x86_reg(2)}));
  EXPECT("\xc4\xe2\xf1\xb9\xc2", hg_x86_vector(&a, &(x86_vector_insn){.op = X86_vfmadd231pd, .is_scalar = 1, .vvvv = 1,
                                                                       .rm = x86_reg(2)}));
  hg_x86_align(&a, 16, 0xcc);
  EXPECT("\xc3\x0f\x1f\x84\x00\x00\x00\x00\x00\x90\x90\x90\x90\x90\x90\x90",
         (hg_x86_return(&a), hg_x86_align(&a, 16, 0x90)));
  uint32_t label = hg_x86_new_label(&a);
  EXPECT("\xe9\x06\x00\x00\x00\x0f\x84\x00\x00\x00\x00\x0f\x85\xfa\xff\xff\xff",
         (hg_x86_jump(&a, label), hg_x86_jump_if(&a, X86_EQUAL, label), hg_x86_place(&a, label),
          hg_x86_jump_if(&a, X86_NOT_EQUAL, label)));
  hg_x86_release(&a);
}

int main(void) {
  hg_allocator allocator;
  CHECK(hg_allocator_resolve(NULL, &allocator) == HG_OK);
  test_rows(&allocator);
  test_general(&allocator);
  return check_report();
}
