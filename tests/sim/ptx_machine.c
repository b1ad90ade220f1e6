/* ptx_machine.c - runs parsed PTX: clusters of blocks one after the other, the threads of a cluster in turns. */
#include "ptx_machine.h"

#include "ptx_state.h"
#include "ptx_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- control ----------------------------------------------------------------------------------------------------- */

static void enter(ptx_machine *m, ptx_thread *t, const ptx_insn *call) {
  const ptx_function *callee =
      (const ptx_function *)m->module->functions.data + call->operand[PTX_OPERANDS - 1].symbol;
  if (t->depth + 1 == PTX_CALL_DEPTH) ptx_fail(m, t, "calls nest too deep");
  ptx_frame *to = &t->frame[t->depth + 1];
  const uint32_t *formals = callee->formals.data;
  *to = (ptx_frame){.function = callee, .call = call, .registers = calloc(callee->registers.count + 1, 8)};
  if (to->registers == NULL) abort();
  for (unsigned k = call->result_count; k < call->operand_count; k++)
    to->registers[formals[k]] = ptx_read(m, t, &call->operand[k], T_b64);
  t->depth++;
}

/* A block's last thread ends: by then the block has waited for all that others did in its shared memory. */
static void end_thread(ptx_machine *m, ptx_thread *t) {
  ptx_block *b = t->block;
  t->state = ENDED;
  if (--b->unended == 0 && b->visitors >= b->waits)
    ptx_fail(m, t, "block %u of the cluster ends, and others might still go to its shared memory", (unsigned)b->rank);
}

/* Out of a function; out of the entry, the thread's end. */
static void leave(ptx_machine *m, ptx_thread *t) {
  ptx_frame *f = &t->frame[t->depth];
  if (f->call == NULL) {
    end_thread(m, t);
    return;
  }
  const uint32_t *formals = f->function->formals.data;
  uint64_t *registers = f->registers;
  const ptx_insn *call = f->call;
  t->depth--;
  for (unsigned k = 0; k < call->result_count; k++)
    ptx_write(m, t, &call->operand[k], registers[formals[k]], 64);
  free(registers);
  t->frame[t->depth].pc++;
}

/* ---- what the threads of a warp and a block do together ---------------------------------------------------------- */

/* What a thread offers at a shuffle or vote, and whom it waits for. */
static void offer(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  t->offered = i->op == OP_shfl ? ptx_input_as(m, t, i, i->result_count == 2 ? 2 : 1, T_b32)
                                : ptx_input_as(m, t, i, 1, T_pred);
  t->state = WAITS_WARP;
}

static uint32_t members(ptx_machine *m, const ptx_thread *t, const ptx_insn *i) {
  if (i->op == OP_bar) return (uint32_t)ptx_input_as(m, t, i, 0, T_b32);
  return (uint32_t)ptx_input_as(m, t, i, i->operand_count - 1u, T_b32);
}

static const ptx_insn *current(const ptx_thread *t) {
  const ptx_frame *f = &t->frame[t->depth];
  return (const ptx_insn *)f->function->insns.data + f->pc;
}

static uint32_t shuffle_source(const ptx_insn *i, uint32_t lane, uint32_t b, uint32_t c, int *inside) {
  uint32_t bound = c & 31, segment = (c >> 8) & 31;
  uint32_t most = (lane & segment) | (bound & ~segment), least = lane & segment;
  int64_t j = 0;
  b &= 31;
  if (strcmp(i->words.mode, "up") == 0) j = (int64_t)lane - b, *inside = j >= (int64_t)most;
  else if (strcmp(i->words.mode, "down") == 0) j = (int64_t)lane + b, *inside = j <= (int64_t)most;
  else if (strcmp(i->words.mode, "bfly") == 0) j = lane ^ b, *inside = j <= (int64_t)most;
  else j = least | (b & ~segment), *inside = j <= (int64_t)most;
  return *inside ? (uint32_t)j : lane;
}

