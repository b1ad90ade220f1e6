/* fault.c - faults: a thread keeps its first one and writes it to the record at its end.
 *
 * The launch has one record: the lowest lane that faulted, and that lane's first fault. A thread runs its lanes in
 * ascending order, so its first fault is that of its lowest lane. A table in the module holds what the plan knows of
 * each fault; a register holds the number of the row, 0 while there is no fault. Index and extent are in registers as
 * well; kernels that see blocks keep them in local memory, because their registers limit how many blocks a
 * multiprocessor runs at a time. (A function call at each site would cost every kernel sixteen registers.) The record's
 * lock is safe among the lanes of a warp because sm_70 and later let each of them make progress. */
#include "backend/cuda/ptx/ptx.h"

#include <stddef.h>

#define OFFSET(member) (unsigned)offsetof(hg_gpu_fault, member)

enum { SITE_WORDS = PTX_SITE_BYTES / 8 }; /* kind; instruction | symbol << 32; code | index type << 32; displacement */

static uint64_t both(uint32_t low, uint32_t high) { return low | (uint64_t)high << 32; }

/* The number of a site in the table, counted from 1. */
uint32_t hg_ptx_site_number(ptx *p, const gpu_site *site) {
  const uint64_t words[SITE_WORDS] = {site->kind, both(site->insn == SSA_NONE ? 0 : site->insn, site->symbol),
                                      both(site->code, site->index_type), (uint64_t)site->displacement};
  if (hg_array_append(p->allocator, &p->sites, words, SITE_WORDS) == NULL) p->failed = 1;
  return (uint32_t)(p->sites.count / SITE_WORDS);
}

void hg_ptx_site_also(ptx *p, uint32_t number) {
  if (!p->failed) ((uint64_t *)p->sites.data)[p->sites.count - SITE_WORDS] |= both(0, number);
}

int hg_ptx_keeps_in_memory(const ptx *p) {
  return p->sites.count > 0 && p->plan->info.observes_block;
}

/* d = a if the predicate holds. */
static void replace(ptx *p, const char *suffix, ptx_name d, ptx_name a, ptx_name when) {
  hg_ptx_put(p, "\t@%s mov%s %s, %s;\n", when.text, suffix, d.text, a.text);
}

/* `first`: a predicate that is true for the thread's first fault. */
static void keep_fault(ptx *p, ptx_name first, ptx_name number, ptx_name index, ptx_name extent) {
  if (hg_ptx_keeps_in_memory(p)) {
    hg_ptx_put(p, "\t@%s st.local.b64 [hg_fault], %s;\n", first.text, index.text);
    hg_ptx_put(p, "\t@%s st.local.b64 [hg_fault+8], %s;\n", first.text, extent.text);
  } else {
    replace(p, ".b64", p->fault_lane, p->lane, first);
    replace(p, ".b64", p->fault_index, index, first);
    replace(p, ".b64", p->fault_extent, extent, first);
  }
  replace(p, ".b32", p->fault_site, number, first);
}

void hg_ptx_note_fault(ptx *p, const ptx_fault_site *site) {
  ptx_name first = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.eq.u32", first, p->fault_site, hg_ptx_number(0));
  keep_fault(p, first, hg_ptx_number(hg_ptx_site_number(p, &site->site)), site->index, site->extent);
}

void hg_ptx_note_number(ptx *p, ptx_name when, ptx_name number, ptx_name index, ptx_name extent) {
  ptx_name first = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.eq.and.u32", first, p->fault_site, hg_ptx_number(0), when);
  keep_fault(p, first, number, index, extent);
}

/* ---- the end of a thread ----------------------------------------------------------------------------------------- */

static void write_record(ptx *p, ptx_name record) {
  static const unsigned offset[SITE_WORDS] = {OFFSET(kind), OFFSET(instruction), OFFSET(code), OFFSET(displacement)};
  ptx_name table = hg_ptx_new(p, PTX_64);
  hg_ptx_put(p, "\tmov.u64 %s, %s_sites;\n", table.text, p->options->name);
  PTX(p, "mad.wide.u32", table, p->fault_site, hg_ptx_number(8 * SITE_WORDS), table);
  for (int i = 0; i < SITE_WORDS; i++) {
    ptx_name word = hg_ptx_new(p, PTX_64);
    hg_ptx_put(p, "\tld.global.nc.b64 %s, [%s+%d];\n", word.text, table.text, 8 * (i - SITE_WORDS));
    hg_ptx_put(p, "\tst.global.%s [%s+%u], %s;\n", i == 0 ? "u32" : "u64", record.text, offset[i], word.text);
  }
  hg_ptx_put(p, "\tst.global.u64 [%s+%u], %s;\n", record.text, OFFSET(index), p->fault_index.text);
  hg_ptx_put(p, "\tst.global.u64 [%s+%u], %s;\n", record.text, OFFSET(extent), p->fault_extent.text);
}

/* Branches to `to` if the record has a fault of this lane or of a lower one. */
static void leave_if_late(ptx *p, ptx_name record, ptx_name to) {
  ptx_name lowest = hg_ptx_new(p, PTX_64), late = hg_ptx_new(p, PTX_PREDICATE);
  hg_ptx_put(p, "\tld.volatile.global.u64 %s, [%s+%u];\n", lowest.text, record.text, OFFSET(lane));
  PTX(p, "setp.le.u64", late, lowest, p->fault_lane);
  hg_ptx_put(p, "\t@%s bra %s;\n", late.text, to.text);
}

