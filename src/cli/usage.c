/* usage.c - the manual pages of the command, one a subcommand: what --help prints, and what tools/manpages.c makes
 * pages for man of. */
#include "cli/cli.h"

#include <string.h>

#define EXIT_CODES                                                                                                    \
  "EXIT STATUS\n"                                                                                                     \
  "    0  all went well\n"                                                                                            \
  "    1  bad input: a file that is missing or not valid, a program that does not verify, a parameter that does not " \
  "fit\n"                                                                                                             \
  "    2  wrong usage of the command line\n"                                                                          \
  "    3  the program ran and faulted\n"

static const cli_page pages[] = {
    {NULL,
     {"NAME\n"
      "    hologram - run and inspect Atlas programs\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram COMMAND [ARGUMENTS]\n"
      "    hologram COMMAND --help\n"
      "    hologram --help | --version\n"
      "\n"
      "DESCRIPTION\n"
      "    An Atlas program is a data-parallel program that gives the same bits on every device. It is written as "
      "text\n"
      "    (.atlas) or held in a binary form (.atb); every command takes either and tells them apart by their first "
      "bytes.\n"
      "\n"
      "COMMANDS\n"
      "    run    run a program on arrays from .npy files\n"
      "    check  verify programs\n"
      "    asm    text form to binary form\n"
      "    dis    binary form to text form\n"
      "    canon  the canonical form of a program\n"
      "    hash   the identity of programs: SHA-256 of the canonical form\n"
      "    equal  whether two programs are the same\n"
      "    emit   what the compiler makes of a program\n"
      "    cache  compiled kernels kept on disk\n"
      "    info   version, backends and device\n"
      "    help   this page, or that of a command\n"
      "\n"
      "    A failure is one sentence on the standard error, beginning with \"hologram: \".\n"
      "\n" EXIT_CODES,
      "\n"
      "EXAMPLES\n"
      "    hologram run saxpy.atlas --buffer x=x.npy --buffer y=y.npy --scalar a=2 --out y=result.npy\n"
      "    hologram check *.atlas\n",
      NULL}},
    {"run",
     {"NAME\n"
      "    hologram run - run a program on arrays from .npy files\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram run PROGRAM [--buffer NAME=FILE.npy]... [--scalar NAME=VALUE]... [--out NAME=FILE.npy]...\n"
      "                 [--size NAME=COUNT]... [--pool NAME=BYTES]... [--table NAME:ENTRY=FILE.npy]...\n"
      "                 [--lanes N | --grid X[,Y[,Z]] [--block X[,Y[,Z]]]]\n"
      "                 [--backend auto|cpu|cuda|metal] [--step-limit N] [--time] [--json]\n"
      "\n"
      "DESCRIPTION\n"
      "    Checks PROGRAM (text or binary form), gives it its parameters, runs it once and writes the outputs asked "
      "for.\n"
      "    Arrays are NumPy's .npy files: little-endian, C order, of the element type that the program declares. bf16 "
      "is\n"
      "    held as '<u2', f8e4m3 and f8e5m2 as '|u1', bool as '|b1'. An option may be written --name VALUE or "
      "--name=VALUE.\n"
      "\n"
      "    When the program faults, the sentence says at which line and lane; outputs are written all the same, "
      "because what\n"
      "    the other lanes did stands.\n"
      "\n",
      "OPTIONS\n"
      "    --buffer NAME=FILE.npy\n"
      "        Contents of a buffer. Every in and inout buffer needs this or --size.\n"
      "    --size NAME=COUNT\n"
      "        A buffer of COUNT elements, all zero.\n"
      "    --out NAME=FILE.npy\n"
      "        Write an out or inout buffer after the run (NAME:ENTRY for an entry of a table, NAME for a pool's "
      "bytes). Its\n"
      "        shape is that of its own input file, else of the first input with as many elements, else "
      "one-dimensional.\n"
      "        An out buffer that is not given is created, all zero, with the element count of the first buffer given "
      "by a\n"
      "        file, else with as many elements as there are lanes.\n"
      "    --scalar NAME=VALUE\n"
      "        Value of a scalar, written like a constant in a program: 2, -1.5e-3, 0x1.8p3, inf; for a floating-point "
      "type\n"
      "        0x and hexadecimal digits without a p are its bits.\n"
      "    --table NAME:ENTRY=FILE.npy\n"
      "        Bytes of one entry of a table; an array of any type. An entry that is not given has no bytes.\n"
      "    --pool NAME=BYTES\n"
      "        Size of a pool; its bytes are zero.\n"
      "    --lanes N\n"
      "        A linear launch of N lanes. Without this and --grid: as many as the first output has elements.\n"
      "    --grid X[,Y[,Z]], --block X[,Y[,Z]]\n"
      "        Blocks in the grid and lanes in a block. Without --block: what the program requires, else "
      "its\n"
      "        default, else 1.\n"
      "    --backend NAME\n"
      "        Where to run; auto (the default) picks the best one that works here. Of several GPUs the first is used, "
      "which\n"
      "        CUDA_VISIBLE_DEVICES in the environment chooses.\n"
      "    --step-limit N\n"
      "        Backward branches a lane may take before it ends with a fault (default 4294967296).\n"
      "    --time\n"
      "        Print how long the program itself took.\n"
      "    --json\n"
      "        Print the result as one JSON object on the standard output: status (HG_OK, HG_FAULT, ...), error, "
      "program,\n"
      "        backend, engine, lanes, nanoseconds, fault (null, or kind, instruction, line, lane, code, buffer, "
      "index,\n"
      "        extent) and outputs (name, file, dtype, shape). After bad input: status and error only.\n"
      "\n",
      EXIT_CODES
      "\n"
      "EXAMPLES\n"
      "    hologram run saxpy.atlas --buffer x=x.npy --buffer y=y.npy --scalar a=2 --out y=result.npy\n"
      "    hologram run mandelbrot.atlas --lanes 65536 --scalar width=256 --scalar left=-2.1 --scalar top=1.55 \\\n"
      "                 --scalar pixel=0.012 --scalar limit=100 --out steps=steps.npy --time\n"}},
    {"check",
     {"NAME\n"
      "    hologram check - verify programs\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram check [-q] PROGRAM...\n"
      "\n"
      "DESCRIPTION\n"
      "    Reads each PROGRAM (text or binary form) and verifies it. For each one prints a line with what it is, or "
      "one\n"
      "    sentence on the standard error that says where it is wrong and what was expected.\n"
      "\n"
      "OPTIONS\n"
      "    -q, --quiet  print nothing for a program that verifies\n"
      "\n" EXIT_CODES "\n"
      "EXAMPLES\n"
      "    hologram check *.atlas\n",
      NULL, NULL}},
    {"asm",
     {"NAME\n"
      "    hologram asm - text form to binary form\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram asm PROGRAM -o FILE\n"
      "\n"
      "DESCRIPTION\n"
      "    Verifies PROGRAM and writes its binary form: little-endian, versioned, checksummed, with line numbers. A "
      "PROGRAM\n"
      "    in binary form is written anew.\n"
      "\n"
      "OPTIONS\n"
      "    -o, --output FILE  the file to write (by convention .atb)\n"
      "\n" EXIT_CODES "\n"
      "EXAMPLES\n"
      "    hologram asm saxpy.atlas -o saxpy.atb\n",
      NULL, NULL}},
    {"dis",
     {"NAME\n"
      "    hologram dis - binary form to text form\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram dis PROGRAM [-o FILE]\n"
      "\n"
      "DESCRIPTION\n"
      "    Verifies PROGRAM and writes its text form, which assembles to an equal program. A PROGRAM in text form is "
      "written\n"
      "    in the canonical layout, without comments.\n"
      "\n"
      "OPTIONS\n"
      "    -o, --output FILE  the file to write (default: the standard output)\n"
      "\n" EXIT_CODES "\n"
      "EXAMPLES\n"
      "    hologram dis saxpy.atb\n",
      NULL, NULL}},
    {"canon",
     {"NAME\n"
      "    hologram canon - print the canonical text of a program\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram canon PROGRAM\n"
      "\n"
      "DESCRIPTION\n"
      "    The canonical form keeps what a program computes and drops how it was written: labels, comments, register "
      "numbers,\n"
      "    the order of independent instructions, the operand order of commutative ones, dead code and repeated pure\n"
      "    computation. Two programs with one canonical form give the same bits for every input.\n"
      "\n"
      "    The text is a program with the hash of PROGRAM; `hologram canon` prints it unchanged. Names are kept, calls "
      "are\n"
      "    inlined. A form that needs more than 252 registers or 16 predicates at once is refused with a sentence; "
      "`hologram\n"
      "    emit --target ssa` prints any.\n"
      "\n" EXIT_CODES "\n"
      "EXAMPLES\n"
      "    hologram canon saxpy.atlas > canonical.atlas\n"
      "    hologram equal saxpy.atlas canonical.atlas\n",
      NULL, NULL}},
    {"hash",
     {"NAME\n"
      "    hologram hash - print the identity of programs\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram hash PROGRAM...\n"
      "\n"
      "DESCRIPTION\n"
      "    Prints a line a program, as sha256sum does: the SHA-256 of its canonical form (and of the ISA, canonical "
      "and\n"
      "    numerics versions) in hexadecimal, two spaces, the file's name.\n"
      "\n" EXIT_CODES,
      NULL, NULL}},
    {"equal",
     {"NAME\n"
      "    hologram equal - whether two programs are the same\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram equal A B\n"
      "\n"
      "DESCRIPTION\n"
      "    Compares the canonical forms. Where they differ, prints the first lines that do, in SSA; `hologram emit "
      "--target\n"
      "    ssa` prints the whole.\n"
      "    Equal programs give the same bits for every input. Programs that differ may still compute the same.\n"
      "\n"
      "EXIT STATUS\n"
      "    0  the programs are the same\n"
      "    1  they differ\n"
      "    2  a program could not be read, or wrong usage\n",
      NULL, NULL}},
    {"emit",
     {"NAME\n"
      "    hologram emit - print what the compiler makes of a program\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram emit --target ssa|ptx|vector|x86-avx512|x86-avx2|arm64 [--capability N] PROGRAM\n"
      "\n"
      "DESCRIPTION\n"
      "    --target ssa  the canonical form in static single assignment, with the program's own parameter names. A "
      "value stands\n"
      "                  in the block that first needs it; it does not depend on the block unless its arguments do.\n"
      "    --target vector  what the CPU engines run: instructions over vector registers, divergence as masks.\n"
      "    --target x86-avx512, x86-avx2, arm64  the machine code for that processor, whichever this one is, as "
      "objdump\n"
      "                  shows it, or in hexadecimal where there is none that knows it.\n"
      "    --target ptx  the kernel for NVIDIA GPUs as PTX text. Comments give the number and name of the instruction "
      "that the\n"
      "                  lines behind them come from.\n"
      "\n"
      "OPTIONS\n"
      "    --capability N  of the GPU, from 75 to 999, 90 for 9.0: newer instructions where they help (default: 75, "
      "which every\n"
      "                    newer GPU takes too)\n"
      "\n" EXIT_CODES,
      NULL, NULL}},
    {"info",
     {"NAME\n"
      "    hologram info - version, backends and device\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram info [--json]\n"
      "\n"
      "DESCRIPTION\n"
      "    Prints the version, which backends this build has and why the others do not work here, and what the device "
      "that\n"
      "    --backend auto picks can do. Of several GPUs it is the first, which CUDA_VISIBLE_DEVICES in the environment "
      "chooses.\n"
      "    Says which of the environment's settings for the device are ignored.\n"
      "\n"
      "OPTIONS\n"
      "    --json  print one JSON object: version, isa_version, numerics_version, binary_version, backends (name, "
      "available,\n"
      "            reason), backend, selection, device, engine, compute_units, memory_bytes, max_block_lanes,\n"
      "            max_shared_bytes, settings (null, or which of the environment's are ignored)\n"
      "\n" EXIT_CODES "\n"
      "EXAMPLES\n"
      "    hologram info\n",
      NULL, NULL}},
    {"cache",
     {"NAME\n"
      "    hologram cache - compiled kernels kept on disk\n"
      "\n"
      "SYNOPSIS\n"
      "    hologram cache ls|verify|clear [--json]\n"
      "\n"
      "DESCRIPTION\n"
      "    Compiled kernels are kept in a folder, so that a program is compiled once and not once a process. A damaged "
      "file\n"
      "    is never used. Removing files, or the folder, at any time costs compile time and nothing else.\n"
      "\n"
      "    ls      list the entries, the most recently used first: program, size, time of use (UTC), and for what it "
      "was\n"
      "            compiled\n"
      "    verify  read every entry, and remove those that do not check out; exit status 1 if there were any\n"
      "    clear   remove every entry, but no file that the cache has not made\n"
      "\n",
      "OPTIONS\n"
      "    --json  print one JSON object: folder, problem (null, or why the cache is not used), byte_cap,\n"
      "            remark (null, or which setting is ignored); for ls and verify bytes, damaged and entries (file,\n"
      "            state, bytes, used; where state is ok also program, target, driver, compiler,\n"
      "            specialisation_bytes, payload_bytes); for clear removed and bytes\n"
      "\n"
      "ENVIRONMENT\n"
      "    HOLOGRAM_CACHE=0     keep nothing on disk\n"
      "    HOLOGRAM_CACHE_DIR   the folder; otherwise hologram in $XDG_CACHE_HOME or in $HOME/.cache (on Windows\n"
      "                         %LOCALAPPDATA%\\hologram\\cache)\n"
      "    HOLOGRAM_CACHE_SIZE  most bytes to keep (default 268435456); the least recently used entries make room\n"
      "\n" EXIT_CODES,
      "\n"
      "EXAMPLES\n"
      "    hologram cache ls\n"
      "    HOLOGRAM_CACHE_DIR=/var/tmp/kernels hologram cache clear\n"}},
};

const cli_page *cli_help_page(size_t index) {
  return index < sizeof pages / sizeof pages[0] ? &pages[index] : NULL;
}

int cli_print_help(FILE *file, const char *command) {
  const cli_page *p = NULL;
  for (size_t i = 0; (p = cli_help_page(i)) != NULL; i++) {
    if (p->command == NULL || command == NULL ? p->command != command : strcmp(p->command, command) != 0) continue;
    for (size_t k = 0; k < CLI_PAGE_PIECES && p->text[k] != NULL; k++) fputs(p->text[k], file);
    return 1;
  }
  return 0;
}
