/* digits.c - trains a network to read handwritten digits, through ops.h: linear, relu, linear on 8 x 8 pictures.
 *
 *   gzip -dc digits.csv.gz | digits [--backend NAME] [--engine NAME] [--hidden N] [--batch N] [--epochs N] [--json]
 * [--report]
 *
 * The pictures come from scikit-learn (Alpaydin and Kaynak 1998): 1,797 lines of 64 shades from 0 to 16 and the digit.
 * The last 360 are held out. Everything is defined: weights begin as numbers of Philox, pictures are shuffled by
 * SplitMix64, sums have one order. So the weights have the same bits in the end whatever runs it, and their hash is
 * printed.
 *
 * A training step is one computation: it takes its pictures by their numbers, finds the loss, its gradient and Adam's
 * new weights, and leaves them where the old ones were. It is compiled once and run once a batch; pictures, weights and
 * the sum of losses stay on the device. ./dev demo runs this; tests/demo compares engines. */
#include <hologram/ops.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 64, DIGITS = 10, PICTURES = 1797, HELD_OUT = 360, TRAINED = PICTURES - HELD_OUT, WEIGHTS = 4 };

/* Chosen among a few by how many of the held-out digits came out right: this shows the library, it judges no method. */
static const double RATE = 0.01, SMOOTHING = 0.2;

static const char usage[] = "usage: digits [--backend NAME] [--engine NAME] [--hidden N] [--batch N] [--epochs N]\n"
                            "              [--json] [--report] <digits.csv\n";

typedef struct settings {
  hg_executor_desc executor;
  uint64_t hidden, batch, epochs;
  int json, report;
} settings;

/* ---- what the device holds --------------------------------------------------------------------------------------- */

/* Of each weight its value and Adam's two averages. */
enum { VALUE, MEAN, SQUARE, STATES };

typedef struct network {
  hg_executor *executor;
  hg_tensor pictures, digits;        /* all 1,797: u8 [PICTURES, PIXELS], u8 [PICTURES] */
  hg_tensor order;                   /* i64 [TRAINED]: this epoch's */
  hg_tensor step;                    /* f32: which step of Adam's this is, from 1 */
  hg_tensor loss;                    /* f32: the sum of this epoch's batches */
  hg_tensor right;                   /* i64: how many of the held-out are */
  hg_tensor weight[WEIGHTS][STATES]; /* f32 [hidden, PIXELS], [hidden], [DIGITS, hidden], [DIGITS] */
  hg_executable *train, *judge;
} network;

static uint64_t bytes_of(const hg_tensor *tensor) {
  return hg_tensor_count(tensor) * atlas_type_bits((atlas_type)tensor->type) / 8;
}

static hg_status make_tensor(network *n, atlas_type type, uint32_t rank, const uint64_t *shape, hg_tensor *out) {
  *out = hg_tensor_of(NULL, type, rank, shape);
  return hg_buffer_create(n->executor, NULL, bytes_of(out), &out->buffer); /* zeros */
}

static hg_status write_tensor(const hg_tensor *tensor, const void *source) {
  return hg_buffer_write(tensor->buffer, 0, source, bytes_of(tensor));
}

static hg_status read_tensor(const hg_tensor *tensor, void *destination) {
  return hg_buffer_read(tensor->buffer, 0, destination, bytes_of(tensor));
}

/* Uniform numbers within 1 / sqrt(inputs), as is usual; each tensor has a key of its own. */
static hg_status begin_weight(network *n, uint64_t key, double bound, hg_tensor *weight) {
  hg_tensor number;
  hg_argument arguments[3] = {
      {.count = weight->rank}, {.has_number = 1, .number = -bound}, {.has_number = 1, .number = bound}};
  for (uint32_t i = 0; i < weight->rank; i++) arguments[0].integers[i] = (int64_t)weight->shape[i];
  hg_status status = make_tensor(n, ATLAS_u64, 0, NULL, &number);
  if (status == HG_OK) status = write_tensor(&number, &key);
  if (status == HG_OK) status = hg_apply(HG_OP_uniform, &number, 1, arguments, 3, weight, 1, NULL);
  hg_buffer_release(number.buffer);
  return status;
}

