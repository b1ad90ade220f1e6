/* at_exit.h - work of the library's own threads that must not run while the process's exit handlers run, such as a
 * driver's. A thread is started only after hg_exit_watch, and does its work between hg_exit_hold and hg_exit_let. */
#ifndef HG_BASE_AT_EXIT_H
#define HG_BASE_AT_EXIT_H

/* 1: the process's exit will wait for held work; 0: it will not, so no thread may be started. */
int hg_exit_watch(void);
/* 0: the process is about to end, and the work must not begin. Otherwise the exit waits for hg_exit_let. A forked
 * process does not wait for its parent's work. */
int hg_exit_hold(void);
void hg_exit_let(void);

#endif
