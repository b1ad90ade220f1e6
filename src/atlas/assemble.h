/* assemble.h - what the parser, the decoder and the builder share while they put a program together. */
#ifndef HG_ATLAS_ASSEMBLE_H
#define HG_ATLAS_ASSEMBLE_H

#include "atlas/program.h"

/* Appends a symbol after checking its name and the limits of its kind. The values of a constant table are appended by
 * atlas_program_add_constants. HG_INVALID_ARGUMENT with a sentence that has no position yet; HG_OUT_OF_MEMORY. */
hg_status atlas_program_declare(atlas_program *program, const atlas_symbol *symbol);

/* Appends `byte_count` bytes of constants and pads them to a multiple of 8. `*offset` is where they start. */
hg_status atlas_program_add_constants(atlas_program *program, const void *bytes, size_t byte_count, uint32_t *offset);

/* The symbol of a name, or NULL. */
const atlas_symbol *atlas_program_find_symbol(const atlas_program *program, const char *name, size_t length);

/* Copies a name that atlas_name_is_valid accepted. */
void atlas_name_copy(char destination[ATLAS_MAX_NAME + 1], const char *name, size_t length);

/* A letter and a number, without the time that snprintf takes: "s12". */
void atlas_name_by_number(char *name, char letter, uint32_t number);

/* Label names to indices of program->labels: a hash table, because a program may have very many. */
typedef struct atlas_label_index {
  uint32_t *slots; /* 1 + label index; 0: free. A power of two of them. */
  size_t slot_count, used;
} atlas_label_index;

#define ATLAS_NO_LABEL UINT32_MAX

uint32_t atlas_label_find(const atlas_label_index *index, const hg_array *labels, const char *name, size_t length);

/* Enters labels[label]. `*found` is an earlier label of that name (nothing is entered then) or ATLAS_NO_LABEL.
 * HG_OUT_OF_MEMORY. */
hg_status atlas_label_enter(const hg_allocator *allocator, atlas_label_index *index, const hg_array *labels,
                            uint32_t label, uint32_t *found);
void atlas_label_index_release(const hg_allocator *allocator, atlas_label_index *index);

/* The program may have ATLAS_MOST_REGISTERS registers (insn.h), and is ended by atlas_builder_close and
 * atlas_program_trust: no text, binary file or interpreter has it, only the compiler. */
void atlas_builder_has_many(atlas_builder *builder);

/* The builder, which has been given nothing yet, follows the program (builder.h), which must outlive it. */
void atlas_builder_follow(atlas_builder *builder, atlas_program *program);

/* Returns the builder's program before the last step; or the program that it follows, complete, if they are equal.
 * Always releases the builder. */
hg_status atlas_builder_close(atlas_builder *builder, atlas_program **out);

/* The last step of all three: verifies the program and passes it to the caller, or releases it. */
hg_status atlas_program_complete(atlas_program *program, const char *source_name, atlas_program **out);

/* The same for what the library has written itself, which debug builds alone verify. */
hg_status atlas_program_trust(atlas_program *program, atlas_program **out);

#endif
