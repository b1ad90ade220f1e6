/* test_native.c - what the machine-code engine does with more values than registers, and what it asks of the system:
 * pages that may run, that go again, and that it may be refused. Its bits are tested with those of the other engines.
 */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "compiler/canon/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"
#include "environment.h"
#include "launching.h"
#include "vector/vector.h"

#include <stdarg.h>
#include <stdlib.h>
#if defined(__linux__)
#  include <dirent.h>
#  include <linux/filter.h>
#  include <linux/seccomp.h>
#  include <stddef.h>
#  include <sys/mman.h>
#  include <sys/prctl.h>
#  include <sys/syscall.h>
#  include <sys/wait.h>
#  include <unistd.h>
#endif

/* ---- a program of many values ------------------------------------------------------------------------------------ */

enum { VALUES = 60, WIDE = 20, PREDICATES = 14, LANES = 1000 };

typedef struct text {
  char bytes[16384];
  size_t count;
} text;

static void line(text *t, const char *format, ...) HG_PRINTF(2, 3);

static void line(text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  t->count += (size_t)vsnprintf(t->bytes + t->count, sizeof t->bytes - t->count, format, arguments);
  va_end(arguments);
}

/* A program of its own for each number, so that each is compiled. r0.. are u32, r100.. are u64, which take two
 * registers; all of them go around a loop, and all predicates across it.
 */
static const char *many_values(unsigned number) {
  static text t;
  t.count = 0;
  line(&t, ".program many_%u\n.buffer x u32 in\n.buffer y u64 out\n", number);
  for (int k = 0; k < VALUES; k++) line(&t, "ldg.u32 r%d, [x + lane + #%d]\n", k, k);
  for (int k = 0; k < WIDE; k++) line(&t, "cvt.u64.u32 r%d, r%d\n", 100 + k, 3 * k);
  for (int k = 0; k < PREDICATES; k++) line(&t, "set.lt.u32 p%d, r%d, #0x80000000\n", k, 2 * k + 1);
  line(&t, "and.u32 r90, r0, #7\nadd.u32 r90, r90, #1\nagain:\n");
  for (int k = 0; k < VALUES; k++) line(&t, "mad.u32 r%d, r%d, #33, r%d\n", k, k, (k + 1) % VALUES);
  for (int k = 0; k < WIDE; k++)
    line(&t, "mad.u64 r%d, r%d, #0x100000001, r%d\n", 100 + k, 100 + k, 100 + (k + 1) % WIDE);
  line(&t, "loop r90, again\nmovi.u64 r91, #7\n");
  for (int k = 0; k < PREDICATES; k++) line(&t, "sel.u32 r%d, p%d, r%d, #%d\n", k, k, k, k);
  for (int k = 0; k < VALUES; k++) line(&t, "cvt.u64.u32 r92, r%d\nmad.u64 r91, r91, #31, r92\n", k);
  for (int k = 0; k < WIDE; k++) line(&t, "mad.u64 r91, r91, #31, r%d\n", 100 + k);
  line(&t, "stg.u64 [y + lane], r91\nexit\n");
  return t.bytes;
}

