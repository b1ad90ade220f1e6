/* cgroup.h - the limits that Linux control groups (version 1 or 2) set for this process: a container's share of the
 * machine.
 *
 * `membership` is the file that names the groups of the process (/proc/self/cgroup), `mount` the folder of their
 * hierarchies (/sys/fs/cgroup). A group's limit holds for all groups below it, so the least limit counts; a file that
 * cannot be read sets no limit. */
#ifndef HG_BASE_CGROUP_H
#define HG_BASE_CGROUP_H

#include <stdint.h>

/* The CPU quota, rounded up to whole CPUs; UINT64_MAX: no limit. */
uint64_t hg_cgroup_threads(const char *membership, const char *mount);

/* In bytes; UINT64_MAX: no limit. */
uint64_t hg_cgroup_memory(const char *membership, const char *mount);

#endif
