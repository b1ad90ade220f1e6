/* thread_local.h - how a double declares the first of the variables that each thread has for itself.
 *
 * A double is loaded when the program runs, so its thread-local memory comes from malloc. If that begins 16 bytes
 * behind the start of a page, the sanitizers of LLVM 14 take it for a block of glibc 2.19 (sanitizer_tls_get_addr.cpp):
 * they read AddressSanitizer's header as that glibc's, and LeakSanitizer crashes on the address in it. Memory that is
 * aligned to 64 bytes never begins there. */
#ifndef SIM_THREAD_LOCAL_H
#define SIM_THREAD_LOCAL_H

#define ALIGNED_THREAD_LOCAL _Alignas(64) _Thread_local

#endif
