/* formulas.c - reads the formulas and gradients of operations.def when Hologram is built, with the reader of users'
 * formulas, and writes their nodes as C.
 *
 *   formulas OUT.c */
#include "ops/graph/syntax.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* While they are being read there are none. */
const ops_syntax hg_formula_nodes[1] = {{0}};
const uint64_t hg_formula_numbers[1] = {0};
const uint16_t hg_formula_first[1] = {0};

static int read_column(const hg_allocator *allocator, const ops_row *row, const char *text, ops_syntax_list *list) {
  ops_syntax_error error = {.status = HG_OK};
  size_t first = list->nodes.count;
  if (text[0] == '\0' || strcmp(text, "none") == 0) return 1;
  if (!ops_read_formula(allocator, text, list, &error)) {
    fprintf(stderr, "formulas: %s, column %u of '%s': %s\n", row->name, (unsigned)error.at + 1, text, error.sentence);
    return 0;
  }
  for (size_t i = first; i < list->nodes.count; i++) {
    const ops_syntax *node = (const ops_syntax *)list->nodes.data + i;
    if (node->kind != OPS_SYNTAX_UNKNOWN) continue;
    fprintf(stderr, "formulas: %s calls '%.*s', which is no operation\n", row->name, (int)node->op, text + node->at);
    return 0;
  }
  return 1;
}

static void write_list(FILE *out, const ops_syntax_list *list) {
  fputs("const ops_syntax hg_formula_nodes[] = {\n", out);
  for (size_t i = 0; i < list->nodes.count; i++) {
    const ops_syntax *n = (const ops_syntax *)list->nodes.data + i;
    fprintf(out, "  {%u, %u, %u, %u, %u},\n", (unsigned)n->kind, (unsigned)n->count, (unsigned)n->at, (unsigned)n->op,
            (unsigned)n->size);
  }
  fputs("};\nconst uint64_t hg_formula_numbers[] = {\n", out);
  for (size_t i = 0; i < list->numbers.count; i++)
    fprintf(out, "  UINT64_C(%" PRIu64 "),\n", ((const uint64_t *)list->numbers.data)[i]);
  fputs("};\n", out);
}

static int write_all(FILE *out, const hg_allocator *allocator, ops_syntax_list *list) {
  fputs("/* Written by tools/formulas.c. */\n#include \"ops/graph/syntax.h\"\n\n", out);
  fputs("const uint16_t hg_formula_first[] = {\n", out);
  for (size_t i = 0; i < ops_row_count(); i++) {
    const ops_row *row = ops_row_at(i);
    fprintf(out, "  %u,", (unsigned)list->nodes.count);
    if (row->kind == OPS_KIND_formula && !read_column(allocator, row, row->formula, list)) return 0;
    fprintf(out, " %u,\n", (unsigned)list->nodes.count);
    if (!read_column(allocator, row, row->gradient, list)) return 0;
  }
  fprintf(out, "  %u\n};\n", (unsigned)list->nodes.count);
  write_list(out, list);
  int is_small = ops_row_at(ops_row_count() - 1)->op <= OPS_MOST_OP; /* they ascend */
  return is_small && list->nodes.count <= UINT16_MAX && list->numbers.count <= OPS_MOST_NODES;
}

int main(int argc, char **argv) {
  ops_syntax_list list = {.nodes = {.count = 0}};
  hg_allocator allocator;
  FILE *out = argc == 2 && hg_allocator_resolve(NULL, &allocator) == HG_OK ? fopen(argv[1], "w") : NULL;
  if (out == NULL) {
    fprintf(stderr, "usage: formulas OUT.c\n");
    return 2;
  }
  int is_written = write_all(out, &allocator, &list) && !ferror(out);
  ops_syntax_release(&allocator, &list);
  return fclose(out) == 0 && is_written ? 0 : 1;
}