/* The program on an engine; y has LANES elements. */
static hg_status run_many(const char *engine, uint64_t *y, hg_launch_report *report) {
  static uint32_t x[LANES + VALUES];
  hg_executor_desc desc = {.size = sizeof desc};
  hg_kernel *kernel = NULL;
  hg_buffer *in = NULL, *out = NULL;
  atlas_program *program = NULL;
  const char *source = many_values(0);
  for (uint32_t i = 0; i < COUNT(x); i++) x[i] = i * 2654435761u;
  set("HOLOGRAM_CPU_ENGINE", engine);
  hg_status status = hg_executor_create(&desc, &executor);
  if (status == HG_OK) status = atlas_parse(NULL, source, strlen(source), "many", &program);
  if (status == HG_OK) status = hg_kernel_create(executor, program, &kernel);
  if (status == HG_OK) status = hg_buffer_create(executor, NULL, sizeof x, &in);
  if (status == HG_OK) status = hg_buffer_create(executor, NULL, LANES * sizeof *y, &out);
  if (status == HG_OK) status = hg_buffer_write(in, 0, x, sizeof x);
  hg_binding bindings[2] = {{.name = "x", .buffer = in}, {.name = "y", .buffer = out}};
  hg_launch_desc launch = {.size = sizeof launch, .lanes = LANES, .bindings = bindings, .binding_count = 2};
  *report = (hg_launch_report){.size = sizeof *report};
  if (status == HG_OK) status = hg_launch(kernel, &launch, report);
  if (status == HG_OK) status = hg_buffer_read(out, 0, y, LANES * sizeof *y);
  hg_buffer_release(in);
  hg_buffer_release(out);
  hg_kernel_release(kernel);
  atlas_program_release(program);
  hg_executor_release(executor);
  executor = NULL;
  return status;
}

static void test_same_values(void) {
  static uint64_t expected[LANES], found[LANES];
  hg_launch_report report;
  CHECK_EQ_U64(run_many("interp", expected, &report), HG_OK);
  for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++) {
    set("HOLOGRAM_CPU_ISA", hg_cpu_isa_name((cpu_isa)isa));
    CHECK_EQ_U64(run_many("native", found, &report), HG_OK);
    CHECK(strncmp(report.engine, hg_native_target((cpu_isa)isa) != NULL ? "native " : "tile ", 5) == 0);
    CHECK(memcmp(found, expected, sizeof expected) == 0);
  }
  set("HOLOGRAM_CPU_ISA", "");
}

/* A name that no engine or instruction set has, however long it is, is refused and not passed over. */
static void test_bad_names(void) {
  static const char *const variables[] = {"HOLOGRAM_CPU_ENGINE", "HOLOGRAM_CPU_ISA"};
  char name[301], sentence[400];
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  for (size_t v = 0; v < COUNT(variables); v++)
    for (int is_long = 0; is_long < 2; is_long++) {
      const char *value = is_long ? name : "bogus";
      hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
      set("HOLOGRAM_CPU_ENGINE", v == 0 ? value : "native");
      set("HOLOGRAM_CPU_ISA", v == 1 ? value : "");
      CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_INVALID_ARGUMENT);
      snprintf(sentence, sizeof sentence, "%s is '%s'; expected ", variables[v], is_long ? "(too long)" : value);
      CHECK(strstr(hg_last_error(), sentence) != NULL);
    }
  set("HOLOGRAM_CPU_ENGINE", "native");
  set("HOLOGRAM_CPU_ISA", "");
}

/* ---- where values live ------------------------------------------------------------------------------------------- */

/* Homes lie in the registers that the target gives away, and in the frame without reaching past it. */
static void check_homes(const native_build *b, uint32_t kinds[NATIVE_ROW + 1]) {
  for (uint32_t r = 0; r <= b->vector->regs.count; r++) {
    const native_location *home = native_location_of(b, r);
    uint32_t pieces = (uint32_t)home->copies * home->parts, piece_bytes = home->is_mask ? 8 : b->target->vector_bytes;
    kinds[home->kind]++;
    for (uint32_t i = 0; i < pieces && home->kind == NATIVE_REGISTERS; i++) {
      uint32_t first = home->is_mask ? b->target->mask_first : 0;
      uint32_t count = home->is_mask ? b->target->mask_count : b->target->vector_count;
      CHECK(home->reg[i] >= first && home->reg[i] < first + count);
    }
    if (home->kind == NATIVE_SLOT) CHECK(home->offset + pieces * piece_bytes <= b->frame_bytes);
  }
  CHECK(b->frame_bytes <= NATIVE_MOST_FRAME_BYTES);
}

