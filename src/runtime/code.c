/* code.c - compiled code, which kernels of one executor share: a program is compiled once, also when several threads
 * create a kernel of it at the same time.
 *
 * The key is the canonical program and all that a fault or a profiler says of the text: the names of the program and of
 * its symbols, and for each canonical instruction its number and line in the text. So programs that differ only in
 * these are compiled separately, to the same machine code.
 *
 * A program whose very text was compiled before is found by that, without making its canonical form: so are the
 * launches of operations on new shapes.
 *
 * If a compilation fails, all threads that wait for it get its sentence; later calls try again. */
#include "runtime/runtime.h"

#include "atlas/program.h"
#include "base/sha256.h"
#include "compiler/canon/canon.h"

#include <string.h>

/* ---- what launches must know ------------------------------------------------------------------------------------- */

enum { TABLE_ENTRY_ALIGNMENT = 8, POOL_ALIGNMENT = 16 };

static hg_parameter parameter_of(const atlas_symbol *symbol, int is_only_elements) {
  uint8_t bytes = (uint8_t)atlas_bytes((atlas_type)symbol->type);
  switch (symbol->kind) {
  case ATLAS_SYMBOL_BUFFER:
    return (hg_parameter){.is_memory = 1, .is_required = 1, .is_written = symbol->access != ATLAS_IN,
                          .alignment = bytes, .element_bytes = is_only_elements ? bytes : 0};
  case ATLAS_SYMBOL_TABLE:
    return (hg_parameter){.is_memory = 1, .is_table = 1, .is_written = symbol->access != ATLAS_IN,
                          .alignment = TABLE_ENTRY_ALIGNMENT};
  case ATLAS_SYMBOL_POOL:
    return (hg_parameter){.is_memory = 1, .is_required = 1, .is_written = 1, .alignment = POOL_ALIGNMENT};
  default: return (hg_parameter){.is_required = symbol->kind == ATLAS_SYMBOL_SCALAR};
  }
}

