/* cmd_cache.c - `hologram cache`: what the kernel cache on disk holds, whether it is sound, and emptying it. */
#include "cli/cli.h"

#include "hologram/hologram.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { SECONDS_NS = 1000000000, HASH_HEX = 2 * ATLAS_HASH_BYTES };

typedef struct listing {
  const hg_cache_info *info;
  int verify, json;
  uint64_t bytes, entries, damaged, refused, unreadable, removed;
} listing;

/* ---- an entry ---------------------------------------------------------------------------------------------------- */

static void print_program(const hg_cache_file *file) {
  for (int i = 0; i < ATLAS_HASH_BYTES; i++) printf("%02x", file->program[i]);
}

static void print_time(int64_t used_ns) {
  char text[32] = "";
  time_t seconds = (time_t)(used_ns / SECONDS_NS);
  const struct tm *parts = gmtime(&seconds); /* the command has one thread */
  if (parts != NULL) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", parts);
  printf("%s", text);
}

static const char *state_name(hg_cache_state state) {
  return state == HG_CACHE_OK        ? "ok"
         : state == HG_CACHE_DAMAGED ? "damaged"
         : state == HG_CACHE_REFUSED ? "refused"
                                     : "unreadable";
}

static void print_line(const hg_cache_file *file) {
  if (file->state == HG_CACHE_OK) print_program(file);
  else printf("%-*s", HASH_HEX, state_name(file->state));
  printf("  %10" PRIu64 "  ", file->byte_count);
  print_time(file->used_ns);
  if (file->state == HG_CACHE_OK)
    printf("  %s, %s, compiler %" PRIu32, file->target, file->driver, file->compiler_version);
  printf("\n");
}

static void print_object(const hg_cache_file *file) {
  printf("{\"file\":\"%s\",\"state\":\"%s\",\"bytes\":%" PRIu64 ",\"used\":%" PRId64, file->name,
         state_name(file->state), file->byte_count, file->used_ns / SECONDS_NS);
  if (file->state == HG_CACHE_OK) {
    printf(",\"program\":\"");
    print_program(file);
    printf("\",\"target\":");
    cli_json_string(stdout, file->target);
    printf(",\"driver\":");
    cli_json_string(stdout, file->driver);
    printf(",\"compiler\":%" PRIu32 ",\"specialisation_bytes\":%" PRIu64 ",\"payload_bytes\":%" PRIu64,
           file->compiler_version, file->specialisation_bytes, file->payload_bytes);
  }
  printf("}");
}

/* ---- ls, verify, clear ------------------------------------------------------------------------------------------- */

/* verify also removes what does not check out. */
static void show_file(void *user, const hg_cache_file *file) {
  listing *l = user;
  l->bytes += file->byte_count;
  if (file->state == HG_CACHE_NO_ENTRY) return;
  l->damaged += file->state == HG_CACHE_DAMAGED;
  l->refused += file->state == HG_CACHE_REFUSED;
  l->unreadable += file->state == HG_CACHE_UNREADABLE;
  if (l->verify && file->state == HG_CACHE_DAMAGED) hg_cache_remove(file->name);
  if (l->json && l->entries > 0) printf(",");
  l->entries++;
  if (l->json) print_object(file);
  else if (!l->verify || file->state != HG_CACHE_OK) print_line(file);
}

static void remove_file(void *user, const hg_cache_file *file) {
  listing *l = user;
  if (hg_cache_remove(file->name) != HG_OK) return;
  l->removed++;
  l->bytes += file->byte_count;
}

static void print_sums(const listing *l) {
  if (l->refused > 0)
    printf("%" PRIu64
           " refused: links, no regular files, or such as others may have written; remove them by hand or by "
           "hologram cache clear\n",
           l->refused);
  printf("%" PRIu64 " entr%s, %" PRIu64 " damaged%s, %" PRIu64 " of at most %" PRIu64 " bytes in %s\n", l->entries,
         l->entries == 1 ? "y" : "ies", l->damaged, l->verify && l->damaged > 0 ? " and removed" : "", l->bytes,
         l->info->byte_cap, l->info->folder);
}

static int show(listing *l) {
  if (l->json) printf(",\"entries\":[");
  if (hg_cache_visit(1, show_file, l) != HG_OK) return cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  if (l->json)
    printf("],\"bytes\":%" PRIu64 ",\"damaged\":%" PRIu64 ",\"refused\":%" PRIu64 "}\n", l->bytes, l->damaged,
           l->refused);
  else print_sums(l);
  return l->verify && l->damaged + l->refused + l->unreadable > 0 ? CLI_BAD_INPUT : CLI_OK;
}

static int clear(listing *l) {
  if (hg_cache_visit(0, remove_file, l) != HG_OK) return cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  if (l->json) printf(",\"removed\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n", l->removed, l->bytes);
  else
    printf("removed %" PRIu64 " file%s, %" PRIu64 " bytes, from %s\n", l->removed, l->removed == 1 ? "" : "s", l->bytes,
           l->info->folder);
  return CLI_OK;
}

static void json_head(const hg_cache_info *info) {
  printf("{\"folder\":");
  cli_json_string(stdout, info->folder);
  printf(",\"problem\":");
  cli_json_string(stdout, info->problem);
  printf(",\"byte_cap\":%" PRIu64 ",\"remark\":", info->byte_cap);
  cli_json_string(stdout, info->remark);
}

static int act(const char *action, int json) {
  hg_cache_info info = {.size = sizeof info};
  if (hg_cache_query(&info) != HG_OK) return cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  listing l = {.info = &info, .verify = strcmp(action, "verify") == 0, .json = json};
  if (json) json_head(&info);
  if (!json && info.remark != NULL) printf("%s\n", info.remark);
  if (!json && info.problem != NULL) printf("the kernel cache on disk is not used: %s\n", info.problem);
  if (info.folder[0] != '\0') return strcmp(action, "clear") == 0 ? clear(&l) : show(&l);
  printf("%s", json ? "}\n" : "");
  return CLI_OK;
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