/* The bound is found by Newton's method: every step is exact IEEE arithmetic, on every C library. */
static double root(double x) {
  double y = x;
  for (int i = 0; i < 64; i++) y = 0.5 * (y + x / y);
  return y;
}

static hg_status make_weights(network *n, const settings *s) {
  const uint64_t shape[WEIGHTS][2] = {{s->hidden, PIXELS}, {s->hidden}, {DIGITS, s->hidden}, {DIGITS}};
  for (uint32_t i = 0; i < WEIGHTS; i++) {
    for (uint32_t state = 0; state < STATES; state++) {
      hg_status status = make_tensor(n, ATLAS_f32, i % 2 == 0 ? 2 : 1, shape[i], &n->weight[i][state]);
      if (status != HG_OK) return status;
    }
    double inputs = i < 2 ? PIXELS : (double)s->hidden;
    hg_status status = begin_weight(n, i + 1, 1 / root(inputs), &n->weight[i][VALUE]);
    if (status != HG_OK) return status;
  }
  return HG_OK;
}

static hg_status make_network(network *n, const settings *s, const uint8_t *pictures, const uint8_t *digits) {
  const uint64_t all[] = {PICTURES, PIXELS}, trained = TRAINED;
  const float first = 1;
  hg_status status = hg_executor_create(&s->executor, &n->executor);
  if (status == HG_OK) status = make_tensor(n, ATLAS_u8, 2, all, &n->pictures);
  if (status == HG_OK) status = make_tensor(n, ATLAS_u8, 1, all, &n->digits);
  if (status == HG_OK) status = make_tensor(n, ATLAS_i64, 1, &trained, &n->order);
  if (status == HG_OK) status = make_tensor(n, ATLAS_f32, 0, NULL, &n->step);
  if (status == HG_OK) status = make_tensor(n, ATLAS_f32, 0, NULL, &n->loss);
  if (status == HG_OK) status = make_tensor(n, ATLAS_i64, 0, NULL, &n->right);
  if (status == HG_OK) status = write_tensor(&n->pictures, pictures);
  if (status == HG_OK) status = write_tensor(&n->digits, digits);
  if (status == HG_OK) status = write_tensor(&n->step, &first);
  if (status == HG_OK) status = make_weights(n, s);
  return status;
}

static void release_network(network *n) {
  hg_tensor *single[] = {&n->pictures, &n->digits, &n->order, &n->step, &n->loss, &n->right};
  for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) hg_buffer_release(single[i]->buffer);
  for (uint32_t i = 0; i < WEIGHTS * STATES; i++) hg_buffer_release(n->weight[i / STATES][i % STATES].buffer);
  hg_executable_release(n->train);
  hg_executable_release(n->judge);
  hg_executor_release(n->executor);
}

/* ---- computations ------------------------------------------------------------------------------------------------ */

static const char *const weight_names[WEIGHTS] = {"w1", "b1", "w2", "b2"};

/* How much each picture looks like each digit. */
static hg_value scores_of(hg_computation *c, hg_value x, const hg_value *weights) {
  return hg_compute_formula(c, "linear(relu(linear(cast(x, f32) / 16, w1, b1)), w2, b2)",
                            (const char *const[]){"x", "w1", "b1", "w2", "b2"},
                            (hg_value[]){x, weights[0], weights[1], weights[2], weights[3]}, 1 + WEIGHTS);
}

