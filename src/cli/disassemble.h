/* disassemble.h - machine code for people. */
#ifndef HG_CLI_DISASSEMBLE_H
#define HG_CLI_DISASSEMBLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Prints the code: an objdump's text where one is installed that knows the machine ("i386:x86-64", "aarch64"), else the
 * bytes in hexadecimal, 16 a line. */
void cli_disassemble(FILE *out, const char *machine, const uint8_t *code, size_t byte_count);

#endif
