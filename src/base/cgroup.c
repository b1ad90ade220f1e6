/* cgroup.c - the limits of control groups, read from their files: cgroups(7), and the kernel's documents on cgroup-v2
 * and on the cpu and memory controllers of version 1. Inside a container the path that /proc names may not exist below
 * the mount, where the container's own group is the root: walking up from the path gets there. */
#include "base/cgroup.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One kind of limit. Version 1 may keep it in two files, quota and period; version 2 keeps both numbers in one. */
typedef struct limit_kind {
  const char *controller, *file_v2, *file_v1, *period_file_v1;
} limit_kind;

static const limit_kind cpu_kind = {"cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"};
static const limit_kind memory_kind = {"memory", "memory.max", "memory.limit_in_bytes", NULL};

/* Up to two numbers of the file folder + name; how many there are. "max" and "-1", which mean none, are no numbers. */
static int read_numbers(const char *folder, const char *name, uint64_t value[2]) {
  char path[HG_PATH_BYTES];
  int length = snprintf(path, sizeof path, "%s/%s", folder, name), count = 0;
  FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "r") : NULL;
  if (file == NULL) return 0;
  for (int64_t number = 0; count < 2 && fscanf(file, "%" SCNd64, &number) == 1 && number > 0;)
    value[count++] = (uint64_t)number;
  fclose(file);
  return count;
}

static void lower(uint64_t *limit, uint64_t value) {
  if (value < *limit) *limit = value;
}

static void read_group(const char *folder, const limit_kind *kind, int version, uint64_t *limit) {
  uint64_t value[2], period[2];
  int count = read_numbers(folder, version == 2 ? kind->file_v2 : kind->file_v1, value);
  if (version == 1 && kind->period_file_v1 != NULL && count == 1 &&
      read_numbers(folder, kind->period_file_v1, period) == 1)
    value[count++] = period[0];
  if (count == 2) lower(limit, value[0] / value[1] + (value[0] % value[1] != 0));
  else if (count == 1 && kind->period_file_v1 == NULL) lower(limit, value[0]);
}

/* The group at hierarchy + path and all above it, the hierarchy's root included. */
static void read_groups(const char *hierarchy, const char *path, const limit_kind *kind, int version,
                        uint64_t *limit) {
  char folder[HG_PATH_BYTES];
  size_t root = strlen(hierarchy);
  int length = snprintf(folder, sizeof folder, "%s%s", hierarchy, strcmp(path, "/") == 0 ? "" : path);
  if (length < 0 || (size_t)length >= sizeof folder) return;
  for (;;) {
    read_group(folder, kind, version, limit);
    char *slash = strrchr(folder + root, '/');
    if (slash == NULL) return;
    *slash = '\0';
  }
}

/* "cpu" in "cpuset,cpu,cpuacct" */
static int names(const char *list, size_t length, const char *controller) {
  size_t wanted = strlen(controller);
  for (size_t i = 0; i + wanted <= length; i++) {
    if (memcmp(list + i, controller, wanted) != 0) continue;
    if ((i == 0 || list[i - 1] == ',') && (i + wanted == length || list[i + wanted] == ',')) return 1;
  }
  return 0;
}

/* One line of the membership, "number:controllers:path". Version 1 mounts a hierarchy under its controllers' names;
 * version 2 names no controllers, and is the mount itself or, beside version 1, below it. */
static void read_line(const char *line, const char *mount, const limit_kind *kind, uint64_t *limit) {
  const char *controllers = strchr(line, ':'), *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
  if (path == NULL) return;
  size_t length = (size_t)(path - controllers - 1);
  char hierarchy[HG_PATH_BYTES];
  if (length == 0) {
    snprintf(hierarchy, sizeof hierarchy, "%s/unified", mount);
    read_groups(hierarchy, path + 1, kind, 2, limit);
    read_groups(mount, path + 1, kind, 2, limit);
  } else if (names(controllers + 1, length, kind->controller)) {
    snprintf(hierarchy, sizeof hierarchy, "%s/%.*s", mount, (int)length, controllers + 1);
    read_groups(hierarchy, path + 1, kind, 1, limit);
  }
}

static uint64_t read_limit(const char *membership, const char *mount, const limit_kind *kind) {
  uint64_t limit = UINT64_MAX;
  char line[HG_PATH_BYTES];
  FILE *file = fopen(membership, "r");
  if (file == NULL) return limit;
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    read_line(line, mount, kind, &limit);
  }
  fclose(file);
  return limit;
}

uint64_t hg_cgroup_threads(const char *membership, const char *mount) {
  return read_limit(membership, mount, &cpu_kind);
}
uint64_t hg_cgroup_memory(const char *membership, const char *mount) {
  return read_limit(membership, mount, &memory_kind);
}