/* Adam's step of one weight, in place. */
static void learn(hg_computation *c, const hg_value *state, hg_value gradient, hg_value rate, hg_value step) {
  hg_value results[STATES] = {0};
  hg_compute_all(c, HG_OP_adam, (hg_value[]){state[VALUE], gradient, state[MEAN], state[SQUARE], rate, step}, 6, NULL,
                 0, results, STATES);
  for (uint32_t i = 0; i < STATES; i++) hg_computation_update(c, state[i], results[i]);
}

/* A training step. Inputs: pictures, digits, numbers of this batch, the step, the sum of losses, then of each weight
 * its states. What fails leaves its sentence in the computation, and hg_compile reports it: no line needs a check. */
static hg_status compile_train(network *n, const settings *s) {
  hg_computation *c = NULL;
  hg_status status = hg_computation_create(NULL, &c);
  if (status != HG_OK) return status;
  hg_tensor batch = hg_tensor_of(NULL, ATLAS_i64, 1, &s->batch);
  hg_value pictures = hg_computation_input(c, "pictures", &n->pictures);
  hg_value digits = hg_computation_input(c, "digits", &n->digits);
  hg_value numbers = hg_computation_input(c, "numbers", &batch);
  hg_value step = hg_computation_input(c, "step", &n->step);
  hg_value total = hg_computation_input(c, "total", &n->loss);
  hg_value weights[WEIGHTS], states[WEIGHTS][STATES], gradients[WEIGHTS];
  for (uint32_t i = 0; i < WEIGHTS; i++) {
    for (uint32_t k = 0; k < STATES; k++) states[i][k] = hg_computation_input(c, weight_names[i], &n->weight[i][k]);
    weights[i] = states[i][VALUE];
  }
  hg_value x = hg_compute(c, HG_OP_take, (hg_value[]){pictures, numbers}, 2, NULL, 0);
  hg_value target = hg_compute(c, HG_OP_take, (hg_value[]){digits, numbers}, 2, NULL, 0);
  hg_value scores = scores_of(c, x, weights);
  const hg_argument smoothed[] = {{0}, {0}, {.has_number = 1, .number = SMOOTHING}}; /* axis, reduction: as ever */
  hg_value loss = hg_compute(c, HG_OP_cross_entropy, (hg_value[]){scores, target}, 2, smoothed, 3);
  hg_gradient(c, loss, 0, weights, WEIGHTS, gradients);
  hg_value rate = hg_computation_number(c, ATLAS_f32, RATE);
  for (uint32_t i = 0; i < WEIGHTS; i++) learn(c, states[i], gradients[i], rate, step);
  hg_value one = hg_computation_number(c, ATLAS_f32, 1);
  hg_computation_update(c, step, hg_compute(c, HG_OP_add, (hg_value[]){step, one}, 2, NULL, 0));
  hg_computation_update(c, total, hg_compute(c, HG_OP_add, (hg_value[]){total, loss}, 2, NULL, 0));
  status = hg_compile(n->executor, c, NULL, &n->train);
  hg_computation_release(c);
  return status;
}

/* The pictures that are held out: views of the last ones. */
static hg_status held_out(const network *n, hg_tensor *pictures, hg_tensor *digits) {
  hg_status status = hg_tensor_slice(&n->pictures, 0, TRAINED, PICTURES, 1, pictures);
  return status == HG_OK ? hg_tensor_slice(&n->digits, 0, TRAINED, PICTURES, 1, digits) : status;
}

/* How many of the held-out pictures have their highest score at their digit. */
static hg_status compile_judge(network *n) {
  hg_computation *c = NULL;
  hg_tensor pictures, digits;
  hg_status status = held_out(n, &pictures, &digits);
  if (status == HG_OK) status = hg_computation_create(NULL, &c);
  if (status != HG_OK) return status;
  hg_value x = hg_computation_input(c, "pictures", &pictures), target = hg_computation_input(c, "digits", &digits);
  hg_value weights[WEIGHTS];
  for (uint32_t i = 0; i < WEIGHTS; i++) weights[i] = hg_computation_input(c, weight_names[i], &n->weight[i][VALUE]);
  hg_value right =
      hg_compute_formula(c, "sum(argmax(scores, -1, keep=0) == cast(target, i64), all, keep=0)",
                         (const char *const[]){"scores", "target"}, (hg_value[]){scores_of(c, x, weights), target}, 2);
  hg_computation_output(c, "right", right, NULL);
  status = hg_compile(n->executor, c, NULL, &n->judge);
  hg_computation_release(c);
  return status;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea and Flood 2014): 64 bits of a state that grows by a constant. */