static void check_target(const native_target *target, const atlas_program *program, const hg_vector *vector) {
  native_build b = {.allocator = program->allocator, .target = target, .program = program, .vector = vector,
                    .steps.element_size = sizeof(native_step)};
  uint32_t kinds[NATIVE_ROW + 1] = {0};
  CHECK_EQ_U64(hg_native_plan(&b), HG_OK);
  if (b.locations != NULL) check_homes(&b, kinds);
  CHECK(kinds[NATIVE_REGISTERS] > 0);
  CHECK(kinds[NATIVE_SLOT] + kinds[NATIVE_ROW] >= (VALUES + WIDE) - 32u); /* no target has more registers */
  hg_release(&b.allocator, b.locations);
  hg_array_release(&b.allocator, &b.steps);
}

static void test_homes(void) {
  static const native_target *const targets[] = {&hg_native_avx512, &hg_native_avx2, &hg_native_neon};
  const char *source = many_values(0);
  atlas_program *program = NULL;
  ssa_unit unit;
  hg_vector vector = {0};
  CHECK_EQ_U64(atlas_parse(NULL, source, strlen(source), "many", &program), HG_OK);
  if (program == NULL) return;
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_expand(&unit, NULL);
  if (status == HG_OK) status = hg_optimise(program, &unit, NULL);
  if (status == HG_OK) status = hg_vectorise(program, &unit, &vector);
  CHECK_EQ_U64(status, HG_OK);
  for (size_t i = 0; i < COUNT(targets) && status == HG_OK; i++) check_target(targets[i], program, &vector);
  if (status == HG_OK) hg_vector_release(&vector);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

/* ---- what the system gives --------------------------------------------------------------------------------------- */

#if defined(__linux__)

static unsigned count_threads(void) {
  unsigned count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) count += task->d_name[0] != '.';
  if (tasks != NULL) closedir(tasks);
  return count;
}

/* Launches that are worth it are spread over threads, and leave what one thread would. To be called before any other
 * launch. */
static void test_threads(void) {
  enum { MANY = 1 << 20, LAUNCHES = 16 };
  hg_executor_desc desc = {.size = sizeof desc, .backend = HG_BACKEND_CPU};
  hg_buffer *y = NULL;
  set("HOLOGRAM_CPU_ENGINE", "native");
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  hg_kernel *kernel = kernel_of(".program spread\n.buffer y u64 out\nmul.u64 r0, lane, lane\nxor.u64 r0, r0, lane\n"
                                "mul.u64 r0, r0, r0\nstg.u64 [y + lane], r0\nexit\n");
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, MANY * sizeof(uint64_t), &y), HG_OK);
  hg_binding binding = {.name = "y", .buffer = y};
  hg_launch_desc launch = {.size = sizeof launch, .lanes = MANY, .bindings = &binding, .binding_count = 1};
  unsigned before = count_threads();
  for (int i = 0; i < LAUNCHES; i++) CHECK_EQ_U64(hg_launch(kernel, &launch, NULL), HG_OK);
  CHECK(count_threads() > before);
  void *memory = NULL;
  CHECK_EQ_U64(hg_buffer_map(y, &memory), HG_OK);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < MANY; i++) wrong += ((const uint64_t *)memory)[i] != ((i * i) ^ i) * ((i * i) ^ i);
  CHECK_EQ_U64(wrong, 0);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
  executor = NULL;
}

/* A test in a process of its own: what it does to that does not last. */
static void in_child(void (*body)(void)) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    unsigned long before = check_failed;
    alarm(60);
    body();
    fflush(stdout);
    _exit(check_failed != before);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0) continue;
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Bytes of memory without a file behind it that may run; *holds: whether `address` is in it. */
static uint64_t runnable_bytes(uint64_t address, int *holds) {
  FILE *file = fopen("/proc/self/maps", "r");
  unsigned long long first, end, inode;
  char row[512], rights[8];
  uint64_t bytes = 0;
  *holds = 0;
  while (file != NULL && fgets(row, sizeof row, file) != NULL) {
    if (sscanf(row, "%llx-%llx %7s %*s %*s %llu", &first, &end, rights, &inode) != 4) continue;
    CHECK(strchr(rights, 'x') == NULL || strchr(rights, 'w') == NULL); /* never both */
    if (inode != 0 || strchr(rights, 'x') == NULL || strchr(row, '[') != NULL) continue;
    bytes += end - first;
    *holds |= address >= first && address < end;
  }
  if (file != NULL) fclose(file);
  return bytes;
}