static void finish_shuffle(ptx_machine *m, ptx_thread *warp, ptx_thread *t, const ptx_insn *i, uint32_t mask) {
  unsigned first = i->result_count == 2 ? 2 : 1;
  int inside = 0;
  uint32_t source = shuffle_source(i, ptx_lane_of(t), (uint32_t)ptx_input_as(m, t, i, first + 1, T_b32),
                                   (uint32_t)ptx_input_as(m, t, i, first + 2, T_b32), &inside);
  ptx_answer(m, t, i, mask >> source & 1 ? warp[source].offered : 0x5a5a5a5a); /* not to be relied on */
  if (i->result_count == 2) ptx_write(m, t, &i->operand[1], (uint64_t)inside, 1);
}

static void finish_vote(ptx_machine *m, const ptx_thread *warp, ptx_thread *t, const ptx_insn *i, uint32_t mask) {
  uint32_t ballot = 0;
  for (uint32_t lane = 0; lane < PTX_WARP; lane++)
    if (mask >> lane & 1 && warp[lane].offered & 1) ballot |= 1u << lane;
  if (strcmp(i->words.mode, "ballot") == 0) ptx_answer(m, t, i, ballot);
  else if (strcmp(i->words.mode, "any") == 0) ptx_answer(m, t, i, ballot != 0);
  else if (strcmp(i->words.mode, "all") == 0) ptx_answer(m, t, i, ballot == mask);
  else ptx_fail(m, t, "vote.%s", i->words.mode);
}

/* Lets a thread's warp go on where all that it waits for are there. 1 if it did. */
static int meet_warp(ptx_machine *m, ptx_thread *t) {
  const ptx_insn *i = current(t);
  uint32_t mask = members(m, t, i), first = t->linear - ptx_lane_of(t);
  ptx_thread *warp = t->block->threads + first;
  if ((mask >> ptx_lane_of(t) & 1) == 0) ptx_fail(m, t, "the thread is not in its own mask");
  for (uint32_t lane = 0; lane < PTX_WARP; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    if (first + lane >= m->thread_count || warp[lane].state == ENDED) mask &= ~(1u << lane);
    else if (warp[lane].state != WAITS_WARP || current(&warp[lane]) != i) return 0;
  }
  for (uint32_t lane = 0; lane < PTX_WARP; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    if (i->op == OP_shfl) finish_shuffle(m, warp, &warp[lane], i, mask);
    else if (i->op == OP_vote) finish_vote(m, warp, &warp[lane], i, mask);
  }
  for (uint32_t lane = 0; lane < PTX_WARP; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    warp[lane].state = RUNS;
    warp[lane].frame[warp[lane].depth].pc++;
  }
  return 1;
}

/* ---- one instruction --------------------------------------------------------------------------------------------- */

static void step(ptx_machine *m, ptx_thread *t);

static void arithmetic(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  uint64_t a[4] = {0};
  unsigned inputs = i->operand_count - 1u;
  for (unsigned k = 0; k < inputs && k < 4; k++) {
    ptx_type type = i->type;
    if (i->op == OP_shl || i->op == OP_shr) type = k == 1 ? T_b32 : i->type;
    if (i->op == OP_shf && k == 2) type = T_b32;
    if ((i->op == OP_bfe && k > 0) || (i->op == OP_bfi && k > 1) || (i->op == OP_lop3 && k == 3)) type = T_b32;
    if (i->op == OP_mad && i->words.wide && k == 2) type = ptx_wider(i->type);
    if (i->op == OP_selp && k == 2) type = T_pred;
    if (i->op == OP_cvt) type = i->type2;
    a[k] = ptx_input_as(m, t, i, k + 1, type);
  }
  uint64_t result = 0;
  unsigned width = 0;
  const char *wrong = ptx_compute(i, a, &t->carry, &result, &width);
  if (wrong != NULL) ptx_fail(m, t, "%s", wrong);
  ptx_write(m, t, &i->operand[0], result, width);
}

