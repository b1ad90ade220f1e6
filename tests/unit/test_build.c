/* test_build.c - the builder: programs equal to their text, handles and buffer offsets, labels, and each error. */
#include "programs.h"

#include "atlas/assemble.h"
#include "atlas/insn.h"

static atlas_builder *create(void) {
  atlas_builder *b = NULL;
  CHECK_EQ_U64(atlas_builder_create(NULL, "built", &b), HG_OK);
  return b;
}

static atlas_program *finish(atlas_builder *b) {
  atlas_program *program = NULL;
  hg_status status = atlas_builder_finish(b, &program);
  if (!check_note(status == HG_OK)) printf("does not build: %s\n", hg_last_error());
  return program;
}

static void check_text(atlas_builder *b, const char *expected) {
  atlas_program *program = finish(b);
  if (program == NULL) return;
  char *text = print_program(program);
  CHECK_STR(text, expected);
  free(text);
  check_round_trip(program);
  atlas_program_release(program);
}

static void check_fails(atlas_builder *b, hg_status expected, const char *message) {
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_builder_finish(b, &program), expected);
  CHECK(program == NULL);
  CHECK_STR(hg_last_error(), message);
}

/* ---- programs -------------------------------------------------------------------------------------------------- */

static void test_every_operand(void) {
  atlas_builder *b = create();
  const float coefficients[3] = {1.5f, -2.0f, 0.1f};
  uint16_t x = atlas_builder_buffer(b, "x", ATLAS_f32, ATLAS_INOUT), a = atlas_builder_scalar(b, "a", ATLAS_f32);
  uint16_t tile = atlas_builder_shared(b, "tile", ATLAS_u32, 64),
           k = atlas_builder_const(b, "k", ATLAS_f32, 3, coefficients);
  uint16_t table = atlas_builder_table(b, "table", 5, ATLAS_IN), heap = atlas_builder_pool(b, "heap");
  uint32_t done = atlas_builder_label(b, "done"), again = atlas_builder_label(b, NULL),
           sub = atlas_builder_label(b, NULL);
  uint16_t own = atlas_builder_local(b, "own", ATLAS_f32, 9);
  atlas_builder_block(b, 8, 4, 2);
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_f32, 2, atlas_reg(0), atlas_mem_lane(x, 0));
  atlas_emit(b, ATLAS_OP_stl, ATLAS_f32, 2, atlas_mem(own, 8), atlas_reg(0));
  atlas_emit(b, ATLAS_OP_ldl, ATLAS_f32, 2, atlas_reg(0), atlas_mem_reg(own, ATLAS_REG_BLOCK_LANE, -1));
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_f32, 2, atlas_reg(1), atlas_mem(x, -3));
  atlas_emit(b, ATLAS_OP_ldc, ATLAS_f32, 2, atlas_reg(1), atlas_mem_reg(k, ATLAS_REG_BLOCK_SIZE, 1));
  atlas_emit(b, ATLAS_OP_fma, ATLAS_f32, 4, atlas_reg(2), atlas_reg(0), atlas_scalar(a), atlas_f32_const(-0.5f));
  atlas_emit(b, ATLAS_OP_movi, ATLAS_f64, 2, atlas_reg(3), atlas_f64_const(1e300));
  atlas_emit(b, ATLAS_OP_movi, ATLAS_i8, 2, atlas_reg(4), atlas_int_const(ATLAS_i8, -3));
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u32, ATLAS_i8, atlas_reg(5), atlas_reg(4));
  atlas_emit(b, ATLAS_OP_atom_add, ATLAS_u32, 3, atlas_discard(), atlas_mem_reg(tile, ATLAS_REG_BLOCK_LANE, 0),
             atlas_bits(7));
  atlas_emit(b, ATLAS_OP_sreg, ATLAS_u64, 2, atlas_reg(6), atlas_coordinate(ATLAS_COORD_GLOBAL_Z));
  atlas_emit(b, ATLAS_OP_len, ATLAS_u64, 2, atlas_reg(6), atlas_buffer(x));
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_u8, 2, atlas_reg(7), atlas_mem_table(table, 5, 6));
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_u8, 2, atlas_reg(7), atlas_mem_phi(95, 47, 255));
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_u8, 2, atlas_reg(7), atlas_mem_phi_reg(5, 5, 6));
  atlas_emit(b, ATLAS_OP_pool_alloc, ATLAS_u64, 3, atlas_reg(8), atlas_pool(heap), atlas_bits(64));
  atlas_emit(b, ATLAS_OP_set_lt, ATLAS_f32, 3, atlas_pred(15), atlas_reg(0), atlas_reg(2));
  atlas_builder_place(b, again);
  atlas_emit_branch(b, 15, 1, done);
  atlas_emit(b, ATLAS_OP_call, ATLAS_NONE, 1, atlas_label_ref(sub));
  atlas_emit_branch(b, 15, 0, again);
  atlas_emit_branch(b, -1, 0, done);
  atlas_builder_place(b, done);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  atlas_builder_place(b, sub);
  atlas_emit(b, ATLAS_OP_ret, ATLAS_NONE, 0);
  check_text(
      b,
      ".program built\n.block 8, 4, 2\n.buffer x f32 inout\n.scalar a f32\n.shared tile u32 64\n.const k f32 { #1.5, "
      "#-2, #0x3dcccccd }\n"
      ".table table 5 in\n.pool heap\n.local own f32 9\n\n    ldg.f32 r0, [x + lane]\n    stl.f32 [own + #8], r0\n"
      "    ldl.f32 r0, [own + blane + #-1]\n    ldg.f32 r1, [x + #-3]\n    ldc.f32 r1, [k + "
      "r254 + #1]\n"
      "    fma.f32 r2, r0, a, #-0.5\n    movi.f64 r3, #0x7e37e43c8800759c\n    movi.i8 r4, #-3\n    cvt.u32.i8 r5, r4\n"
      "    atom.add.u32 _, [tile + blane], #7\n    sreg.u64 r6, global.z\n    len.u64 r6, x\n"
      "    ldg.u8 r7, [r5 : r6]\n    ldg.u8 r7, "
      "[phi 95, 47, 255]\n"
      "    ldg.u8 r7, [phi r5, r5, r6]\n    pool.alloc.u64 r8, heap, #64\n    set.lt.f32 p15, r0, r2\nL0:\n    @!p15 "
      "bra done\n"
      "    call L1\n    @p15 bra L0\n    bra done\ndone:\n    exit\nL1:\n    ret\n");
}