/* Reads the canonical program, so that dead code in the text does not count. */
static void note_needs(hg_needs *needs, const atlas_program *program, const ssa_unit *unit) {
  for (size_t s = 0; s < program->symbols.count; s++) {
    needs->parameters[s] = parameter_of(atlas_symbol_at(program, s), !(unit->other_forms[s / 64] >> s % 64 & 1));
    needs->has_tables |= needs->parameters[s].is_table;
  }
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    for (uint32_t e = ssa_block_at(unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next) {
      const ssa_insn *insn = ssa_insn_at(unit, e);
      int is_access =
          (atlas_op_lookup(insn->op)->flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != 0;
      if (insn->op == ATLAS_OP_res_accum) needs->uses_resonance = 1;
      if (insn->op == ATLAS_OP_phase_adv) needs->advances_phase = 1;
      if (is_access && insn->mode == ATLAS_ADDRESS_PHI) needs->uses_boundary = 1;
    }
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* Only a fast contraction is compiled for its sizes. */
static hg_code_kind kind_of(const hg_contraction *contraction) {
  if (contraction == NULL) return HG_CODE_PROGRAM;
  return contraction->is_fast ? HG_CODE_FAST : HG_CODE_CONTRACTION;
}

static void add_name(hg_sha256 *hash, const char *name) { hg_sha256_add(hash, name, strlen(name) + 1); }

/* Only what distinguishes codes, because hashing takes a few percent of the time to make a small kernel. */
static void compute_key(const hg_compile_input *input, uint8_t key[HG_SHA256_BYTES]) {
  const atlas_program *program = input->program;
  const ssa_unit *unit = input->unit;
  const uint64_t counts[3] = {unit->insns.count, unit->blocks.count, program->insns.count};
  hg_sha256 hash;
  hg_sha256_begin(&hash);
  hg_sha256_add(&hash, input->hash, sizeof input->hash);
  hg_sha256_add(&hash, counts, sizeof counts);
  add_name(&hash, program->name);
  for (size_t s = 0; s < program->symbols.count; s++) add_name(&hash, atlas_symbol_at(program, s)->name);
  for (uint32_t v = 0; v < unit->insns.count; v++)
    hg_sha256_add(&hash, &ssa_insn_at(unit, v)->insn, sizeof(uint32_t));
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    hg_sha256_add(&hash, &ssa_block_at(unit, b)->insn, sizeof(uint32_t));
  for (uint32_t i = 0; i < program->insns.count; i++)
    hg_sha256_add(&hash, &atlas_insn_at(program, i)->line, sizeof(uint32_t));
  const uint8_t kind = (uint8_t)kind_of(input->contraction);
  hg_sha256_add(&hash, &kind, sizeof kind);
  if (kind == HG_CODE_FAST) hg_sha256_add(&hash, input->contraction, sizeof *input->contraction);
  hg_sha256_end(&hash, key);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static hg_code **bucket_of(hg_executor *executor, const uint8_t *key) {
  uint32_t number;
  memcpy(&number, key, sizeof number);
  return &executor->codes[number % executor->code_buckets];
}

static hg_code **texts_of(hg_executor *executor, uint64_t digest) {
  return &executor->codes[executor->code_buckets + digest % executor->code_buckets];
}

/* Fast contractions of all sizes have few texts, so one of each text is in the list. */
static int has_text(const hg_code *list, const hg_code *code) {
  while (list != NULL && (list->digest != code->digest || list->kind != code->kind)) list = list->next_text;
  return list != NULL;
}

static void link_locked(hg_executor *executor, hg_code *code) {
  hg_code **bucket = bucket_of(executor, code->key), **texts = texts_of(executor, code->digest);
  code->next = *bucket;
  *bucket = code;
  code->next_text = NULL;
  if (code->kind == HG_CODE_FAST && has_text(*texts, code)) return;
  code->next_text = *texts;
  *texts = code;
}

/* Leaves out a compilation that the parent process had begun before a fork: it never ends in this process. */
static hg_code *find_locked(hg_executor *executor, const uint8_t *key) {
  hg_code *code = *bucket_of(executor, key);
  while (code != NULL && memcmp(code->key, key, sizeof code->key) != 0) code = code->next;
  if (code == NULL || atomic_load(&code->state) != HG_MAKING || code->process == hg_process_id()) return code;
  return NULL;
}

/* More lists if there are more codes than lists. Without memory for them, the old ones stay. */
static void grow_locked(hg_executor *executor) {
  uint32_t before = executor->code_buckets;
  hg_code **lists = executor->codes;
  hg_code **more = hg_allocate(&executor->allocator, UINT64_C(8) * before, sizeof(hg_code *));
  if (more == NULL) return;
  executor->codes = more;
  executor->code_buckets = 4 * before;
  for (uint32_t i = 0; i < before; i++)
    for (hg_code *code = lists[i], *next; code != NULL; code = next) {
      next = code->next;
      link_locked(executor, code);
    }
  if (lists != executor->few_codes) hg_release(&executor->allocator, lists);
}

static void insert_locked(hg_executor *executor, hg_code *code) {
  if (++executor->code_count > executor->code_buckets) grow_locked(executor);
  link_locked(executor, code);
}

/* Removes code. Failed code is not in the table any more. */
static void remove_locked(hg_executor *executor, const hg_code *code) {
  hg_code **link = bucket_of(executor, code->key);
  while (*link != NULL && *link != code) link = &(*link)->next;
  if (*link == NULL) return;
  *link = code->next;
  executor->code_count--;
  link = texts_of(executor, code->digest);
  while (*link != NULL && *link != code) link = &(*link)->next_text;
  if (*link != NULL) *link = code->next_text;
}

static hg_code *find_text_locked(hg_executor *executor, const atlas_program *program, hg_code_kind kind) {
  uint64_t digest = atlas_program_digest(program);
  hg_code *code = *texts_of(executor, digest);
  while (code != NULL && (code->digest != digest || code->kind != kind ||
                          atomic_load(&code->state) != HG_READY || !atlas_program_same(code->program, program)))
    code = code->next_text;
  return code;
}

atlas_program *hg_code_program(hg_executor *executor, const atlas_program *program) {
  hg_lock(executor);
  const hg_code *code = NULL;
  for (int kind = 0; kind < HG_CODE_KINDS && code == NULL; kind++)
    code = find_text_locked(executor, program, (hg_code_kind)kind);
  atlas_program *found = code != NULL ? atlas_program_retain(code->program) : NULL;
  hg_unlock(executor);
  return found;
}

hg_code *hg_code_find(hg_executor *executor, const atlas_program *program, const hg_contraction *contraction) {
  hg_code_kind kind = kind_of(contraction);
  if (kind == HG_CODE_FAST) return NULL;
  hg_lock(executor);
  hg_code *code = find_text_locked(executor, program, kind);
  if (code != NULL) code->references++;
  hg_unlock(executor);
  return code;
}

void hg_codes_close(hg_executor *executor) {
  if (executor->codes != executor->few_codes) hg_release(&executor->allocator, executor->codes);
}

/* ---- codes ------------------------------------------------------------------------------------------------------- */

static hg_status new_code(hg_executor *executor, const hg_compile_input *input, hg_code **out) {
  hg_code *code = hg_allocate(&executor->allocator, 1, sizeof *code);
  if (code == NULL) return hg_fail_memory("compiled code", sizeof *code);
  code->references = 1;
  code->kind = kind_of(input->contraction);
  code->digest = atlas_program_digest(input->program);
  memcpy(code->needs.hash, input->hash, sizeof input->hash);
  note_needs(&code->needs, input->program, input->unit);
  code->process = hg_process_id();
  atomic_init(&code->state, HG_MAKING);
  compute_key(input, code->key);
  *out = code;
  return HG_OK;
}

static void destroy_code(hg_executor *executor, hg_code *code) {
  atlas_program_release(code->program);
  hg_release(&executor->allocator, code);
}

void hg_code_release(hg_executor *executor, hg_code *code) {
  hg_lock(executor);
  int is_last = --code->references == 0;
  if (is_last) {
    remove_locked(executor, code);
    if (code->compiled.kernel != NULL) executor->backend->release(executor->device, code->compiled.kernel);
  }
  hg_unlock(executor);
  if (is_last) destroy_code(executor, code);
}

/* Without the lock: the caller and all waiting threads hold references. */
static hg_status compile(hg_executor *executor, hg_code *code, hg_compile_input *input) {
  hg_status status = executor->backend->compile(executor->device, input, &code->compiled);
  if (status != HG_OK) {
    code->failure = status;
    hg_clip(hg_last_error(), strlen(hg_last_error()), code->sentence, sizeof code->sentence);
  }
  hg_lock(executor);
  if (status == HG_OK) executor->counts.compilations++;
  else remove_locked(executor, code);
  hg_unlock(executor);
  atomic_store_explicit(&code->state, status == HG_OK ? HG_READY : HG_FAILED, memory_order_release);
  hg_wake(&code->state);
  return status;
}

static hg_status await(hg_code *code) {
  uint32_t state = HG_MAKING;
  while ((state = atomic_load_explicit(&code->state, memory_order_acquire)) == HG_MAKING)
    hg_wait(&code->state, HG_MAKING);
  return state == HG_READY ? HG_OK : hg_fail(code->failure, "%s", code->sentence);
}

static hg_status code_of(hg_executor *executor, atlas_program *program, hg_compile_input *input, hg_code **out) {
  hg_code *made = NULL;
  HG_TRY(new_code(executor, input, &made));
  hg_lock(executor);
  hg_code *code = find_locked(executor, made->key);
  if (code != NULL) {
    code->references++;
  } else {
    made->program = atlas_program_retain(program);
    insert_locked(executor, made);
  }
  hg_unlock(executor);
  if (code != NULL) destroy_code(executor, made);
  hg_status status = code != NULL ? await(code) : compile(executor, made, input);
  if (code == NULL) code = made;
  if (status == HG_OK) *out = code;
  else hg_code_release(executor, code);
  return status;
}

static hg_status make_code(hg_executor *executor, atlas_program *program, const hg_contraction *contraction,
                           ssa_unit *unit, hg_code **out) {
  hg_compile_input input = {.program = program, .unit = unit, .contraction = contraction};
  HG_TRY(hg_canonicalise(program, NULL, unit));
  HG_TRY(hg_canon_hash(program, unit, input.hash));
  return code_of(executor, program, &input, out);
}

hg_status hg_code_of(hg_executor *executor, atlas_program *program, const hg_contraction *contraction, hg_code **out) {
  ssa_unit unit;
  *out = hg_code_find(executor, program, contraction);
  if (*out != NULL) return HG_OK;
  hg_status status = make_code(executor, program, contraction, &unit, out);
  ir_ssa_release(&unit);
  return status;
}