static void compare(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  unsigned first = i->result_count == 2 ? 2 : 1;
  uint64_t a = ptx_input(m, t, i, first), b = ptx_input(m, t, i, first + 1);
  int holds = ptx_compare(i->words.compare, i->type, a, b);
  if (holds < 0) ptx_fail(m, t, "setp.%s of that type", i->words.compare);
  int other = !holds;
  if (i->words.logic[0] != '\0') {
    int c = (int)ptx_input_as(m, t, i, first + 2, T_pred);
    int is_and = strcmp(i->words.logic, "and") == 0, is_or = strcmp(i->words.logic, "or") == 0;
    holds = is_and ? holds && c : is_or ? holds || c : holds != c;
    other = is_and ? other && c : is_or ? other || c : other != c;
  }
  ptx_write(m, t, &i->operand[0], (uint64_t)holds, 1);
  if (first == 2) ptx_write(m, t, &i->operand[1], (uint64_t)other, 1);
}

static void barrier(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  int of_warp = i->words.mode[0] == 'w', reduces = i->words.mode[0] == 'r';
  if (reduces) t->offered = ptx_input_as(m, t, i, 2, T_pred);
  if (!of_warp && i->operand_count != (reduces ? 3 : 1)) ptx_fail(m, t, "a barrier of part of the block");
  t->state = of_warp ? WAITS_WARP : WAITS_BARRIER;
}

static void pass_cluster(ptx_thread *t) {
  t->waits++;
  if (t->block->waits < t->waits) t->block->waits = t->waits;
}

/* 0 where a thread waits. */
static int cluster_barrier(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  int has_arrived = t->arrivals > t->waits;
  if (i->words.mode[0] != 'w') {
    if (has_arrived) ptx_fail(m, t, "the thread arrives twice at a barrier of its cluster");
    if (i->words.mode[0] == 'r' && t->unreleased)
      ptx_fail(m, t, "an arrival that releases nothing of what the thread did");
    t->unreleased = 0;
    t->arrivals++;
    return 1;
  }
  if (!has_arrived) ptx_fail(m, t, "the thread waits at a barrier of its cluster where it has not arrived");
  if (m->meetings <= t->waits) {
    t->state = WAITS_CLUSTER;
    return 0;
  }
  pass_cluster(t);
  return 1;
}

/* 1 if the instruction is done and the next may follow. */
static int execute(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  switch (i->op) {
  case OP_ld: ptx_load(m, t, i); return 1;
  case OP_st: ptx_store(m, t, i); return 1;
  case OP_atom:
  case OP_red: ptx_atomic(m, t, i); return 1;
  case OP_mov:
  case OP_cvta: ptx_answer(m, t, i, ptx_input(m, t, i, 1)); return 1;
  case OP_mapa: ptx_map_address(m, t, i); return 1;
  case OP_cp: ptx_prefetch(m, t, i); return 1;
  case OP_setp: compare(m, t, i); return 1;
  case OP_fence:
  case OP_membar: return 1;
  case OP_activemask: ptx_answer(m, t, i, UINT64_C(1) << ptx_lane_of(t)); return 1;
  case OP_bra:
    t->frame[t->depth].pc =
        ((const ptx_label *)t->frame[t->depth].function->labels.data)[i->operand[0].bits].target;
    return 0;
  case OP_call: enter(m, t, i); return 0;
  case OP_ret: leave(m, t); return 0;
  case OP_exit: end_thread(m, t); return 0;
  case OP_trap: ptx_fail(m, t, "trap");
  case OP_barrier:
    if (i->words.mode[0] != '\0') return cluster_barrier(m, t, i);
    barrier(m, t, i);
    return 0;
  case OP_bar: barrier(m, t, i); return 0;
  case OP_shfl:
  case OP_vote: offer(m, t, i); return 0;
  default: arithmetic(m, t, i); return 1;
  }
}

