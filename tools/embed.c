/* embed.c - assembles the function library when Hologram is built: parses and verifies the .atlas files of
 * src/functions, checks that every function instruction is there for f32 and f64 and that no function calls itself, and
 * writes one constant program as C.
 *
 *   embed OUT.c FILE.atlas... */
#include "atlas/functions.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* While the library is being assembled there is none to run. */
const atlas_program atlas_functions = {.name = "none"};

typedef struct source {
  const char *path;
  const char *file_name;
  atlas_program *program;
  size_t first_insn, first_node, first_symbol, first_constant; /* in the merged program */
} source;

static int report(const char *format, const char *a, const char *b) {
  fprintf(stderr, "embed: ");
  fprintf(stderr, format, a, b); /* NOLINT: formats are the literals below */
  fprintf(stderr, "\n");
  return 1;
}

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char *text = NULL;
  if (fseek(file, 0, SEEK_END) == 0) {
    long size = ftell(file);
    rewind(file);
    text = size < 0 ? NULL : malloc((size_t)size + 1);
    if (text != NULL && fread(text, 1, (size_t)size, file) != (size_t)size) {
      free(text);
      text = NULL;
    }
    *length = size < 0 ? 0 : (size_t)size;
  }
  fclose(file);
  return text;
}

static int parse_source(source *s) {
  size_t length = 0;
  const char *slash = strrchr(s->path, '/');
  s->file_name = slash != NULL ? slash + 1 : s->path;
  char *text = read_file(s->path, &length);
  if (text == NULL) return report("cannot read %s%s", s->path, "");
  hg_status status = atlas_parse(NULL, text, length, s->file_name, &s->program);
  free(text);
  if (status != HG_OK) return report("%s%s", hg_last_error(), "");
  if (s->program->entries.count == 0) return report("%s has no .entry%s", s->file_name, "");
  return 0;
}

/* ---- checks on the whole library --------------------------------------------------------------------------------- */

static const atlas_entry *find_entry(const source *sources, size_t count, uint32_t op, uint32_t type,
                                     const source **owner) {
  for (size_t i = 0; i < count; i++)
    for (size_t e = 0; e < sources[i].program->entries.count; e++) {
      const atlas_entry *entry = atlas_entry_at(sources[i].program, e);
      if (entry->op != op || entry->type != type) continue;
      if (owner != NULL) *owner = &sources[i];
      return entry;
    }
  return NULL;
}

/* Nodes of an entry are consecutive; they end where the next entry of the file begins. */
static size_t end_of_entry(const source *s, const atlas_entry *entry) {
  size_t end = s->program->nodes.count;
  for (size_t e = 0; e < s->program->entries.count; e++) {
    size_t node = atlas_entry_at(s->program, e)->node;
    if (node > entry->node && node < end) end = node;
  }
  return end;
}

static int calls_itself(const source *sources, size_t count, uint32_t op, uint32_t type, int depth) {
  const source *owner = NULL;
  const atlas_entry *entry = find_entry(sources, count, op, type, &owner);
  if (entry == NULL) return 0; /* reported elsewhere */
  if (depth > 16) return 1;
  size_t end = end_of_entry(owner, entry);
  for (size_t n = entry->node; n < end; n++) {
    const atlas_insn *insn = atlas_insn_at(owner->program, atlas_node_at(owner->program, n)->insn);
    if (atlas_op_lookup(insn->op)->flags & ATLAS_FUNC && calls_itself(sources, count, insn->op, insn->type, depth + 1))
      return 1;
  }
  return 0;
}

static int check_library(const source *sources, size_t count) {
  int problems = 0;
  for (size_t i = 0; i < atlas_op_count(); i++) {
    const atlas_op_info *info = atlas_op_lookup((uint32_t)atlas_op_at(i));
    if (!(info->flags & ATLAS_FUNC)) continue;
    const atlas_type types[2] = {ATLAS_f32, ATLAS_f64};
    for (int t = 0; t < 2; t++) {
      const char *type_name = atlas_type_name(types[t]);
      if (find_entry(sources, count, info->op, types[t], NULL) == NULL)
        problems += report("no file defines %s.%s", info->mnemonic, type_name);
      else if (calls_itself(sources, count, info->op, types[t], 0))
        problems += report("%s.%s calls itself", info->mnemonic, type_name);
    }
  }
  for (size_t i = 0; i < count; i++)
    for (size_t e = 0; e < sources[i].program->entries.count; e++) {
      const source *owner = NULL;
      const atlas_entry *entry = atlas_entry_at(sources[i].program, e);
      find_entry(sources, count, entry->op, entry->type, &owner);
      if (owner != &sources[i])
        problems +=
            report("%s is defined in %s and again elsewhere", atlas_op_name((atlas_op)entry->op), owner->file_name);
    }
  return problems;
}

/* ---- writing C --------------------------------------------------------------------------------------------------- */

static void write_operand(FILE *out, const source *s, const atlas_operand *o) {
  unsigned symbol = o->kind == ATLAS_OPERAND_MEM ? (unsigned)(o->symbol + s->first_symbol) : 0;
  fprintf(out, "{%u,%u,%u,%u,%u,%u,%u,UINT64_C(0x%" PRIx64 ")}", o->kind, o->mode, o->reg, o->reg2, o->reg3,
          o->phi_registers, symbol, o->bits);
}

