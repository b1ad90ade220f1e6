/* rows.c - what all instructions on rows use: a lane's global number, faults, rows of one value. */
#include "backend/cpu/engine/rows.h"

#include <stdio.h>

uint64_t hg_cpu_lane(const cpu_worker *w, uint64_t lane_in_tile) {
  const cpu_launch *run = w->run;
  if (hg_cpu_run_length(run) == UINT64_MAX) return w->first + lane_in_tile;
  uint64_t x = lane_in_tile % run->block[0], rest = lane_in_tile / run->block[0];
  uint64_t y = rest % run->block[1], z = rest / run->block[1];
  uint64_t width = run->grid[0] * run->block[0];
  return w->first + x + width * (y + z * run->grid[1] * run->block[1]);
}

/* 1 if the worker has a fault of this lane or a lower one. A loop may fault in each round, so this is tested first. */
static int is_kept(const cpu_worker *w, uint64_t lane) {
  return w->fault.kind != HG_FAULT_NONE && w->fault.lane <= lane;
}

uint64_t hg_cpu_noted(const cpu_worker *w) {
  uint64_t first = 0, end = CPU_TILE_LANES;
  if (w->fault.kind == HG_FAULT_NONE) return UINT64_MAX;
  if (hg_cpu_run_length(w->run) == UINT64_MAX) return w->fault.lane > w->first ? w->fault.lane - w->first : 0;
  while (first < end) {
    uint64_t middle = (first + end) / 2;
    if (is_kept(w, hg_cpu_lane(w, middle))) end = middle;
    else first = middle + 1;
  }
  return end;
}

void hg_cpu_fault(cpu_worker *w, uint64_t lane_in_tile, const vector_insn *insn, hg_fault fault) {
  uint64_t lane = hg_cpu_lane(w, lane_in_tile);
  if (is_kept(w, lane)) return;
  fault.lane = lane;
  fault.instruction = insn->insn == SSA_NONE ? 0 : insn->insn;
  fault.line = atlas_insn_at(w->run->program, fault.instruction)->line;
  w->fault = fault;
}

void hg_cpu_memory_fault(cpu_worker *w, uint64_t lane_in_tile, const vector_insn *insn, hg_fault_kind kind,
                         int64_t index, uint64_t extent) {
  if (is_kept(w, hg_cpu_lane(w, lane_in_tile))) return;
  hg_fault fault = {.kind = kind, .index = index, .extent = extent > INT64_MAX ? INT64_MAX : (int64_t)extent};
  int has_name = insn->mode != ATLAS_ADDRESS_PHI && !(insn->symbol & SSA_LIBRARY);
  snprintf(fault.buffer, sizeof fault.buffer, "%s",
           has_name ? atlas_symbol_at(w->run->program, insn->symbol)->name : "phi");
  hg_cpu_fault(w, lane_in_tile, insn, fault);
}

void hg_cpu_step_fault(cpu_worker *w, const vector_insn *insn, uint64_t lane) {
  hg_fault fault = {.kind = HG_FAULT_STEP_LIMIT};
  uint64_t limit = w->run->launch->step_limit;
  fault.index = fault.extent = limit > INT64_MAX ? INT64_MAX : (int64_t)limit;
  hg_cpu_fault(w, lane, insn, fault);
}

void hg_cpu_fill_row(void *row, uint32_t bytes, uint64_t value, uint32_t count) {
  size_t elements = hg_cpu_chunks(count) * CPU_CHUNK;
  if (bytes == 1) {
    memset(row, (int)(value & 0xff), elements);
    return;
  }
  for (size_t i = 0; i < CPU_CHUNK; i++) atlas_write_value((uint8_t *)row + i * bytes, bytes, value);
  for (size_t i = CPU_CHUNK; i < elements; i += CPU_CHUNK)
    memcpy((uint8_t *)row + i * bytes, row, (size_t)CPU_CHUNK * bytes);
}
