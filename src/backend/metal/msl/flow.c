/* flow.c - the program of one lane: basic blocks nested by ir/structure.h, phis as assignments on edges, the step limit
 * on back edges.
 *
 * A block that others break to is `do { } while (false)`, a loop `while (true)`. A jump out of several of them sets
 * `go` to its target, and each that it leaves passes it on. */
#include "backend/metal/msl/msl.h"

#include "atlas/tables.h"
#include "base/error.h"
#include "ir/structure.h"

enum { OUTERMOST = 0 }; /* the frame that a lane's end breaks out of */

typedef struct frame {
  uint8_t shape;     /* ir_shape */
  uint8_t is_named;  /* `go` may name it */
  uint32_t passes;   /* the outermost frame that jumps out of this one lead to; its own number: no jump leaves it */
} frame;

static frame *frame_at(const msl *m, size_t number) { return (frame *)m->frames.data + number; }

static void open_frame(msl *m, ir_shape shape) {
  frame f = {.shape = (uint8_t)shape, .passes = (uint32_t)m->frames.count};
  if (hg_array_append(m->allocator, &m->frames, &f, 1) == NULL) m->failed = 1;
}

/* The innermost frame below `count` that `break` leaves. */
static size_t nearest(const msl *m, size_t count) {
  while (count > 1 && frame_at(m, count - 1)->shape == IR_SHAPE_IF) count--;
  return count - 1;
}

static void leave_for(msl *m, size_t target) {
  size_t from = nearest(m, m->frames.count);
  const char *word = frame_at(m, target)->shape == IR_SHAPE_LOOP ? "continue;" : "break;";
  if (from == target) {
    hg_msl_line(m, "%s", word);
    return;
  }
  frame_at(m, target)->is_named = 1;
  if (target < frame_at(m, from)->passes) frame_at(m, from)->passes = (uint32_t)target;
  hg_msl_line(m, "go = %u;", (unsigned)target + 1);
  hg_msl_line(m, "break;");
}

/* After a frame: passes on the jumps that have left it. */
static void pass_on(msl *m, const frame *left, size_t number) {
  if (left->passes >= number) return;
  size_t here = nearest(m, number);
  frame *f = frame_at(m, here);
  if (f->is_named) {
    hg_msl_open(m, "if (go == %u)", (unsigned)here + 1);
    hg_msl_line(m, "go = 0;");
    hg_msl_line(m, f->shape == IR_SHAPE_LOOP ? "continue;" : "break;");
    hg_msl_close(m, "");
  }
  if (left->passes >= here) return;
  if (left->passes < f->passes) f->passes = left->passes;
  hg_msl_line(m, "if (go != 0) break;");
}

static void close_frame(msl *m) {
  size_t number = m->frames.count - 1;
  frame left = *frame_at(m, number);
  if (left.shape == IR_SHAPE_LOOP) hg_msl_line(m, "break;");
  hg_msl_close(m, left.shape == IR_SHAPE_BLOCK ? " while (false);" : "");
  m->frames.count = number;
  if (left.shape != IR_SHAPE_IF && number > 0) pass_on(m, &left, number);
}

/* ---- the end of a lane ------------------------------------------------------------------------------------------- */

/* Collectives continue without the lane. */
static void end_early(msl *m) {
  if (m->plan->memory.uses_scratch && m->plan->can_end) {
    hg_msl_line(m, "shared[%u + block_lane] = 1;", (unsigned)m->plan->memory.ended);
    hg_msl_line(m, "*(threadgroup uint *)(shared + %u) = 1;", (unsigned)m->plan->memory.ended_any);
  }
  leave_for(m, OUTERMOST);
}

static void trap(msl *m, const ssa_block *block) {
  gpu_site site = hg_gpu_trap_site(block);
  hg_msl_note(m, &site, "0", "0");
  end_early(m);
}

