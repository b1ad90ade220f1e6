/* test_cuda.c - the CUDA backend's driver side on a double of libcuda: how it starts, what it refuses and says, the
 * driver's compiler, contexts that are lost, forks. */
#define _GNU_SOURCE
#include "counted.h"
#include "driver_functions.h"
#include "fake_gpu.h"

#include "backend/cuda/driver.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- what it refuses --------------------------------------------------------------------------------------------- */

/* What starts without a GPU goes on to the CPU, and says why; where CUDA is asked for its status is as listed. */
static void test_refusals(void) {
  static const struct {
    hg_status status;
    const char *name, *value, *sentence;
  } cases[] = {
      {HG_UNSUPPORTED, "FAKECUDA_DEVICES", "0",
       "the CUDA driver did not start: the driver finds no GPU; CUDA_VISIBLE_DEVICES may hide it "
       "(CUDA_ERROR_NO_DEVICE, 100)"},
      {HG_UNSUPPORTED, "FAKECUDA_DRIVER", "10020",
       "the NVIDIA driver is too old: it is for CUDA 10.2; install one for CUDA 11.0 or later"},
      {HG_UNSUPPORTED, "FAKECUDA_CAPABILITY", "61",
       "the GPU (Fake GPU 0) is too old: it has compute capability 6.1, and 7.5 is needed"},
      {HG_UNSUPPORTED, "FAKECUDA_MODE", "2",
       "the GPU (Fake GPU 0) is set to compute mode 'prohibited'; nvidia-smi -c changes it"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuInit:0=803",
       "the CUDA driver did not start: libcuda and the kernel's driver have different versions; restart the machine "
       "after an update of the driver (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuDevicePrimaryCtxRetain:0=46",
       "the GPU cannot be used now: the GPU is in use by another process in exclusive mode, or its compute mode "
       "forbids use; nvidia-smi shows the mode and the processes (CUDA_ERROR_DEVICE_UNAVAILABLE, 46)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuDevicePrimaryCtxRetain:0=2",
       "the GPU cannot be used now: the GPU's memory is full; release buffers, or free memory that other programs hold "
       "(CUDA_ERROR_OUT_OF_MEMORY, 2)"},
      {HG_DEVICE, "FAKECUDA_FAIL", "cuInit:0=999",
       "the CUDA driver did not start: the driver failed and does not know why; nvidia-smi and the system's log may "
       "say more (CUDA_ERROR_UNKNOWN, 999)"},
      {HG_OUT_OF_MEMORY, "FAKECUDA_FAIL", "cuInit:0=2",
       "the CUDA driver did not start: the GPU's memory is full; release buffers, or free memory that other programs "
       "hold (CUDA_ERROR_OUT_OF_MEMORY, 2)"},
      {HG_DEVICE, "FAKECUDA_FAIL", "cuInit:0=1",
       "the CUDA driver did not start: the driver refused an argument (CUDA_ERROR_INVALID_VALUE, 1)"},
      {HG_DEVICE, "FAKECUDA_FAIL", "cuInit:0=12345",
       "the CUDA driver did not start: the CUDA driver failed (unknown error, 12345)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuInit:0=36",
       "the CUDA driver did not start: the driver is too old for this call; install a newer one "
       "(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuInit:0=805",
       "the CUDA driver did not start: MPS cannot be reached; is nvidia-cuda-mps-control running, with the same "
       "CUDA_MPS_PIPE_DIRECTORY? (CUDA_ERROR_MPS_CONNECTION_FAILED, 805)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuDevicePrimaryCtxRetain:0=808",
       "the GPU cannot be used now: the GPU is busy: through MPS it takes no more programs; wait until one ends "
       "(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808)"},
      {HG_DEVICE, "FAKECUDA_FAIL", "cuDeviceGetCount:0=999",
       "could not count the GPUs: the driver failed and does not know why; nvidia-smi and the system's log may say "
       "more (CUDA_ERROR_UNKNOWN, 999)"},
      {HG_OUT_OF_MEMORY, "FAKECUDA_FAIL", "cuStreamCreate:0=2",
       "could not make a stream on the GPU: the GPU's memory is full; release buffers, or free memory that other "
       "programs hold (CUDA_ERROR_OUT_OF_MEMORY, 2)"},
      {HG_OUT_OF_MEMORY, "FAKECUDA_FAIL", "cuMemPoolCreate:0=2",
       "could not make a pool of memory on the GPU: the GPU's memory is full; release buffers, or free memory that "
       "other programs hold (CUDA_ERROR_OUT_OF_MEMORY, 2)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char expected[512], story[600];
    const char *missing = cases[i].status == HG_UNSUPPORTED ? "the cuda backend is not available: " : "";
    hg_executor *executor = NULL;
    set(cases[i].name, cases[i].value);
    CHECK_EQ_U64(open_gpu(&executor), cases[i].status);
    snprintf(expected, sizeof expected, "%s%s", missing, cases[i].sentence);
    CHECK_STR(hg_last_error(), expected);
    set(cases[i].name, NULL); /* a demand is counted anew */
    set(cases[i].name, cases[i].value);
    hg_executor_info info = {0};
    CHECK_EQ_U64(hg_executor_create(NULL, &executor), HG_OK); /* goes on to the CPU, and says why */
    CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
    CHECK_EQ_U64(info.backend, HG_BACKEND_CPU);
    snprintf(story, sizeof story,
             "metal: Metal is Apple's: this system has no Objective-C runtime with Metal; cuda: %s; cpu: chosen",
             cases[i].sentence);
    CHECK_STR(info.selection, story);
    hg_executor_release(executor);
    set(cases[i].name, NULL);
    CHECK_CLEAN();
  }
}

/* Errors that users meet have a name; after some a context is of no use. */
static void test_errors(void) {
  static const struct {
    int number, poisons;
  } known[] = {{36, 0},  {226, 1}, {704, 0}, {705, 0}, {805, 0}, {806, 0}, {807, 0},
               {808, 0}, {809, 0}, {810, 1}, {900, 0}, {901, 0}, {902, 0}, {903, 0},
               {904, 0}, {905, 0}, {906, 0}, {907, 0}, {908, 0}, {909, 0}, {911, 1}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    cuda_error error = hg_cuda_error_of(known[i].number);
    CHECK(strncmp(error.name, "CUDA_ERROR_", 11) == 0);
    CHECK_EQ_U64(error.poisons, known[i].poisons);
  }
  CHECK_STR(hg_cuda_error_of(12345).name, "unknown error");
}

/* Whatever the driver refuses, an executor is made. */
static void test_every_refusal(void) {
  static const int errors[] = {1, 2, 36, 999};
  for (size_t i = 0; i < 4 * (sizeof functions / sizeof functions[0]); i++) {
    char demand[120];
    hg_executor *executor = NULL;
    const char *name = functions[i / 4];
    if (strcmp(name, "cuDevicePrimaryCtxRelease_v2") == 0 || strcmp(name, "cuCtxPopCurrent_v2") == 0) continue;
    snprintf(demand, sizeof demand, "%s:0=%d", name, errors[i % 4]);
    set("FAKECUDA_FAIL", demand);
    CHECK_EQ_U64(hg_executor_create(NULL, &executor), HG_OK);
    hg_executor_release(executor);
    set("FAKECUDA_FAIL", NULL);
    CHECK_CLEAN();
  }
}

/* The host's memory is nothing that another backend would have more of. */
static void test_host_memory(void) {
  counter count = {.fail_at = 1};
  hg_allocator allocator = counting(&count);
  hg_executor_desc desc = {.allocator = &allocator};
  hg_executor *executor = NULL;
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OUT_OF_MEMORY);
  CHECK(strstr(hg_last_error(), " bytes for the CUDA device") != NULL);
  CHECK(executor == NULL && count.live == 0);
  CHECK_CLEAN();
}