/* If a thread has one lane: computes it again, so that it needs no register until here, and loads what was kept. */
static void fetch_fault(ptx *p) {
  hg_ptx_find_lane(p);
  p->fault_lane = p->lane;
  if (!hg_ptx_keeps_in_memory(p)) return;
  hg_ptx_put(p, "\tld.local.b64 %s, [hg_fault];\n", p->fault_index.text);
  hg_ptx_put(p, "\tld.local.b64 %s, [hg_fault+8];\n", p->fault_extent.text);
}

static void write_record_locked(ptx *p) {
  ptx_name record = PTX_FIELD(p, PTX_64, fault_record), flag = PTX_FIELD(p, PTX_64, fault_flag);
  if (p->plan->info.observes_block) fetch_fault(p);
  ptx_name lock = hg_ptx_new(p, PTX_32), taken = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name again = hg_ptx_label(p), unlock = hg_ptx_label(p), done = hg_ptx_label(p);
  hg_ptx_place(p, again);
  leave_if_late(p, record, done);
  hg_ptx_put(p, "\tatom.global.cas.b32 %s, [%s+%u], 0, 1;\n", lock.text, record.text, OFFSET(lock));
  PTX(p, "setp.ne.u32", taken, lock, hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n\tmembar.gl;\n", taken.text, again.text);
  leave_if_late(p, record, unlock);
  hg_ptx_put(p, "\tst.volatile.global.u64 [%s+%u], %s;\n", record.text, OFFSET(lane), p->fault_lane.text);
  write_record(p, record);
  hg_ptx_put(p, "\tst.volatile.global.u32 [%s], 1;\n", flag.text);
  hg_ptx_place(p, unlock);
  hg_ptx_put(p, "\tmembar.gl;\n\tatom.global.exch.b32 %s, [%s+%u], 0;\n", lock.text, record.text, OFFSET(lock));
  hg_ptx_place(p, done);
  hg_ptx_put(p, "\tret;\n");
}

void hg_ptx_end_thread(ptx *p) {
  if (p->sites.count > 0) {
    ptx_name none = hg_ptx_new(p, PTX_PREDICATE), end = hg_ptx_label(p);
    PTX(p, "setp.eq.u32", none, p->fault_site, hg_ptx_number(0));
    hg_ptx_put(p, "\t@!%s bra %s;\n", none.text, end.text);
    p->out = &p->cold;
    hg_ptx_place(p, end);
    write_record_locked(p);
    p->out = &p->body;
  }
  hg_ptx_put(p, "\tret;\n");
}

/* ---- what stands before the instructions ------------------------------------------------------------------------- */

void hg_ptx_open_faults(ptx *p) {
  p->fault_site = hg_ptx_new(p, PTX_32);
  p->fault_lane = hg_ptx_new(p, PTX_64);
  p->fault_index = hg_ptx_new(p, PTX_64);
  p->fault_extent = hg_ptx_new(p, PTX_64);
}

void hg_ptx_sites(ptx *p) {
  const uint64_t *words = p->sites.data;
  if (p->sites.count == 0) return;
  hg_ptx_append(p, &p->module, ".global .align 16 .b64 %s_sites[%u] = {", p->options->name, (unsigned)p->sites.count);
  for (size_t i = 0; i < p->sites.count; i++)
    hg_ptx_append(p, &p->module, "%s%s0x%llx", i > 0 ? "," : "", i % SITE_WORDS == 0 ? "\n\t" : " ",
                  (unsigned long long)words[i]);
  hg_ptx_append(p, &p->module, "};\n\n");
}

/* ---- where faults are found -------------------------------------------------------------------------------------- */

/* Notes pending faults in program order. */
static void note_pending(ptx *p) {
  for (uint32_t i = 0; i < p->pending_count; i++) {
    const ptx_fault_site *site = &p->pending[i].site;
    hg_ptx_note_number(p, p->pending[i].failed, hg_ptx_number(hg_ptx_site_number(p, &site->site)), site->index,
                       site->extent);
  }
}

void hg_ptx_faults_now(ptx *p) {
  if (p->pending_count == 0) return;
  ptx_name any = p->pending[0].failed, rare = hg_ptx_label(p), back = hg_ptx_label(p);
  for (uint32_t i = 1; i < p->pending_count; i++) {
    ptx_name more = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "or.pred", more, any, p->pending[i].failed);
    any = more;
  }
  hg_ptx_put(p, "\t@%s bra %s;\n", any.text, rare.text);
  hg_ptx_place(p, back);
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  note_pending(p);
  hg_ptx_put(p, "\tbra %s;\n", back.text);
  p->out = out;
  p->pending_count = 0;
}

void hg_ptx_fault_later(ptx *p, ptx_name predicate, const ptx_fault_site *site) {
  p->pending[p->pending_count++] = (ptx_pending){predicate, *site};
}

void hg_ptx_fault_if(ptx *p, ptx_name predicate, const ptx_fault_site *site, const ptx_name *zeroed, uint8_t type,
                     ptx_name back) {
  ptx_name rare = hg_ptx_label(p);
  hg_ptx_put(p, "\t@%s bra %s;\n", predicate.text, rare.text);
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  hg_ptx_note_fault(p, site);
  if (zeroed != NULL && type == SSA_PREDICATE) PTX(p, "mov.pred", *zeroed, hg_ptx_number(0));
  else if (zeroed != NULL)
    PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(type))).text, *zeroed, hg_ptx_number(0));
  hg_ptx_put(p, "\tbra %s;\n", back.text);
  p->out = out;
}