static void test_default_block(void) {
  atlas_builder *b = create();
  uint32_t block[3];
  atlas_builder_default_block(b, 16, 4, 1);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  check_text(b, ".program built\n.block 16, 4 default\n\n    exit\n");
  b = create();
  atlas_builder_default_block(b, 16, 4, 2);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  atlas_program *program = finish(b);
  atlas_program_default_block(program, block);
  CHECK(block[0] == 16 && block[1] == 4 && block[2] == 2);
  atlas_program_block(program, block);
  CHECK(block[0] == 0 && block[1] == 0 && block[2] == 0);
  CHECK(!atlas_program_observes_block(program));
  atlas_program_release(program);
  b = create();
  atlas_builder_default_block(b, 33, 32, 1);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  check_fails(b, HG_VERIFY, "built: .block: a block has at most 1024 lanes, this one 1056");
  b = create();
  atlas_builder_default_block(b, 33, 0, 1);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  check_fails(b, HG_VERIFY, "built: .block: every dimension must be at least 1");
  b = create();
  atlas_builder_block(b, 32, 1, 1);
  atlas_builder_default_block(b, 32, 1, 1);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  check_fails(b, HG_VERIFY, "built: .block: a block size is required or a default, not both");
}

/* Handles of the original SDK: one parameter a handle and type, with the accesses it is asked for. */
static void test_handles(void) {
  atlas_builder *b = create();
  uint16_t in = atlas_builder_handle(b, 7, ATLAS_f32, ATLAS_IN);
  atlas_operand source = atlas_builder_buffer_offset(b, 7, ATLAS_f32, ATLAS_IN, 64);
  atlas_operand sink = atlas_builder_buffer_offset(b, UINT64_MAX, ATLAS_f32, ATLAS_OUT, 0);
  CHECK_EQ_U64(source.symbol, in);
  CHECK(sink.symbol != in);
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_f32, 2, atlas_reg(0), source);
  atlas_emit(b, ATLAS_OP_stg, ATLAS_f32, 2, sink, atlas_reg(0));
  CHECK_EQ_U64(atlas_builder_handle(b, 7, ATLAS_f32, ATLAS_OUT), in);
  CHECK(atlas_builder_handle(b, 7, ATLAS_u32, ATLAS_IN) != in);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  check_text(b, ".program built\n.buffer h7 f32 inout handle 7\n.buffer h18446744073709551615 f32 out handle "
                "18446744073709551615\n"
                ".buffer h7_u32 u32 in handle 7\n\n    ldg.f32 r0, [h7 + lane + #16]\n    stg.f32 "
                "[h18446744073709551615 + lane], r0\n    exit\n");
}

