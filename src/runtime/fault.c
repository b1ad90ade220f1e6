/* fault.c - the sentences of faults. */
#include "runtime/runtime.h"

#include "atlas/program.h"

#include <stdio.h>
#include <string.h>

const char *hg_fault_kind_name(hg_fault_kind kind) {
  switch (kind) {
  case HG_FAULT_NONE: return "none";
  case HG_FAULT_OUT_OF_BOUNDS: return "out of bounds";
  case HG_FAULT_MISALIGNED: return "misaligned";
  case HG_FAULT_TRAP: return "trap";
  case HG_FAULT_STEP_LIMIT: return "step limit";
  case HG_FAULT_CLASS: return "class out of range";
  case HG_FAULT_POOL: return "pool";
  case HG_FAULT_UNITY: return "not unity-neutral";
  }
  return "unknown fault";
}

/* "'x'", or a description of memory without a name. */
static void describe_place(const hg_fault *fault, char *text, size_t text_bytes) {
  if (strcmp(fault->buffer, "phi") == 0) snprintf(text, text_bytes, "the boundary pool");
  else if (fault->buffer[0] == '\0') snprintf(text, text_bytes, "its memory");
  else snprintf(text, text_bytes, "'%s'", fault->buffer);
}

/* What the lane did; stands after "line 7 (ldg): lane 1024 ". */
static void describe_event(const hg_fault *fault, const atlas_op_info *op, char *text, size_t text_bytes) {
  long long index = (long long)fault->index, extent = (long long)fault->extent;
  char place[80];
  describe_place(fault, place, sizeof place);
  switch (fault->kind) {
  case HG_FAULT_OUT_OF_BOUNDS: {
    uint32_t flags = op != NULL ? op->flags : ATLAS_LOAD;
    const char *verb = flags & ATLAS_ATOMIC ? "updated" : flags & ATLAS_STORE ? "wrote" : "read";
    snprintf(text, text_bytes, "%s %s %s: index %lld, extent %lld", verb, index < 0 ? "before" : "past", place, index,
             extent);
    return;
  }
  case HG_FAULT_MISALIGNED:
    snprintf(text, text_bytes, "accessed byte offset %lld of %s, which is not a multiple of %lld", index, place,
             extent);
    return;
  case HG_FAULT_TRAP: snprintf(text, text_bytes, "trapped with code %u", (unsigned)fault->code); return;
  case HG_FAULT_STEP_LIMIT:
    snprintf(text, text_bytes, "took more than %lld backward branches, the step limit of the launch", extent);
    return;
  case HG_FAULT_CLASS: snprintf(text, text_bytes, "gave %lld, which is not in 0..%lld", index, extent - 1); return;
  case HG_FAULT_POOL:
    snprintf(text, text_bytes, "freed offset %lld of %s, which its block does not hold", index, place);
    return;
  case HG_FAULT_NONE:
  case HG_FAULT_UNITY: break;
  }
  snprintf(text, text_bytes, "faulted (%s)", hg_fault_kind_name(fault->kind));
}

void hg_fault_describe(const atlas_program *program, const hg_fault *fault, char *text, size_t text_bytes) {
  if (fault->kind == HG_FAULT_UNITY) {
    snprintf(text, text_bytes, "the launch is unity-neutral, but its resonance deltas sum to %lld; they were undone",
             (long long)fault->index);
    return;
  }
  const atlas_op_info *op = NULL;
  if (fault->instruction < program->insns.count) op = atlas_op_lookup(atlas_insn_at(program, fault->instruction)->op);
  char event[256];
  describe_event(fault, op, event, sizeof event);
  snprintf(text, text_bytes, "%s %u (%s): lane %llu %s", fault->line > 0 ? "line" : "instruction",
           (unsigned)(fault->line > 0 ? fault->line : fault->instruction), op != NULL ? op->mnemonic : "?",
           (unsigned long long)fault->lane, event);
}
