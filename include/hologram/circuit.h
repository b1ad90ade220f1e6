/* circuit.h - circuits: expressions of mark, copy, swap, merge, split, quote and evaluate over the 96 classes, their
 * canonical form, and the Atlas program that they become. What the words mean is in docs/circuits.md.
 *
 *   hg_circuit *circuit = NULL;
 *   const char *text = "swap@c10<->c11 . mark@c10";                   // the rightmost runs first
 *   if (hg_circuit_parse(NULL, text, strlen(text), "a circuit", &circuit) != HG_OK)
 *     fprintf(stderr, "%s\n", hg_last_error());                       // a circuit:1:9: ...
 *   hg_circuit_run(circuit, executor, NULL);                          // on the executor's boundary pool
 *   hg_circuit_release(circuit);
 *
 * Threads: a circuit never changes, and may be used by any number of threads at once. */
#ifndef HOLOGRAM_CIRCUIT_H
#define HOLOGRAM_CIRCUIT_H

#include "hologram/classes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HG_CIRCUIT_VERSION 1          /* of the canonical form; part of the hash */
#define HG_CIRCUIT_MOST_STEPS 1048576 /* written out: without groups, ranges, quotes and transforms */
#define HG_CIRCUIT_HASH_BYTES 32

typedef struct hg_circuit hg_circuit;

/* Reads a circuit (`length` bytes, not necessarily NUL-terminated) and brings it to its canonical form. Errors call it
 * `source_name`; NULL: "circuit". A text of nothing but blanks is the circuit that does nothing. HG_PARSE with line and
 * column, what was found and what could stand there; HG_OUT_OF_MEMORY. */
HG_API hg_status hg_circuit_parse(const hg_allocator *allocator, const char *text, size_t length,
                                  const char *source_name, hg_circuit **out);
/* The circuit that undoes this one, if it only moves contents and marks them. HG_UNSUPPORTED with the class whose
 * content is lost or computed; HG_OUT_OF_MEMORY. */
HG_API hg_status hg_circuit_inverse(const hg_circuit *circuit, hg_circuit **out);
HG_API hg_circuit *hg_circuit_retain(hg_circuit *circuit);
HG_API void hg_circuit_release(hg_circuit *circuit);

/* Texts. *text is NUL-terminated, *length bytes without the NUL (length may be NULL); release it with
 * atlas_memory_release and the same allocator. HG_OUT_OF_MEMORY.
 * hg_circuit_canonical: the canonical form as a circuit, which is its own canonical form. Equal forms have equal texts.
 * hg_circuit_terms: the same as terms, a line a class that changes and a line a term that is used elsewhere.
 * hg_circuit_steps: the circuit as it was written, without groups, ranges, quotes and transforms. */
HG_API hg_status hg_circuit_canonical(const hg_allocator *allocator, const hg_circuit *circuit, char **text,
                                      size_t *length);
HG_API hg_status hg_circuit_terms(const hg_allocator *allocator, const hg_circuit *circuit, char **text,
                                  size_t *length);
HG_API hg_status hg_circuit_steps(const hg_allocator *allocator, const hg_circuit *circuit, char **text,
                                  size_t *length);

/* SHA-256 of the terms and of HG_CIRCUIT_VERSION: equal if and only if the canonical forms are. */
HG_API void hg_circuit_hash(const hg_circuit *circuit, uint8_t digest[HG_CIRCUIT_HASH_BYTES]);

typedef struct hg_circuit_report {
  size_t size;
  uint64_t steps;           /* as written, without groups, ranges, quotes and transforms */
  uint64_t canonical_steps;
  uint64_t operations;      /* f32 operations of the canonical form, each once */
  uint32_t changed;         /* classes whose content changes */
  uint32_t temporaries;     /* that the canonical steps take */
  uint32_t components;      /* sets of classes that have nothing to do with each other */
  uint32_t lanes;           /* of the launch of its program */
} hg_circuit_report;
/* Fill report->size first, or leave it 0. */
HG_API hg_status hg_circuit_query(const hg_circuit *circuit, hg_circuit_report *report);

/* A law by which the circuit became its canonical form, and how often it did. By index from 0: HG_NOT_FOUND past the
 * last. */
typedef struct hg_circuit_law {
  size_t size;
  const char *name;      /* "mark mark" */
  const char *statement; /* "mark@a . mark@a = nothing, ..." */
  uint64_t count;
} hg_circuit_law;
HG_API hg_status hg_circuit_law_query(const hg_circuit *circuit, size_t index, hg_circuit_law *law);

/* The program: hg_circuit_report.lanes lanes, and the boundary pool bound to its buffer `pool`
 * (hg_boundary_buffer(executor, 0, ATLAS_BOUNDARY_POOL_BYTES, ...)). Equal canonical forms give equal programs.
 * HG_UNSUPPORTED for one that needs more than a program may have; HG_OUT_OF_MEMORY. */
HG_API hg_status hg_circuit_compile(const hg_allocator *allocator, const hg_circuit *circuit, atlas_program **out);

/* Compiles it and runs it on the executor's boundary pool, behind the work of streams that use the pool; report may be
 * NULL. Whoever runs it often keeps the kernel: hg_circuit_compile, hg_kernel_create. As hg_kernel_create and
 * hg_launch. */
HG_API hg_status hg_circuit_run(const hg_circuit *circuit, hg_executor *executor, hg_launch_report *report);

#ifdef __cplusplus
}
#endif
#endif
