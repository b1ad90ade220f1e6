/* cmd_cache.c - `hologram cache`: what the kernel cache on disk holds, whether it is sound, and emptying it. The one
 * subcommand that reaches below the public headers: programs have no business with these files. */
#include "cli/cli.h"

#include "base/kernel_cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECONDS_NS = 1000000000 };

/* ---- what ls and verify share ------------------------------------------------------------------------------------ */

/* Newest first. */
static int compare_files(const void *a, const void *b) {
  const hg_disk_file *x = a, *y = b;
  if (x->modified_ns != y->modified_ns) return x->modified_ns < y->modified_ns ? 1 : -1;
  return strcmp(x->name, y->name);
}

static void print_program(const hg_disk_entry *entry) {
  char hex[HG_SHA256_HEX];
  hg_sha256_hex(entry->program, hex);
  printf("%s", hex);
}

static void print_time(int64_t modified_ns) {
  char text[32] = "";
  time_t seconds = (time_t)(modified_ns / SECONDS_NS);
  const struct tm *parts = gmtime(&seconds); /* the command has one thread */
  if (parts != NULL) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", parts);
  printf("%s", text);
}

static const char *result_name(hg_disk_result result) {
  return result == HG_DISK_HIT ? "ok" : result == HG_DISK_DAMAGED ? "damaged" : "unreadable";
}

static void print_line(const hg_disk_file *file, hg_disk_result result, const hg_disk_entry *entry) {
  if (result == HG_DISK_HIT) print_program(entry);
  else printf("%-*s", HG_SHA256_HEX - 1, result_name(result));
  printf("  %10" PRIu64 "  ", file->byte_count);
  print_time(file->modified_ns);
  if (result == HG_DISK_HIT)
    printf("  %s, %s, compiler %" PRIu32, entry->target, entry->driver, entry->compiler_version);
  printf("\n");
}

static void print_object(const hg_disk_file *file, hg_disk_result result, const hg_disk_entry *entry) {
  printf("{\"file\":\"%s\",\"state\":\"%s\",\"bytes\":%" PRIu64 ",\"used\":%" PRId64, file->name, result_name(result),
         file->byte_count, file->modified_ns / SECONDS_NS);
  if (result == HG_DISK_HIT) {
    printf(",\"program\":\"");
    print_program(entry);
    printf("\",\"target\":");
    cli_json_string(stdout, entry->target);
    printf(",\"driver\":");
    cli_json_string(stdout, entry->driver);
    printf(",\"compiler\":%" PRIu32 ",\"specialisation_bytes\":%" PRIu64 ",\"payload_bytes\":%" PRIu64,
           entry->compiler_version, entry->specialisation_bytes, entry->payload_bytes);
  }
  printf("}");
}

static void json_head(const hg_disk_cache *disk, const char *problem) {
  printf("{\"folder\":");
  cli_json_string(stdout, disk->folder);
  printf(",\"problem\":");
  if (problem != NULL) cli_json_string(stdout, problem);
  else printf("null");
  printf(",\"byte_cap\":%" PRIu64, disk->byte_cap);
}

/* ---- ls, verify, clear ------------------------------------------------------------------------------------------- */

/* Reads every entry; verify also removes those that do not check out. */
static int show(const hg_disk_cache *disk, const hg_disk_file *files, size_t count, int verify, int json) {
  uint64_t bytes = 0, entries = 0, damaged = 0, unreadable = 0;
  if (json) printf(",\"entries\":[");
  for (size_t i = 0; i < count; i++) {
    bytes += files[i].byte_count;
    if (!files[i].is_entry) continue;
    hg_disk_entry entry;
    hg_disk_result result = hg_disk_cache_examine(disk, files[i].name, &entry);
    damaged += result == HG_DISK_DAMAGED;
    unreadable += result == HG_DISK_MISS;
    if (verify && result == HG_DISK_DAMAGED) hg_disk_cache_remove(disk, files[i].name);
    if (json && entries > 0) printf(",");
    entries++;
    if (json) print_object(&files[i], result, &entry);
    else if (!verify || result != HG_DISK_HIT) print_line(&files[i], result, &entry);
  }
  if (json) printf("],\"bytes\":%" PRIu64 ",\"damaged\":%" PRIu64 "}\n", bytes, damaged);
  else
    printf("%" PRIu64 " entr%s, %" PRIu64 " damaged%s, %" PRIu64 " of at most %" PRIu64 " bytes in %s\n", entries,
           entries == 1 ? "y" : "ies", damaged, verify && damaged > 0 ? " and removed" : "", bytes, disk->byte_cap,
           disk->folder);
  return verify && damaged + unreadable > 0 ? CLI_BAD_INPUT : CLI_OK;
}

static int clear(const hg_disk_cache *disk, const hg_disk_file *files, size_t count, int json) {
  uint64_t bytes = 0, removed = 0;
  for (size_t i = 0; i < count; i++) {
    if (!hg_disk_cache_remove(disk, files[i].name)) continue;
    removed++;
    bytes += files[i].byte_count;
  }
  if (json) printf(",\"removed\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n", removed, bytes);
  else
    printf("removed %" PRIu64 " file%s, %" PRIu64 " bytes, from %s\n", removed, removed == 1 ? "" : "s", bytes,
           disk->folder);
  return CLI_OK;
}

static int act(const char *action, int json) {
  hg_allocator allocator;
  hg_disk_cache disk;
  hg_array files = {.element_size = sizeof(hg_disk_file)};
  hg_allocator_resolve(NULL, &allocator);
  hg_disk_cache_open(&allocator, &disk);
  const char *problem = hg_disk_cache_problem(&disk);
  if (!hg_disk_cache_list(&disk, &files)) {
    hg_array_release(&allocator, &files);
    return cli_fail(CLI_BAD_INPUT, "out of memory for the list of %s", disk.folder);
  }
  if (files.count > 0) qsort(files.data, files.count, sizeof(hg_disk_file), compare_files);
  if (json) json_head(&disk, problem);
  else if (problem != NULL) printf("the kernel cache on disk is not used: %s\n", problem);
  int code = CLI_OK;
  if (disk.folder[0] == '\0') printf("%s", json ? "}\n" : "");
  else if (strcmp(action, "clear") == 0) code = clear(&disk, files.data, files.count, json);
  else code = show(&disk, files.data, files.count, strcmp(action, "verify") == 0, json);
  hg_array_release(&allocator, &files);
  return code;
}

int cmd_cache(int argc, char **argv) {
  const char *action = NULL;
  int json = 0;
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "cache") ? CLI_OK : CLI_USAGE;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0) json = 1;
    else if (argv[i][0] == '-') return cli_usage_error("cache", "there is no option '%s'", argv[i]);
    else if (action != NULL)
      return cli_usage_error("cache", "one action at a time: '%s' comes after '%s'", argv[i], action);
    else action = argv[i];
  }
  if (action == NULL) return cli_usage_error("cache", "what about it? hologram cache ls|verify|clear");
  if (strcmp(action, "ls") != 0 && strcmp(action, "verify") != 0 && strcmp(action, "clear") != 0)
    return cli_usage_error("cache", "there is no action '%s': ls, verify or clear", action);
  return act(action, json);
}