/* Labels come out in the order of their places, whatever the order they were made in; made-up names avoid given ones.
 */
static void test_labels(void) {
  atlas_builder *b = create();
  uint32_t last = atlas_builder_label(b, NULL), first = atlas_builder_label(b, NULL),
           taken = atlas_builder_label(b, "L0");
  uint32_t same = atlas_builder_label(b, NULL);
  atlas_builder_place(b, first);
  atlas_emit_branch(b, -1, 0, same);
  atlas_builder_place(b, taken);
  atlas_builder_place(b, same);
  atlas_emit_branch(b, -1, 0, last);
  atlas_builder_place(b, last);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  check_text(b, ".program built\n\nL2:\n    bra L3\nL0:\nL3:\n    bra L1\nL1:\n    exit\n");
  b = create(); /* words of the language */
  uint32_t out = atlas_builder_label(b, "out"), predicate = atlas_builder_label(b, "p0");
  atlas_builder_place(b, predicate);
  atlas_emit_branch(b, -1, 0, out);
  atlas_builder_place(b, out);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  check_text(b, ".program built\n\np0:\n    bra out\nout:\n    exit\n");
}

static void test_lines_and_fields(void) {
  atlas_builder *b = create();
  uint16_t x = atlas_builder_buffer(b, "x", ATLAS_f32, ATLAS_INOUT);
  atlas_insn insn;
  memset(&insn, 0xee, sizeof insn); /* what is not used must not show */
  insn.op = ATLAS_OP_ldg;
  insn.type = ATLAS_f32;
  insn.type2 = ATLAS_NONE;
  insn.guard = 0;
  insn.operand_count = 2;
  insn.line = 0;
  insn.operand[0].kind = ATLAS_OPERAND_REG;
  insn.operand[0].reg = 3;
  insn.operand[1].kind = ATLAS_OPERAND_MEM;
  insn.operand[1].mode = ATLAS_ADDRESS_UNIFORM;
  insn.operand[1].symbol = x;
  insn.operand[1].bits = 2;
  atlas_builder_insn(b, &insn);
  insn.operand[1].mode = ATLAS_ADDRESS_PHI;
  insn.operand[1].phi_registers = 0;
  insn.operand[1].bits = UINT64_C(4) << 32 | 3 << 16 | 2;
  insn.line = 40;
  atlas_builder_insn(b, &insn);
  atlas_builder_line(b, 41);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  atlas_program *program = finish(b);
  if (program == NULL) return;
  CHECK_EQ_U64(atlas_insn_at(program, 0)->line, 0);
  CHECK_EQ_U64(atlas_insn_at(program, 1)->line, 40);
  CHECK_EQ_U64(atlas_insn_at(program, 2)->line, 41);
  check_round_trip(program);
  atlas_program_release(program);
}