static void test_device(void) {
  hg_executor *executor = NULL;
  hg_executor_info info = {0};
  hg_backend_info row = {0};
  CHECK_EQ_U64(hg_backend_query(1, &row), HG_OK);
  CHECK_EQ_U64(row.available, 1);
  CHECK_STR(row.reason, "Fake GPU 0 (compute capability 9.0, driver for CUDA 13.0)");
  CHECK_EQ_U64(gpu.live(), 0); /* asking opens nothing */
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
  CHECK_STR(info.backend_name, "cuda");
  CHECK_STR(info.device_name, "Fake GPU 0 (compute capability 9.0, driver for CUDA 13.0)");
  CHECK_EQ_U64(info.memory_bytes, 1 << 30);
  CHECK_EQ_U64(info.compute_units, 4);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

static void note_message(void *user, hg_log_level level, const char *message) {
  (void)level;
  if (strncmp(message, "cuda: ", 6) == 0) snprintf(user, 600, "%s", message);
}

/* What the log says of an executor's settings. */
static void check_remarks(const char *expected) {
  char message[600] = "";
  hg_executor_desc desc = {.backend = HG_BACKEND_CUDA, .log = note_message, .log_user = message};
  hg_executor *executor = NULL;
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  CHECK_STR(message, expected);
  hg_executor_release(executor);
}

static void test_remarks(void) {
  check_remarks("cuda: kernel cache on disk: its folder cannot be made");
  set("HOLOGRAM_CACHE", "0");
  check_remarks("cuda: kernel cache on disk: HOLOGRAM_CACHE=0 turns it off");
  set("HOLOGRAM_CACHE", NULL);
  set("HOLOGRAM_LINES", "7");
  set("HOLOGRAM_QUICK", "2");
  set("HOLOGRAM_TABLE_LANES", "z");
  set("HOLOGRAM_CACHE_SIZE", "abc");
  set("HOLOGRAM_CACHE_DIR", "/tmp");
  check_remarks("cuda: HOLOGRAM_LINES is neither 0 nor 1 and is ignored; "
                "HOLOGRAM_QUICK is neither 0 nor 1 and is ignored; "
                "HOLOGRAM_TABLE_LANES is no number from 1 and is ignored; "
                "HOLOGRAM_CACHE_SIZE is not a number of bytes and is ignored; kernel cache on disk: its folder belongs "
                "to another user or others may write to it, so that kernels in it are not safe to run");
  set("HOLOGRAM_LINES", NULL);
  set("HOLOGRAM_QUICK", NULL);
  set("HOLOGRAM_TABLE_LANES", NULL);
  set("HOLOGRAM_CACHE_SIZE", NULL);
  set("HOLOGRAM_CACHE_DIR", "here");
  check_remarks("");
  set("HOLOGRAM_CACHE_DIR", "/dev/null/none");
  CHECK_CLEAN();
}

/* ---- what the driver's compiler says, and is given --------------------------------------------------------------- */

static const char counting_text[] =
    ".program counting\n"
    ".buffer y u32 out\n"
    "    movi.u32 r0, #1\n"
    "    stg.u32 [y + lane], r0\n"
    "    res.accum.i64 #5, #1\n"
    "    exit\n";

static void test_compiler_message(void) {
  hg_executor *executor = NULL;
  hg_kernel *kernel = NULL;
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, counting_text, sizeof counting_text - 1, NULL, &program), HG_OK);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  set("FAKECUDA_FAIL", "cuLinkAddData_v2:1=218");
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_DEVICE);
  CHECK_STR(hg_last_error(), "the driver did not compile program 'counting' (its log: line 7: a fault on demand): the "
                             "driver's compiler refused the kernel (CUDA_ERROR_INVALID_PTX, 218)");
  CHECK(kernel == NULL);
  set("FAKECUDA_FAIL", NULL);
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
  hg_kernel_release(kernel);
  atlas_program_release(program);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* What a file has in it; the caller frees it. */