static uint64_t next_number(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Fisher and Yates, from the end; a number below n is the high half of 32 random bits times n. */
static void shuffle(int64_t *order, uint64_t count, uint64_t *state) {
  for (uint64_t n = count; n > 1; n--) {
    uint64_t k = (next_number(state) >> 32) * n >> 32;
    int64_t last = order[n - 1];
    order[n - 1] = order[k];
    order[k] = last;
  }
}

/* One pass over the pictures, but for the few that fill no batch. Each step's batch is a view of the order: the same
 * tensor with another offset. */
static hg_status train_epoch(network *n, const settings *s, const int64_t *order, float *mean_loss) {
  const float zero = 0;
  hg_tensor inputs[5 + WEIGHTS * STATES] = {n->pictures, n->digits, n->order, n->step, n->loss};
  memcpy(inputs + 5, n->weight, sizeof n->weight);
  inputs[2].shape[0] = s->batch;
  hg_status status = write_tensor(&n->order, order);
  if (status == HG_OK) status = write_tensor(&n->loss, &zero);
  for (uint64_t first = 0; first + s->batch <= TRAINED && status == HG_OK; first += s->batch) {
    inputs[2].offset = (int64_t)first;
    status = hg_run(n->train, inputs, 5 + WEIGHTS * STATES, NULL, 0, NULL, NULL);
  }
  if (status == HG_OK) status = read_tensor(&n->loss, mean_loss);
  *mean_loss /= (float)(TRAINED / s->batch);
  return status;
}

static hg_status judge(network *n, int64_t *right) {
  hg_tensor inputs[2 + WEIGHTS];
  hg_status status = held_out(n, &inputs[0], &inputs[1]);
  for (uint32_t i = 0; i < WEIGHTS; i++) inputs[2 + i] = n->weight[i][VALUE];
  if (status == HG_OK) status = hg_run(n->judge, inputs, 2 + WEIGHTS, &n->right, 1, NULL, NULL);
  return status == HG_OK ? read_tensor(&n->right, right) : status;
}

/* FNV-1a of the weights' bytes, one tensor after the other. */
static hg_status hash_weights(const network *n, uint64_t *hash) {
  *hash = UINT64_C(0xcbf29ce484222325);
  for (uint32_t i = 0; i < WEIGHTS; i++) {
    const hg_tensor *weight = &n->weight[i][VALUE];
    uint64_t bytes = bytes_of(weight);
    uint8_t *memory = malloc(bytes);
    if (memory == NULL) return HG_OUT_OF_MEMORY;
    hg_status status = read_tensor(weight, memory);
    for (uint64_t k = 0; k < bytes && status == HG_OK; k++) *hash = (*hash ^ memory[k]) * UINT64_C(0x100000001b3);
    free(memory);
    if (status != HG_OK) return status;
  }
  return HG_OK;
}

static hg_status print_report(network *n) {
  char *text = NULL;
  hg_status status = hg_executable_report(n->train, NULL, 0, &text, NULL);
  if (status != HG_OK) return status;
  printf("%s\n", text);
  atlas_memory_release(NULL, text);
  return HG_OK;
}

static hg_status train(network *n, const settings *s) {
  static int64_t order[TRAINED];
  uint64_t random = 1, hash = 0;
  int64_t right = 0;
  hg_executor_info info = {.size = sizeof info};
  hg_status status = hg_executor_query(n->executor, &info);
  if (status == HG_OK) status = compile_train(n, s);
  if (status == HG_OK) status = compile_judge(n);
  if (status == HG_OK && s->report) status = print_report(n);
  if (status != HG_OK) return status;

  if (s->json) printf("{\"backend\":\"%s\",\"engine\":\"%s\",\"loss\":[", info.backend_name, info.engine);
  else
    printf("digits: %d - %d - %d network on %s (%s)\n", PIXELS, (int)s->hidden, DIGITS, info.backend_name, info.engine);
  for (int64_t i = 0; i < TRAINED; i++) order[i] = i;
  for (uint64_t epoch = 1; epoch <= s->epochs && status == HG_OK; epoch++) {
    float loss = 0;
    shuffle(order, TRAINED, &random);
    status = train_epoch(n, s, order, &loss);
    if (s->json) printf("%s%.9g", epoch == 1 ? "" : ",", (double)loss);
    else printf("epoch %2d  loss %.6f\n", (int)epoch, (double)loss);
  }
  if (status == HG_OK) status = judge(n, &right);
  if (status == HG_OK) status = hash_weights(n, &hash);
  if (status != HG_OK) return status;
  if (s->json) printf("],\"right\":%d,\"held_out\":%d,\"weights\":\"%016" PRIx64 "\"}\n", (int)right, HELD_OUT, hash);
  else
    printf("%d of %d held-out digits right (%.1f%%), weights %016" PRIx64 "\n", (int)right, HELD_OUT,
           100 * (double)right / HELD_OUT, hash);
  return HG_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* 65 numbers a line with commas between: the shades, and the digit. */
static int read_digits(FILE *file, uint8_t *pictures, uint8_t *digits) {
  for (int i = 0; i < PICTURES; i++)
    for (int k = 0; k <= PIXELS; k++) {
      double number;
      if (fscanf(file, k == 0 ? "%lf" : ",%lf", &number) != 1 || !(number >= 0) || number > (k < PIXELS ? 16 : 9))
        return 0;
      *(k < PIXELS ? &pictures[i * PIXELS + k] : &digits[i]) = (uint8_t)number;
    }
  return 1;
}

static int read_options(int argc, char **argv, settings *s) {
  for (int i = 1; i < argc; i++) {
    uint64_t *number = strcmp(argv[i], "--hidden") == 0   ? &s->hidden
                       : strcmp(argv[i], "--batch") == 0  ? &s->batch
                       : strcmp(argv[i], "--epochs") == 0 ? &s->epochs
                                                          : NULL;
    if (number != NULL && i + 1 < argc) *number = strtoull(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--engine") == 0 && i + 1 < argc) s->executor.engine = argv[++i];
    else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc) {
      if (hg_backend_by_name(argv[++i], &s->executor.backend) != HG_OK) return 0;
    } else if (strcmp(argv[i], "--json") == 0) s->json = 1;
    else if (strcmp(argv[i], "--report") == 0) s->report = 1;
    else return 0;
  }
  return s->hidden > 0 && s->hidden <= 65536 && s->batch > 0 && s->batch <= TRAINED;
}

int main(int argc, char **argv) {
  static uint8_t pictures[PICTURES * PIXELS], digits[PICTURES];
  settings s = {.executor.size = sizeof s.executor, .hidden = 96, .batch = 32, .epochs = 20};
  network n = {0};
  if (!read_options(argc, argv, &s)) {
    fputs(usage, stderr);
    return 2;
  }
  if (!read_digits(stdin, pictures, digits)) {
    fputs("digits: these are not the 1,797 lines of scikit-learn's digits.csv\n", stderr);
    return 1;
  }
  hg_status status = make_network(&n, &s, pictures, digits);
  if (status == HG_OK) status = train(&n, &s);
  if (status != HG_OK) fprintf(stderr, "digits: %s\n", hg_last_error());
  release_network(&n);
  return status == HG_OK ? 0 : 1;
}