/* Random straight-line programs of constants and arithmetic, through every form. */
static void test_random_programs(void) {
  uint64_t state = 11;
  for (int run = 0; run < 200; run++) {
    atlas_builder *b = create();
    uint16_t buffers[3] = {atlas_builder_buffer(b, "p", ATLAS_f64, ATLAS_INOUT),
                           atlas_builder_handle(b, next_random(&state) | 1, ATLAS_f64, ATLAS_IN), 0};
    buffers[2] = atlas_builder_buffer(b, "q", ATLAS_f64, ATLAS_INOUT);
    atlas_builder_line(b, (uint32_t)next_random(&state));
    for (int i = 0; i < 40; i++) {
      atlas_type type = (atlas_type)(ATLAS_i8 + next_random(&state) % 12);
      uint64_t bits = next_random(&state) >> (next_random(&state) % 64);
      uint64_t mask = atlas_type_bits(type) == 64 ? UINT64_MAX : (UINT64_C(1) << atlas_type_bits(type)) - 1;
      uint32_t reg = (uint32_t)(next_random(&state) % ATLAS_GENERAL_REGISTERS);
      atlas_emit(b, ATLAS_OP_movi, type, 2, atlas_reg(reg), atlas_bits(bits & mask));
      atlas_emit(b, ATLAS_OP_add, type, 3, atlas_reg(reg), atlas_bits(~bits & mask), atlas_reg(reg));
      uint16_t symbol = buffers[next_random(&state) % 3];
      int64_t displacement = (int64_t)next_random(&state);
      if (i % 2) atlas_emit(b, ATLAS_OP_ldg, ATLAS_f64, 2, atlas_reg(reg), atlas_mem_lane(symbol, displacement));
      else atlas_emit(b, ATLAS_OP_ldg, ATLAS_f64, 2, atlas_reg(reg), atlas_mem(symbol, displacement));
    }
    atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
    atlas_program *program = finish(b);
    if (program != NULL) check_round_trip(program);
    atlas_program_release(program);
  }
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

static void test_errors(void) {
  atlas_builder *b = create();
  atlas_builder_scalar(b, "a1234567890123456789b1234567890123456789c1234567890123456789d12345678901234567890123",
                       ATLAS_f32);
  check_fails(b, HG_INVALID_ARGUMENT,
              "'a1234567890123456789b1234567890123456789c1234567890123456789d1234567890123456789...' is not a name: "
              "letters, digits and _ (at most 63), and no word of the language");
  b = create();
  atlas_builder_scalar(b, "r1", ATLAS_f32);
  atlas_builder_scalar(b, "", ATLAS_f32); /* only the first error counts */
  check_fails(b, HG_INVALID_ARGUMENT,
              "'r1' is not a name: letters, digits and _ (at most 63), and no word of the language");
  b = create();
  atlas_builder_buffer(b, NULL, ATLAS_f32, ATLAS_IN);
  check_fails(b, HG_INVALID_ARGUMENT,
              "'' is not a name: letters, digits and _ (at most 63), and no word of the language");
  b = create();
  atlas_builder_buffer(b, "x", ATLAS_f32, ATLAS_IN);
  atlas_builder_pool(b, "x");
  check_fails(b, HG_INVALID_ARGUMENT, "'x' is declared twice");
  b = create();
  atlas_builder_buffer(b, "x", (atlas_type)99, ATLAS_IN);
  check_fails(b, HG_INVALID_ARGUMENT, "'x' is of type code 99, which is unknown");
  b = create();
  atlas_builder_scalar(b, "x", ATLAS_NONE);
  check_fails(b, HG_INVALID_ARGUMENT, "'x' has no type of its elements");
  b = create();
  atlas_builder_handle(b, 7, (atlas_type)300, ATLAS_IN);
  check_fails(b, HG_INVALID_ARGUMENT, "'h7' is of type code 300, which is unknown");
  b = create();
  atlas_emit(b, ATLAS_OP_add, (atlas_type)77, 3, atlas_reg(0), atlas_reg(1), atlas_reg(2));
  check_fails(b, HG_INVALID_ARGUMENT, "'add' is of type code 77, which is unknown");
  b = create();
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_f32, (atlas_type)77, atlas_reg(0), atlas_reg(1));
  check_fails(b, HG_INVALID_ARGUMENT, "'cvt' is of type code 77, which is unknown");
  b = create();
  atlas_insn unknown = {.op = ATLAS_OP_add, .type = 77, .operand_count = 3};
  for (int i = 0; i < 3; i++) unknown.operand[i] = atlas_reg(0);
  atlas_builder_insn(b, &unknown);
  check_fails(b, HG_VERIFY, "built: instruction 0 'add': its type code 77 is unknown");
  b = create();
  atlas_builder_buffer(b, "x", ATLAS_f32, (atlas_access)9);
  check_fails(b, HG_INVALID_ARGUMENT, "'x' must be in, out or inout");
  b = create();
  atlas_builder_const(b, "k", ATLAS_u8, 70000, "");
  check_fails(b, HG_INVALID_ARGUMENT, "constant table 'k' has 70000 bytes; 1 to 65536 are possible");
  b = create();
  atlas_builder_const(b, "k", ATLAS_u8, 1, NULL);
  check_fails(b, HG_INVALID_ARGUMENT, "constant table 'k' has no values");
  b = create();
  for (int i = 0; i < 25; i++) atlas_builder_handle(b, (uint64_t)i + 1, ATLAS_f32, ATLAS_IN);
  check_fails(b, HG_INVALID_ARGUMENT, "'h25' is one too many: a program has at most 24 buffers");
  b = create();
  atlas_builder_handle(b, 0, ATLAS_f32, ATLAS_IN);
  check_fails(b, HG_INVALID_ARGUMENT, "0 is not a buffer handle");
  b = create();
  atlas_builder_buffer_offset(b, 3, ATLAS_f32, ATLAS_IN, 6);
  check_fails(b, HG_INVALID_ARGUMENT, "offset 6 in buffer 3 is not a multiple of 4, the size of f32");
  b = create();
  atlas_builder_label(b, "a-b");
  check_fails(b, HG_INVALID_ARGUMENT, "'a-b' is not a name for a label");
  b = create();
  atlas_builder_label(b, "a");
  check_fails(b, HG_INVALID_ARGUMENT, "label 'a' was made but never placed");
  b = create();
  atlas_builder_place(b, atlas_builder_label(b, "a"));
  atlas_builder_place(b, atlas_builder_label(b, "a"));
  check_fails(b, HG_INVALID_ARGUMENT, "there are two labels 'a'");
  b = create();
  atlas_builder_place(b, 5);
  check_fails(b, HG_INVALID_ARGUMENT, "there is no label 5");
  b = create();
  uint32_t label = atlas_builder_label(b, "a");
  atlas_builder_place(b, label);
  atlas_builder_place(b, label);
  check_fails(b, HG_INVALID_ARGUMENT, "label 0 is placed twice");
  b = create();
  atlas_builder_insn(b, NULL);
  check_fails(b, HG_INVALID_ARGUMENT, "atlas_builder_insn is given no instruction");
  CHECK_EQ_U64(atlas_builder_create(NULL, "phi", &b), HG_INVALID_ARGUMENT);
  CHECK(b == NULL);
  CHECK_STR(hg_last_error(), "'phi' is not a name for a program");
  CHECK_EQ_U64(atlas_builder_create(NULL, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(atlas_builder_finish(NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(atlas_builder_finish(create(), NULL), HG_INVALID_ARGUMENT);
  atlas_builder_release(create());
  atlas_builder_release(NULL);
}

static void test_instruction_errors(void) {
  atlas_builder *b = create();
  atlas_emit(b, ATLAS_OP_add, ATLAS_f32, 3, atlas_reg(0), atlas_reg(256), atlas_reg(1));
  check_fails(b, HG_INVALID_ARGUMENT, "operand 2 of 'add' (instruction 0): number 256 is out of range");
  b = create();
  atlas_emit(b, ATLAS_OP_pnot, ATLAS_NONE, 2, atlas_pred(0), atlas_pred(16));
  check_fails(b, HG_INVALID_ARGUMENT, "operand 2 of 'pnot' (instruction 0): number 16 is out of range");
  b = create();
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_u8, 2, atlas_reg(0), atlas_mem_phi(96, 0, 0));
  check_fails(b, HG_INVALID_ARGUMENT, "operand 2 of 'ldg' (instruction 0): number 96 is out of range");
  b = create();
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_u8, 2, atlas_reg(0), atlas_mem_phi_reg(1, 2, 300));
  check_fails(b, HG_INVALID_ARGUMENT, "operand 2 of 'ldg' (instruction 0): number 300 is out of range");
  b = create();
  atlas_insn insn = {.op = ATLAS_OP_ldg, .type = ATLAS_u8, .operand_count = 2};
  insn.operand[0] = atlas_reg(0);
  insn.operand[1] = atlas_mem_phi(1, 1, 1);
  insn.operand[1].bits = UINT64_MAX;
  atlas_builder_insn(b, &insn);
  check_fails(b, HG_INVALID_ARGUMENT, "operand 2 of 'ldg' (instruction 0) lies outside the boundary pool");
  b = create();
  atlas_emit(b, ATLAS_OP_add, ATLAS_f32, 5, atlas_reg(0));
  check_fails(b, HG_INVALID_ARGUMENT, "'add' is given 5 operands");
  b = create();
  atlas_emit(b, ATLAS_OP_add, ATLAS_f32, -1);
  check_fails(b, HG_INVALID_ARGUMENT, "'add' is given -1 operands");
  b = create();
  atlas_emit_operands(b, ATLAS_OP_add, ATLAS_f32, ATLAS_NONE, NULL, 3);
  check_fails(b, HG_INVALID_ARGUMENT, "'add' is given 3 operands, and NULL in their place");
  b = create();
  atlas_emit_branch(b, 16, 0, 0);
  check_fails(b, HG_INVALID_ARGUMENT, "a branch is given p16; there are p0 to p15");
  atlas_program *program = NULL;
  b = create(); /* what instructions mean is the verifier's business */
  atlas_emit(b, (atlas_op)0x10201, ATLAS_f32, 3, atlas_reg(0), atlas_reg(0), atlas_reg(0));
  CHECK_EQ_U64(atlas_builder_finish(b, &program), HG_VERIFY);
  b = create();
  atlas_emit_branch(b, -1, 0, 77);
  CHECK_EQ_U64(atlas_builder_finish(b, &program), HG_VERIFY);
  b = create();
  uint16_t heap = atlas_builder_pool(b, "heap");
  atlas_emit(b, ATLAS_OP_len, ATLAS_u64, 2, atlas_reg(0), atlas_buffer(heap));
  check_fails(b, HG_VERIFY,
              "built: instruction 0 'len': 'heap' is not a buffer (.buffer): a pool and the entries of a table have no "
              "length that a program can ask for");
  b = create();
  atlas_emit(b, ATLAS_OP_add, ATLAS_f32, 2, atlas_reg(0), atlas_reg(0));
  CHECK_EQ_U64(atlas_builder_finish(b, &program), HG_VERIFY);
  b = create();
  atlas_emit(b, ATLAS_OP_mov, ATLAS_f32, 2, atlas_reg(0), atlas_scalar(12));
  CHECK_EQ_U64(atlas_builder_finish(b, &program), HG_VERIFY);
  CHECK_EQ_U64(atlas_builder_finish(create(), &program), HG_VERIFY); /* no instructions */
}

/* ---- programs that are followed -------------------------------------------------------------------------------- */

enum { CALLS = 60, FOLLOWED_LABELS = 4, UNCHANGED = -1 };

/* Call number i of those that build a program, drawn by `seed`; another one if i is `changed`. */
static void make_call(atlas_builder *b, uint64_t seed, int i, int changed, const uint32_t *labels) {
  uint64_t draw = (seed * 1000 + (uint64_t)i) * UINT64_C(0x9E3779B97F4A7C15);
  uint32_t number = (uint32_t)(draw >> 40) % 300, other = i == changed;
  char name[ATLAS_MAX_NAME + 1];
  atlas_name_by_number(name, other ? 'y' : 'x', (uint32_t)i);
  switch ((draw >> 32) % 8) {
  case 0: atlas_builder_buffer(b, name, ATLAS_f32, ATLAS_INOUT); break;
  case 1: atlas_builder_scalar(b, name, ATLAS_u32); break;
  case 2: atlas_emit_branch(b, (int)(number % 15) + (int)other, 0, labels[number % FOLLOWED_LABELS]); break;
  case 3: atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u32, ATLAS_u64, atlas_reg(number + other), atlas_reg(number)); break;
  case 4: atlas_emit_branch(b, -1, 0, labels[(number + other) % FOLLOWED_LABELS]); break;
  default:
    atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(number), atlas_reg(number * 3 + other), atlas_bits(draw));
    break;
  }
}