static char *contents_of(const char *path) {
  char *text = calloc(1, 1 << 16);
  FILE *file = fopen(path, "r");
  if (file != NULL) {
    CHECK(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
  }
  return text;
}

/* The text that the driver gets names the kernel after program and hash, and its lines if they are wanted. It is for
 * the GPU, or for an older one where the driver knows the GPU but not the PTX that is written for it. */
static void test_kernel_text(const char *lines, const char *driver, const char *target) {
  char path[] = "/tmp/test_cuda_XXXXXX", name[48];
  uint8_t hash[ATLAS_HASH_BYTES];
  atlas_program *program = NULL;
  hg_executor *executor = NULL;
  hg_kernel *kernel = NULL;
  int file = mkstemp(path);
  CHECK(file >= 0 && close(file) == 0);
  CHECK_EQ_U64(atlas_parse(NULL, counting_text, sizeof counting_text - 1, NULL, &program), HG_OK);
  CHECK_EQ_U64(atlas_program_hash(program, hash), HG_OK);
  set("HOLOGRAM_LINES", lines);
  set("FAKECUDA_DUMP", path);
  set("FAKECUDA_DRIVER", driver);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
  set("FAKECUDA_DRIVER", NULL);
  set("FAKECUDA_DUMP", NULL);
  set("HOLOGRAM_LINES", NULL);
  char *text = contents_of(path);
  snprintf(name, sizeof name, ".entry hg_counting_%02x%02x%02x%02x(", hash[0], hash[1], hash[2], hash[3]);
  CHECK(strstr(text, name) != NULL);
  CHECK(strstr(text, target) != NULL);
  CHECK((strstr(text, "\n.file 1 \"counting.atlas\"\n") != NULL) == (lines != NULL));
  CHECK((strstr(text, "\t.loc 1 5 0\n") != NULL) == (lines != NULL)); /* res.accum */
  free(text);
  unlink(path);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
  atlas_program_release(program);
  CHECK_CLEAN();
}

/* ---- the two ends of a device ------------------------------------------------------------------------------------ */

static void test_lost_context(void) {
  hg_executor *executor = NULL, *cpu = NULL, *fresh = NULL;
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  hg_buffer *buffer = NULL, *other = NULL;
  uint32_t value = 7;
  CHECK_EQ_U64(hg_executor_create(&desc, &cpu), HG_OK);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 64, &buffer), HG_OK);
  set("FAKECUDA_FAIL", "cuEventSynchronize:1=719");
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, &value, 4), HG_DEVICE);
  CHECK_STR(hg_last_error(), "a transfer, or a kernel before it, failed: a kernel failed while it ran "
                             "(CUDA_ERROR_LAUNCH_FAILED, 719)");
  set("FAKECUDA_FAIL", NULL);
  CHECK_EQ_U64(hg_buffer_write(buffer, 0, &value, 4), HG_DEVICE);
  CHECK_STR(hg_last_error(),
            "the GPU failed earlier, and this executor's memory on it is lost (a transfer, or a kernel before it, "
            "failed: a kernel failed while it ran (CUDA_ERROR_LAUNCH_FAILED, 719)); release all executors of this GPU, "
            "then make a new one, or a new process where another library has used the GPU");
  CHECK_EQ_U64(hg_buffer_create(cpu, NULL, 64, &other), HG_OK); /* the others live on */
  CHECK_EQ_U64(hg_buffer_write(other, 0, &value, 4), HG_OK);
  hg_buffer_release(other);
  hg_executor_release(cpu);
  hg_buffer_release(buffer);
  hg_executor_release(executor);
  CHECK_CLEAN();
  CHECK_EQ_U64(open_gpu(&fresh), HG_OK); /* and a new one works */
  CHECK_EQ_U64(hg_buffer_create(fresh, NULL, 64, &buffer), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(buffer, 0, &value, 4), HG_OK);
  hg_buffer_release(buffer);
  hg_executor_release(fresh);
  CHECK_CLEAN();
}

