/* disassemble.h - machine code for people. */
#ifndef HG_CLI_DISASSEMBLE_H
#define HG_CLI_DISASSEMBLE_H

#include "base/memory.h"

/* Appends the code as text: an objdump's where one is installed that knows the machine ("i386:x86-64", "aarch64"), else
 * the bytes in hexadecimal, 16 a line. HG_OUT_OF_MEMORY. */
hg_status cli_disassemble(const hg_allocator *allocator, const char *machine, const uint8_t *code, size_t byte_count,
                          hg_array *text);

#endif