/* The program of a seed, with one call changed or the last left out; followed: NULL or what the builder follows. */
static atlas_program *follow(uint64_t seed, int changed, int calls, atlas_program *followed) {
  static const char *const names[FOLLOWED_LABELS] = {NULL, "here", NULL, "there"};
  uint32_t labels[FOLLOWED_LABELS];
  atlas_program *program = NULL;
  atlas_builder *b = create();
  atlas_builder_has_many(b);
  if (followed != NULL) atlas_builder_follow(b, followed);
  for (int i = 0; i < FOLLOWED_LABELS; i++) labels[i] = atlas_builder_label(b, names[(seed + (uint64_t)i) % 4]);
  for (int i = 0; i < calls; i++) {
    make_call(b, seed, i, changed, labels);
    for (int k = 0; k < FOLLOWED_LABELS; k++)
      if (i == (13 + 11 * k * k) % calls) atlas_builder_place(b, labels[k]);
  }
  if (changed == CALLS) atlas_builder_block(b, 64, 1, 1);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  CHECK_EQ_U64(atlas_builder_close(b, &program), HG_OK);
  return program;
}

/* What is built is the same whether a program was followed or not; an equal one is the followed program itself. */
static void test_followed_programs(void) {
  for (uint64_t seed = 0; seed < 20; seed++) {
    atlas_program *known = follow(seed, UNCHANGED, CALLS, NULL), *again = follow(seed, UNCHANGED, CALLS, known);
    CHECK(again == known);
    atlas_program_release(again);
    for (int changed = 0; changed <= CALLS; changed++) {
      int calls = changed % 7 == 6 ? CALLS - 1 : CALLS;
      atlas_program *plain = follow(seed, changed, calls, NULL), *other = follow(seed, changed, calls, known);
      CHECK(other != known && atlas_program_same(plain, other) && !atlas_program_same(plain, known));
      CHECK_EQ_U64(atlas_program_digest(plain), atlas_program_digest(other));
      atlas_program_release(plain);
      atlas_program_release(other);
    }
    atlas_program_release(known);
  }
}