static void count_step(msl *m, uint32_t from, uint32_t to) {
  gpu_site site = hg_gpu_step_limit_site(m->plan, from, to);
  hg_msl_open(m, "if (steps == 0)");
  hg_msl_note(m, &site, "0", "0");
  end_early(m);
  hg_msl_close(m, "");
  hg_msl_line(m, "steps--;");
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

/* Phis take their values in parallel: through temporaries if one phi's value is another's argument. */
static void move_phis(msl *m, const gpu_edge *edge) {
  uint32_t first = ssa_block_at(m->plan->unit, edge->target)->first_phi;
  if (edge->crosses) hg_msl_scope(m);
  for (uint32_t phi = first; phi != SSA_NONE; phi = msl_insn(m, phi)->next) {
    msl_name a = hg_msl_argument(m, phi, edge->side);
    if (edge->crosses)
      hg_msl_line(m, "%s n%u = %s;", hg_msl_variable_type(msl_insn(m, phi)->type), (unsigned)phi, a.text);
    else if (msl_arg(m, phi, edge->side) != phi) hg_msl_line(m, "v%u = %s;", (unsigned)phi, a.text);
  }
  if (!edge->crosses) return;
  for (uint32_t phi = first; phi != SSA_NONE; phi = msl_insn(m, phi)->next)
    hg_msl_line(m, "v%u = n%u;", (unsigned)phi, (unsigned)phi);
  hg_msl_close(m, "");
}

static void emit_edge(msl *m, uint32_t from, int side) {
  gpu_edge edge = hg_gpu_edge(m->plan, from, side);
  if (edge.takes_steps == 1) count_step(m, from, edge.target);
  else if (edge.takes_steps > 1) hg_msl_line(m, "steps -= %u;", (unsigned)edge.takes_steps);
  move_phis(m, &edge);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void clear_shared(msl *m, uint32_t bytes) {
  hg_msl_open(m, "for (uint i = block_lane; i < %u; i += block_lanes)", (unsigned)bytes / 4);
  hg_msl_line(m, "((threadgroup uint *)shared)[i] = 0;");
  hg_msl_close(m, "");
  hg_msl_barrier(m);
}

static void emit_step(msl *m, const gpu_step *step) {
  switch (step->op) {
  case GPU_COMPUTE: hg_msl_compute(m, step->value); break;
  case GPU_LOAD:
  case GPU_STORE:
  case GPU_ATOMIC: hg_msl_access(m, step->value); break;
  case GPU_TAKE: hg_msl_take_element(m, step); break;
  case GPU_GIVE: hg_msl_give_element(m, step); break;
  case GPU_GROUP: hg_msl_group(m, gpu_group_at(m->plan, step->number)); break;
  case GPU_HOIST_CHECK: hg_msl_foresee(m, step->number); break;
  case GPU_CLEAR_SHARED: clear_shared(m, step->number); break;
  case GPU_SYNC: hg_msl_barrier(m); break;
  case GPU_VOTE: hg_msl_vote(m, step->value); break;
  case GPU_RANK: hg_msl_rank(m, step->value); break;
  case GPU_POOL_ALLOCATE: hg_msl_pool_allocate(m, step->value); break;
  case GPU_POOL_FREE: hg_msl_pool_free(m, step->value); break;
  case GPU_ADVANCE_PHASE: hg_msl_advance_phase(m, step->value); break;
  case GPU_CLASS: hg_msl_class(m, step->value); break;
  case GPU_FENCE: hg_msl_line(m, "fence(thread_scope_threadgroup);"); break;
  case GPU_FENCE_GRID: hg_msl_line(m, "fence(thread_scope_device);"); break;
  default: break; /* INSN */
  }
}

void hg_msl_steps(msl *m, uint32_t first, uint32_t end) {
  const gpu_step *steps = m->plan->version[m->version].steps.data;
  for (uint32_t i = first; i < end && !m->failed; i++) {
    if (steps[i].op == GPU_EXCHANGE) i += hg_msl_exchange(m, &steps[i]) - 1;
    else emit_step(m, &steps[i]);
  }
}

static void emit_code(msl *m, uint32_t block) {
  const ssa_block *b = ssa_block_at(m->plan->unit, block);
  uint32_t k = m->plan->order.position[block];
  const uint32_t *first = m->plan->version[m->version].first;
  hg_msl_steps(m, first[k], first[k + 1]);
  if (b->end == SSA_JUMP) emit_edge(m, block, 0);
  else if (b->end == SSA_TRAP) trap(m, b);
}

static void open_if(msl *m, uint32_t block) {
  uint32_t steps = hg_gpu_asks_steps(m->plan, block);
  msl_name condition = hg_msl_value(m, ssa_block_at(m->plan->unit, block)->condition);
  if (steps > 0) hg_msl_open(m, "if (%s && steps >= %u)", condition.text, (unsigned)steps);
  else hg_msl_open(m, "if (%s)", condition.text);
  emit_edge(m, block, 0);
}

/* `block`: the last basic block that was emitted; for an ELSE, that of its IF. */
static void emit_item(msl *m, const ir_structure_item *item, uint32_t *block, hg_array *branches) {
  switch (item->shape) {
  case IR_SHAPE_CODE: emit_code(m, *block = item->value); break;
  case IR_SHAPE_BLOCK:
    hg_msl_open(m, "do");
    open_frame(m, item->shape);
    break;
  case IR_SHAPE_LOOP:
    hg_msl_open(m, "while (true)");
    open_frame(m, item->shape);
    break;
  case IR_SHAPE_IF:
    if (hg_array_append(m->allocator, branches, block, 1) == NULL) m->failed = 1;
    open_frame(m, item->shape);
    if (!m->failed) open_if(m, *block);
    break;
  case IR_SHAPE_ELSE:
    hg_msl_close(m, " else {");
    m->depth++;
    emit_edge(m, ((const uint32_t *)branches->data)[--branches->count], 1);
    break;
  case IR_SHAPE_END: close_frame(m); break;
  case IR_SHAPE_BREAK:
  case IR_SHAPE_CONTINUE: leave_for(m, m->frames.count - 1 - item->value); break;
  case IR_SHAPE_RETURN:
    if (ssa_block_at(m->plan->unit, *block)->end != SSA_TRAP) leave_for(m, OUTERMOST);
    break;
  }
}

hg_status hg_msl_body(msl *m, gpu_version_kind version) {
  hg_array items = {.element_size = sizeof(ir_structure_item)}, branches = {.element_size = sizeof(uint32_t)};
  uint32_t block = 0;
  m->frames.element_size = sizeof(frame);
  m->version = version;
  hg_status status = ir_structure_build(m->plan->unit, &m->plan->order, &items);
  if (m->plan->counts_steps) hg_msl_line(m, "ulong steps = a.step_limit;");
  hg_msl_line(m, "uint go = 0;");
  hg_msl_open(m, "do");
  open_frame(m, IR_SHAPE_BLOCK);
  for (size_t i = 0; i < items.count && status == HG_OK && !m->failed; i++)
    emit_item(m, (const ir_structure_item *)items.data + i, &block, &branches);
  if (status == HG_OK && !m->failed) close_frame(m);
  /* ir_structure_build takes its memory from the unit's allocator */
  hg_array_release(&m->plan->unit->allocator, &items);
  hg_array_release(m->allocator, &branches);
  return status;
}