static void step(ptx_machine *m, ptx_thread *t) {
  ptx_frame *f = &t->frame[t->depth];
  t->steps++;
  if (f->pc >= f->function->insns.count) {
    leave(m, t);
    return;
  }
  const ptx_insn *i = current(t);
  if (i->guard != 0 && (f->registers[i->guard - 1] & 1) == i->guard_negated) {
    f->pc++;
    return;
  }
  if (execute(m, t, i)) t->frame[t->depth].pc++;
}

/* ---- blocks and clusters ---------------------------------------------------------------------------------------- */

static void begin_thread(ptx_machine *m, ptx_block *b, uint32_t number) {
  ptx_thread *t = &b->threads[number];
  const uint32_t *size = m->launch->block;
  uint64_t *registers = t->frame[0].registers;
  memset(registers, 0x5a, m->entry->registers.count * sizeof *registers); /* not to be relied on */
  uint8_t *local = t->local;
  *t = (ptx_thread){.id = {number % size[0], number / size[0] % size[1], number / size[0] / size[1]},
                    .linear = number,
                    .block = b,
                    .arrivals = 1,
                    .waits = 1,
                    .local = local};
  t->frame[0] = (ptx_frame){.function = m->entry, .registers = registers};
}

/* Opens a barrier at which all threads that have not ended wait. */
static int open_barrier(ptx_machine *m, ptx_block *b) {
  uint32_t waiting = 0;
  const ptx_insn *at = NULL;
  for (uint32_t n = 0; n < m->thread_count; n++) {
    ptx_thread *t = &b->threads[n];
    if (t->state == ENDED) continue;
    if (t->state != WAITS_BARRIER) return 0;
    if (at != NULL && current(t) != at) ptx_fail(m, t, "threads of a block wait at different barriers");
    at = current(t);
    waiting++;
  }
  b->barriers++;
  int any = 0, all = 1;
  for (uint32_t n = 0; n < m->thread_count; n++) {
    if (b->threads[n].state == ENDED) continue;
    any |= (int)b->threads[n].offered & 1;
    all &= (int)b->threads[n].offered & 1;
  }
  for (uint32_t n = 0; n < m->thread_count; n++) {
    ptx_thread *t = &b->threads[n];
    if (t->state == ENDED) continue;
    if (at->words.mode[0] == 'r') ptx_answer(m, t, at, (uint64_t)(at->words.logic[0] == 'o' ? any : all));
    t->state = RUNS;
    t->frame[t->depth].pc++;
  }
  return waiting > 0;
}

/* The next thread of the cluster that has not ended, from number *n on; NULL: there is none. */
static ptx_thread *next_thread(ptx_machine *m, uint32_t *n) {
  for (; *n < m->block_count * m->thread_count; ++*n) {
    ptx_thread *t = &m->blocks[*n / m->thread_count].threads[*n % m->thread_count];
    if (t->state != ENDED) return t;
  }
  return NULL;
}

/* Opens the cluster's barrier where all threads that have not ended have arrived; 0 if one has not, or none is left. */
static int open_cluster(ptx_machine *m) {
  uint32_t arrived = 0;
  ptx_thread *t;
  for (uint32_t n = 0; (t = next_thread(m, &n)) != NULL; n++, arrived++)
    if (t->arrivals <= m->meetings) return 0;
  m->meetings++;
  for (uint32_t n = 0; (t = next_thread(m, &n)) != NULL; n++) {
    if (t->state != WAITS_CLUSTER) continue;
    pass_cluster(t);
    t->state = RUNS;
    t->frame[t->depth].pc++;
  }
  return arrived > 0;
}

/* As far as the block comes without others: 1 if that is any further. */
static int run_block(ptx_machine *m, ptx_block *b) {
  int progress = 0;
  for (uint32_t n = 0; n < m->thread_count; n++) {
    ptx_thread *t = &b->threads[n];
    for (; t->state == RUNS; progress = 1) step(m, t);
    if (t->state == WAITS_WARP) progress |= meet_warp(m, t);
  }
  return progress | open_barrier(m, b);
}

