/* test_narrow_groups.c - straight-line programs of 8- and 16-bit values, which machine code may run with more lanes to
 * a vector than others: chains of random instructions of one width and of both, with constants and parameters, for
 * numbers of lanes around those of a group, and with accesses beside a lane's own element that leave the buffers. They
 * leave the memory and the fault of the interpreter. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

enum { PROGRAMS = 120, MOST_LANES = 700, TEXT_BYTES = 4096, INSNS = 10, VALUES = 32 };

typedef struct draft { /* a program; register r has the type types[r] */
  char text[TEXT_BYTES];
  size_t size;
  const char *const *types;
  unsigned type_count, count, of[VALUES];
} draft;

static const char *const bytes[] = {"u8", "i8"}, *const words[] = {"i16", "u16"},
                         *const both[] = {"u8", "i16", "i8", "u16"};

static uint64_t state = 1;

static unsigned below(unsigned n) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(state >> 40) % n;
}

#define ADD(d, ...) (d)->size += (size_t)snprintf((d)->text + (d)->size, TEXT_BYTES - (d)->size, __VA_ARGS__)

static const char *type_of(const draft *d, unsigned r) { return d->types[d->of[r]]; }

/* A register of type t: there is one of each. */
static unsigned pick(const draft *d, unsigned t) {
  for (;;) {
    unsigned r = below(d->count);
    if (d->of[r] == t) return r;
  }
}

/* A register, a constant or a parameter. */
static void operand(draft *d, unsigned t) {
  unsigned way = below(6);
  if (way == 0) ADD(d, ", #%d", d->types[t][0] == 'u' ? (int)below(120) : (int)below(240) - 120);
  else if (way == 1) ADD(d, ", k%u", t);
  else ADD(d, ", r%u", pick(d, t));
}

static void add_insn(draft *d) {
  static const char *const binary[] = {"add", "sub", "mul", "mulhi", "min", "max", "and", "or", "xor"};
  static const char *const unary[] = {"neg", "not", "popc", "clz", "ctz", "brev"};
  unsigned t = below(d->type_count), way = below(20), other = below(d->type_count);
  const char *type = d->types[t];
  if (way < 9) {
    ADD(d, "%s.%s r%u, r%u", binary[way], type, d->count, pick(d, t));
    operand(d, t);
  } else if (way < 15) ADD(d, "%s.%s r%u, r%u", unary[way - 9], type, d->count, pick(d, t));
  else if (way == 15) ADD(d, "shl.%s r%u, r%u, #%u", type, d->count, pick(d, t), below(20));
  else if (way == 16) ADD(d, "shr.%s r%u, r%u, #%u", type, d->count, pick(d, t), below(20));
  else if (way == 17 && type[0] == 'i') ADD(d, "%s.%s r%u, r%u", below(2) ? "abs" : "sign", type, d->count, pick(d, t));
  else if (way == 18) {
    ADD(d, "mad.%s r%u, r%u", type, d->count, pick(d, t));
    operand(d, t);
    operand(d, t);
  } else ADD(d, "cvt.%s.%s r%u, r%u", type, d->types[other], d->count, pick(d, other));
  ADD(d, "\n");
  d->of[d->count++] = t;
}

static void write_program(draft *d, unsigned number) {
  static const char *const *const sets[] = {bytes, words, both, both};
  d->types = sets[number % 4];
  d->type_count = number % 4 < 2 ? 2 : 4;
  d->size = d->count = 0;
  ADD(d, ".program p\n");
  for (unsigned t = 0; t < d->type_count; t++)
    ADD(d, ".buffer a%u %s in\n.buffer y%u %s out\n.scalar k%u %s\n", t, d->types[t], t, d->types[t], t, d->types[t]);
  for (unsigned t = 0; t < d->type_count; t++, d->count++) {
    const char *beside = number < 20 ? "" : (const char *[]){"", "", " + #1", " + #-1"}[below(4)];
    ADD(d, "ldg.%s r%u, [a%u + lane%s]\n", d->types[t], d->count, t, beside);
    d->of[d->count] = t;
  }
  for (unsigned i = 0; i < INSNS; i++) add_insn(d);
  for (unsigned r = d->count; r-- > d->type_count;) /* the youngest of each type */
    for (unsigned t = d->of[r], later = r + 1; later <= d->count; later++) {
      if (later == d->count) ADD(d, "stg.%s [y%u + lane], r%u\n", type_of(d, r), t, r);
      else if (d->of[later] == t) break;
    }
  ADD(d, "exit\n");
}

typedef struct outcome {
  uint8_t memory[4][2 * MOST_LANES];
  hg_fault fault;
} outcome;

static outcome run(const draft *d, uint64_t lanes) {
  static uint8_t data[2 * MOST_LANES];
  outcome o = {.fault = {0}};
  char names[12][4];
  hg_binding bindings[8] = {0};
  hg_scalar scalars[4] = {0};
  hg_buffer *buffers[8];
  hg_kernel *kernel = kernel_of(d->text);
  for (unsigned i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 2654435761u >> 13);
  for (unsigned i = 0; i < 2 * d->type_count; i++) {
    unsigned t = i / 2;
    uint64_t size = lanes * (strstr(d->types[t], "16") != NULL ? 2 : 1);
    snprintf(names[i], sizeof names[i], "%c%u", i % 2 ? 'y' : 'a', t);
    buffers[i] = buffer_of(size, i % 2 ? NULL : data);
    bindings[i] = (hg_binding){.name = names[i], .buffer = buffers[i]};
  }
  for (unsigned t = 0; t < d->type_count; t++) {
    snprintf(names[8 + t], sizeof names[0], "k%u", t);
    int is_byte = strchr(d->types[t], '8') != NULL;
    uint8_t type = d->types[t][0] == 'u' ? (is_byte ? ATLAS_u8 : ATLAS_u16) : is_byte ? ATLAS_i8 : ATLAS_i16;
    scalars[t] = (hg_scalar){.name = names[8 + t], .type = type, .bits = is_byte ? 0x9d : 0xa53c};
  }
  hg_launch_desc desc = {.lanes = lanes, .bindings = bindings, .binding_count = 2 * d->type_count,
                         .scalars = scalars, .scalar_count = d->type_count};
  hg_launch_report report = {0};
  (void)hg_launch(kernel, &desc, &report); /* HG_FAULT, too */
  o.fault = report.fault;
  for (unsigned i = 0; i < 2 * d->type_count; i++) {
    if (i % 2) CHECK_EQ_U64(hg_buffer_read(buffers[i], 0, o.memory[i / 2],
                                           lanes * (strstr(d->types[i / 2], "16") != NULL ? 2 : 1)), HG_OK);
    hg_buffer_release(buffers[i]);
  }
  hg_kernel_release(kernel);
  return o;
}

int main(void) {
  static const uint64_t lanes[] = {1, 31, 63, 64, 65, 127, 128, 129, 200, 256, 257, 383, MOST_LANES};
  static draft d;
  open_both();
  for (unsigned number = 0; number < PROGRAMS; number++) {
    write_program(&d, number);
    for (size_t k = number % 3; k < COUNT(lanes); k += 3) {
      executor = reference;
      outcome expected = run(&d, lanes[k]);
      executor = tested;
      outcome got = run(&d, lanes[k]);
      check_same_fault(&got.fault, &expected.fault);
      int is_same = memcmp(got.memory, expected.memory, sizeof got.memory) == 0;
      CHECK(is_same);
      if (!is_same) printf("%u lanes:\n%s", (unsigned)lanes[k], d.text);
    }
  }
  close_both();
  return check_report();
}
