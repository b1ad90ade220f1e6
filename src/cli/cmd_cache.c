/* cmd_cache.c - `hologram cache`: what the kernel cache on disk holds, whether it is sound, emptying and filling it. */
#include "cli/cache_fill.h"
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

static int fill(const hg_cache_info *info, uint64_t seconds, int json) {
  if (info->problem == NULL) return cli_cache_fill(info->folder, seconds, json);
  if (json) printf("}\n");
  return cli_fail(CLI_BAD_INPUT, "there is no kernel cache to fill: %s", info->problem);
}

typedef struct request {
  const char *action;
  int json, has_seconds;
  uint64_t seconds; /* of fill */
} request;

static int act(const request *r) {
  hg_cache_info info = {.size = sizeof info};
  if (hg_cache_query(&info) != HG_OK) return cli_fail(CLI_BAD_INPUT, "%s", hg_last_error());
  listing l = {.info = &info, .verify = strcmp(r->action, "verify") == 0, .json = r->json};
  if (r->json) json_head(&info);
  if (!r->json && info.remark != NULL) printf("%s\n", info.remark);
  if (strcmp(r->action, "fill") == 0) return fill(&info, r->seconds, r->json);
  if (!r->json && info.problem != NULL) printf("the kernel cache on disk is not used: %s\n", info.problem);
  if (info.folder[0] != '\0') return strcmp(r->action, "clear") == 0 ? clear(&l) : show(&l);
  printf("%s", r->json ? "}\n" : "");
  return CLI_OK;
}

static int is_action(const char *name) {
  static const char *const actions[] = {"ls", "verify", "clear", "fill"};
  for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
    if (strcmp(name, actions[i]) == 0) return 1;
  return 0;
}

static int read_seconds(const char *text, request *r) {
  r->has_seconds = 1;
  if (text != NULL && cli_parse_u64(text, &r->seconds) && r->seconds > 0 && r->seconds <= 86400) return CLI_OK;
  return cli_usage_error("cache", "--seconds takes a number from 1 to 86400, not '%s'", text != NULL ? text : "");
}

int cmd_cache(int argc, char **argv) {
  request r = {.seconds = 300};
  for (int i = 1; i < argc; i++)
    if (cli_is_help(argv[i])) return cli_print_help(stdout, "cache") ? CLI_OK : CLI_USAGE;
  for (int i = 1; i < argc; i++) {
    int is_seconds = strcmp(argv[i], "--seconds") == 0;
    if (strcmp(argv[i], "--json") == 0) r.json = 1;
    else if (is_seconds && read_seconds(++i < argc ? argv[i] : NULL, &r) != CLI_OK) return CLI_USAGE;
    else if (is_seconds) continue;
    else if (argv[i][0] == '-') return cli_usage_error("cache", "there is no option '%s'", argv[i]);
    else if (r.action != NULL)
      return cli_usage_error("cache", "one action at a time: '%s' comes after '%s'", argv[i], r.action);
    else r.action = argv[i];
  }
  if (r.action == NULL) return cli_usage_error("cache", "what about it? hologram cache ls|verify|clear|fill");
  if (!is_action(r.action))
    return cli_usage_error("cache", "there is no action '%s': ls, verify, clear or fill", r.action);
  if (r.has_seconds && strcmp(r.action, "fill") != 0)
    return cli_usage_error("cache", "--seconds is for fill, not for %s", r.action);
  return act(&r);
}