static void begin_block(ptx_machine *m, ptx_block *b, uint32_t x, uint32_t y, uint32_t z) {
  memcpy(b->id, (uint32_t[]){x, y, z}, sizeof b->id);
  memset(b->shared, 0xa5, m->shared_bytes);
  memset(b->places, 0, (m->watched_end - m->watched) * sizeof *b->places);
  b->barriers = b->waits = 1;
  b->visitors = 0;
  b->unended = m->thread_count;
  for (uint32_t n = 0; n < m->thread_count; n++) begin_thread(m, b, n);
}

static void run_cluster(ptx_machine *m, uint32_t x, uint32_t y, uint32_t z) {
  m->meetings = 1;
  for (uint32_t k = 0; k < m->block_count; k++) begin_block(m, &m->blocks[k], x + k, y, z);
  int progress = 1;
  while (progress) {
    progress = 0;
    for (uint32_t k = 0; k < m->block_count; k++) progress |= run_block(m, &m->blocks[k]);
    if (!progress) progress = open_cluster(m);
  }
  uint32_t n = 0;
  const ptx_thread *left = next_thread(m, &n);
  if (left != NULL) ptx_fail(m, left, "waits for threads that never come");
}

static void run_grid(ptx_machine *m) {
  const uint32_t *grid = m->launch->grid;
  for (uint32_t z = 0; z < grid[2]; z++)
    for (uint32_t y = 0; y < grid[1]; y++)
      for (uint32_t x = 0; x < grid[0]; x += m->block_count) run_cluster(m, x, y, z);
}

static void open_block(const ptx_machine *m, ptx_block *b) {
  b->rank = (uint32_t)(b - m->blocks);
  b->threads = calloc(m->thread_count, sizeof *b->threads);
  b->shared = malloc(m->shared_bytes + 1);
  b->places = calloc(m->watched_end - m->watched + 1, sizeof *b->places);
  if (b->threads == NULL || b->shared == NULL || b->places == NULL) abort();
  for (uint32_t n = 0; n < m->thread_count; n++) {
    b->threads[n].frame[0].registers = calloc(m->entry->registers.count + 1, 8);
    b->threads[n].local = malloc(m->entry->local_bytes + 1);
    if (b->threads[n].frame[0].registers == NULL || b->threads[n].local == NULL) abort();
    memset(b->threads[n].local, 0xa5, m->entry->local_bytes + 1); /* nothing is promised of it */
  }
}

static void close_block(const ptx_machine *m, ptx_block *b) {
  for (uint32_t n = 0; n < m->thread_count; n++) {
    for (uint32_t d = 1; d <= b->threads[n].depth; d++) free(b->threads[n].frame[d].registers);
    free(b->threads[n].frame[0].registers);
    free(b->threads[n].local);
  }
  free(b->threads);
  free(b->shared);
  free(b->places);
}

int ptx_run(const ptx_module *module, const char *entry, const ptx_launch *launch, char *why, size_t why_bytes) {
  uint32_t block_count = ptx_cluster_blocks(module, entry);
  if (launch->grid[0] % block_count != 0) {
    snprintf(why, why_bytes, "a grid of %u blocks is not of clusters of %u", (unsigned)launch->grid[0],
             (unsigned)block_count);
    return 0;
  }
  ptx_machine *m = calloc(1, sizeof *m);
  if (m == NULL) abort();
  m->module = module;
  m->entry = ptx_find(module, entry);
  m->launch = launch;
  m->shared_bytes = (module->shared_bytes + 15) / 16 * 16 + launch->shared_bytes;
  m->block_count = block_count;
  m->thread_count = launch->block[0] * launch->block[1] * launch->block[2];
  m->why = why;
  m->why_bytes = why_bytes;
  ptx_find_watched(m);
  for (uint32_t k = 0; k < block_count; k++) open_block(m, &m->blocks[k]);
  int done = 0;
  if (setjmp(m->failed) == 0) {
    run_grid(m);
    done = 1;
  }
  for (uint32_t k = 0; k < block_count; k++) close_block(m, &m->blocks[k]);
  free(m);
  return done;
}