static hg_status build(const hg_allocator *allocator, void *argument) {
  atlas_builder *b = NULL;
  atlas_program *program = NULL;
  (void)argument;
  hg_status status = atlas_builder_create(allocator, "b", &b);
  if (status != HG_OK) return status;
  const uint16_t values[5] = {1, 2, 3, 4, 5};
  uint16_t k = atlas_builder_const(b, "k", ATLAS_u16, 5, values);
  atlas_operand address = atlas_builder_buffer_offset(b, 3, ATLAS_u16, ATLAS_OUT, 2);
  uint32_t end = atlas_builder_label(b, NULL), named = atlas_builder_label(b, "here");
  for (int i = 0; i < 40; i++) atlas_emit(b, ATLAS_OP_ldc, ATLAS_u16, 2, atlas_reg(0), atlas_mem(k, 4));
  atlas_emit_branch(b, -1, 0, end);
  atlas_builder_place(b, end);
  atlas_builder_place(b, named);
  atlas_emit(b, ATLAS_OP_stg, ATLAS_u16, 2, address, atlas_reg(0));
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  status = atlas_builder_finish(b, &program);
  atlas_program_release(program);
  return status;
}

int main(void) {
  test_every_operand();
  test_default_block();
  test_handles();
  test_labels();
  test_lines_and_fields();
  test_random_programs();
  test_errors();
  test_instruction_errors();
  test_followed_programs();
  check_every_allocation(build, NULL);
  return check_report();
}