static void write_insns(FILE *out, const source *s) {
  for (size_t i = 0; i < s->program->insns.count; i++) {
    const atlas_insn *insn = atlas_insn_at(s->program, i);
    fprintf(out, "  {%u,%u,%u,%u,%u,0,%" PRIu32 ",0,{", insn->op, insn->type, insn->type2, insn->guard,
            insn->operand_count, insn->line);
    for (unsigned k = 0; k < insn->operand_count; k++) {
      if (k > 0) fputc(',', out);
      write_operand(out, s, &insn->operand[k]);
    }
    if (insn->operand_count == 0) fputs("{0,0,0,0,0,0,0,0}", out);
    fprintf(out, "}}, /* %s */\n", s->file_name);
  }
}

static uint32_t moved(uint32_t node, size_t by) { return node == IR_NONE ? IR_NONE : node + (uint32_t)by; }

static void write_nodes(FILE *out, const source *s) {
  for (size_t i = 0; i < s->program->nodes.count; i++) {
    const atlas_node *n = atlas_node_at(s->program, i);
    fprintf(out, "  {%zu,%" PRIu32 "u,%" PRIu32 "u,%" PRIu32 "},\n", n->insn + s->first_insn,
            moved(n->next, s->first_node), moved(n->taken, s->first_node), n->flags);
  }
}

static void write_symbols(FILE *out, const source *s) {
  for (size_t i = 0; i < s->program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(s->program, i);
    fprintf(out, "  {\"%s\",%u,%u,%u,0,%" PRIu32 ",%zu,0},\n", symbol->name, symbol->kind, symbol->type, symbol->access,
            symbol->count, symbol->const_offset + s->first_constant);
  }
}

static void write_constants(FILE *out, const source *s) {
  const uint8_t *bytes = s->program->constants.data;
  for (size_t i = 0; i < s->program->constants.count; i++) fprintf(out, "%u,%s", bytes[i], i % 32 == 31 ? "\n" : "");
}

static void write_entries(FILE *out, const source *s) {
  for (size_t i = 0; i < s->program->entries.count; i++) {
    const atlas_entry *e = atlas_entry_at(s->program, i);
    fprintf(out, "  {%u,%u,0,0,%zu}, /* %s.%s */\n", e->op, e->type, e->node + s->first_node,
            atlas_op_name((atlas_op)e->op), atlas_type_name((atlas_type)e->type));
  }
}

typedef void (*section_writer)(FILE *out, const source *s);

static void write_section(FILE *out, const char *type, const char *name, const source *sources, size_t count,
                          section_writer writer, const char *if_empty) {
  fprintf(out, "static const %s %s[] = {\n", type, name);
  for (size_t i = 0; i < count; i++) writer(out, &sources[i]);
  fprintf(out, "%s};\n\n", if_empty);
}

static void write_library(FILE *out, const source *sources, size_t count, uint32_t registers) {
  fputs("/* Written by tools/embed.c from src/functions; do not edit. */\n#include \"atlas/functions.h\"\n\n", out);
  write_section(out, "atlas_insn", "insns", sources, count, write_insns, "");
  write_section(out, "atlas_node", "nodes", sources, count, write_nodes, "");
  write_section(out, "atlas_symbol", "symbols", sources, count, write_symbols, "  {\"\",0,0,0,0,0,0,0}\n");
  write_section(out, "uint8_t", "constants", sources, count, write_constants, "0\n");
  write_section(out, "atlas_entry", "entries", sources, count, write_entries, "");
  fputs("#define ARRAY(name) {(void *)(uintptr_t)name, sizeof name / sizeof name[0], sizeof name / sizeof name[0], "
        "sizeof name[0]}\n\n"
        "const atlas_program atlas_functions = {\n"
        "  .name = \"functions\",\n"
        "  .insns = ARRAY(insns),\n"
        "  .symbols = ARRAY(symbols),\n"
        "  .entries = ARRAY(entries),\n"
        "  .constants = ARRAY(constants),\n"
        "  .nodes = ARRAY(nodes),\n",
        out);
  fprintf(out, "  .register_count = %" PRIu32 ",\n};\n", registers);
}

static void lay_out(source *sources, size_t count, uint32_t *registers) {
  for (size_t i = 0; i < count; i++) {
    if (sources[i].program->register_count > *registers) *registers = sources[i].program->register_count;
    if (i == 0) continue;
    const source *before = &sources[i - 1];
    sources[i].first_insn = before->first_insn + before->program->insns.count;
    sources[i].first_node = before->first_node + before->program->nodes.count;
    sources[i].first_symbol = before->first_symbol + before->program->symbols.count;
    sources[i].first_constant = before->first_constant + before->program->constants.count;
  }
}

static int embed(source *sources, size_t count, const char *out_path) {
  uint32_t registers = 0;
  int problems = 0;
  for (size_t i = 0; i < count; i++) problems += parse_source(&sources[i]);
  if (problems == 0) problems = check_library(sources, count);
  if (problems != 0) return 1;
  lay_out(sources, count, &registers);
  FILE *out = fopen(out_path, "w");
  if (out == NULL) return report("cannot write %s%s", out_path, "");
  write_library(out, sources, count, registers);
  int is_written = !ferror(out);
  return fclose(out) == 0 && is_written ? 0 : report("cannot write %s%s", out_path, "");
}

int main(int argc, char **argv) {
  if (argc < 3) return report("usage: embed OUT.c FILE.atlas...%s%s", "", "");
  size_t count = (size_t)argc - 2;
  source *sources = calloc(count, sizeof *sources);
  if (sources == NULL) return report("out of memory%s%s", "", "");
  for (size_t i = 0; i < count; i++) sources[i].path = argv[i + 2];
  int result = embed(sources, count, argv[1]);
  for (size_t i = 0; i < count; i++) atlas_program_release(sources[i].program);
  free(sources);
  return result;
}
