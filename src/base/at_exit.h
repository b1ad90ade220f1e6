/* at_exit.h - work of the library's own threads that must not go on while the process's exit handlers run, such as a
 * driver's. A thread is started only after hg_exit_watch, and does its work between hg_exit_hold and hg_exit_let. */
#ifndef HG_BASE_AT_EXIT_H
#define HG_BASE_AT_EXIT_H

/* 1: from now on the process's exit waits for work that is held; 0: it would not, so no thread must be started. */
int hg_exit_watch(void);
/* 0: the process is about to end, and the work must not begin. Otherwise the exit waits for hg_exit_let. A process that
 * is forked off waits for nothing that its parent does. */
int hg_exit_hold(void);
void hg_exit_let(void);

#endif