#define FORKED                                                                                                \
  "the CUDA driver did not start: this process was forked off one that had started the driver, if only by " \
  "hg_backend_query; fork before that, or exec (CUDA_ERROR_NOT_INITIALIZED, 3)"

static int succeeds_in_child(int (*run)(void)) {
  int status = -1;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) _exit(run());
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int use_gpu(void) {
  hg_executor *executor = NULL;
  int wrong = open_gpu(&executor) != HG_OK;
  hg_executor_release(executor);
  return wrong;
}

/* CUDA is refused, and nothing but the CPU is left. */
static int find_no_gpu(void) {
  hg_executor *executor = NULL;
  hg_executor_info info = {0};
  hg_backend_info row = {0};
  int wrong = open_gpu(&executor) != HG_UNSUPPORTED;
  wrong += strcmp(hg_last_error(), "the cuda backend is not available: " FORKED) != 0;
  wrong += hg_backend_query(1, &row) != HG_OK || row.available || strcmp(row.reason, FORKED) != 0;
  wrong += hg_executor_create(NULL, &executor) != HG_OK || hg_executor_query(executor, &info) != HG_OK;
  wrong += info.backend != HG_BACKEND_CPU || strstr(info.selection, "; cuda: " FORKED "; cpu: chosen") == NULL;
  hg_executor_release(executor);
  return wrong;
}