static void check_pages(void) {
  enum { KERNELS = 20 };
  hg_executor_desc desc = {.size = sizeof desc};
  hg_kernel *kernels[KERNELS];
  int holds;
  set("HOLOGRAM_CPU_ENGINE", "native");
  uint64_t before = runnable_bytes(0, &holds);
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  for (unsigned k = 0; k < KERNELS; k++) kernels[k] = kernel_of(many_values(k));
  CHECK(runnable_bytes(0, &holds) >= before + KERNELS * 4096u);
  for (int k = 0; k < KERNELS; k++) hg_kernel_release(kernels[k]);
  hg_executor_release(executor);
  CHECK_EQ_U64(runnable_bytes(0, &holds), before);
}

/* The line that names a kernel's code for perf. */
static void check_perf_map(void) {
  char path[64], row[256];
  unsigned long long address = 0, bytes = 0;
  int holds = 0, named = 0;
  hg_executor_desc desc = {.size = sizeof desc};
  snprintf(path, sizeof path, "/tmp/perf-%lu.map", (unsigned long)getpid());
  set("HOLOGRAM_CPU_ENGINE", "native");
  set("HOLOGRAM_PERF_MAP", "1");
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  hg_kernel *kernel = kernel_of(many_values(0));
  FILE *file = fopen(path, "r");
  CHECK(file != NULL);
  while (file != NULL && fgets(row, sizeof row, file) != NULL)
    named += strstr(row, "hologram:many") != NULL && sscanf(row, "%llx %llx", &address, &bytes) == 2;
  if (file != NULL) fclose(file);
  CHECK_EQ_U64(named, 1);
  CHECK(bytes > 0);
  runnable_bytes(address + bytes - 1, &holds);
  CHECK(holds);
  unlink(path);
  CHECK(symlink("perf-victim-of-hologram", path) == 0); /* another user's: what it leads to is not touched */
  hg_kernel_release(kernel);
  kernel = kernel_of(many_values(1));
  CHECK(access("/tmp/perf-victim-of-hologram", F_OK) != 0);
  unlink(path);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
}

/* From now on no memory of this process becomes executable. 0 where the kernel does not do that. */
static int refuse_execution(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])), /* its low half: little-endian */
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 13 /* EACCES */),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {COUNT(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void check_refused(void) {
  static uint64_t expected[LANES], found[LANES];
  hg_launch_report report;
  CHECK_EQ_U64(run_many("interp", expected, &report), HG_OK);
  if (!refuse_execution()) {
    printf("left out: this kernel has no system call filters\n");
    return;
  }
  CHECK_EQ_U64(run_many("native", found, &report), HG_OK);
  CHECK(strncmp(report.engine, "tile ", 5) == 0);
  CHECK(memcmp(found, expected, sizeof expected) == 0);
}

static void test_system(void) {
  if (hg_native_target(hg_cpu_isa_best()) == NULL) {
    printf("left out: no machine code for this processor\n");
    return;
  }
  in_child(check_pages);
  in_child(check_perf_map);
  in_child(check_refused);
}

#else
static void test_threads(void) { printf("left out: how this system counts its threads is not known here\n"); }
static void test_system(void) { printf("left out: how this system keeps its pages is not known here\n"); }
#endif

int main(void) {
  set("HOLOGRAM_NUM_THREADS", "2");
  test_threads();
  test_same_values();
  test_bad_names();
  test_homes();
  test_system();
  return check_report();
}