/* The first test: the driver has not been started yet. */
static void test_fork_and_query(void) {
  hg_backend_info row = {0};
  CHECK(succeeds_in_child(use_gpu));
  CHECK(hg_backend_query(1, &row) == HG_OK && row.available);
  CHECK(succeeds_in_child(find_no_gpu));
  CHECK(use_gpu() == 0);
  CHECK_CLEAN();
}

/* In the child: everything is refused, nothing is touched, releasing works. */
static int child(hg_executor *executor, hg_buffer *buffer) {
  uint32_t value = 0;
  hg_executor *fresh = NULL;
  int wrong = hg_buffer_read(buffer, 0, &value, 4) != HG_UNSUPPORTED;
  wrong += strncmp(hg_last_error(), "this CUDA executor was made before the process forked", 53) != 0;
  wrong += open_gpu(&fresh) != HG_UNSUPPORTED;
  wrong += strcmp(hg_last_error(), "the cuda backend is not available: " FORKED) != 0;
  hg_buffer_release(buffer);
  hg_executor_release(executor);
  return wrong + (gpu.violation()[0] != '\0');
}

static void test_fork(void) {
  hg_executor *executor = NULL;
  hg_buffer *buffer = NULL;
  uint32_t value = 5, back = 0;
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 64, &buffer), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(buffer, 0, &value, 4), HG_OK);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) _exit(child(executor, buffer));
  int status = -1;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  CHECK_EQ_U64(status, 0);
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, &back, 4), HG_OK);
  CHECK_EQ_U64(back, value);
  hg_buffer_release(buffer);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

int main(void) {
  if (!begin_on_fake_gpu()) return check_report();
  test_fork_and_query(); /* before anything has started the driver */
  test_refusals();
  test_errors();
  test_every_refusal();
  test_host_memory();
  test_device();
  test_remarks();
  test_compiler_message();
  test_kernel_text(NULL, "12000", ".version 8.0\n.target sm_90\n");
  test_kernel_text("1", "12000", ".version 8.0\n.target sm_90\n");
  test_kernel_text(NULL, "11080", ".version 7.0\n.target sm_80\n");
  test_lost_context();
  test_fork();
  return check_report();
}
