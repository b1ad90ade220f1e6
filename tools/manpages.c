/* manpages.c - writes the manual pages when Hologram is built, from the texts that `hologram COMMAND --help` prints
 * (src/cli/usage.c), so that there is one text:
 *
 *   manpages FOLDER VERSION COMMAND...
 *
 * makes hologram.1 and hologram-COMMAND.1 for each command. The commands must be those that have a text.
 *
 * In a text, headings stand at the margin and all else is indented by four. "TERM  explanation", or TERM alone above
 * lines that are indented further, begins an item; other lines are paragraphs. Synopsis and examples stay as they are.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT = 4, MOST_PATH = 4096 };

typedef struct writer {
  FILE *file;
  int is_verbatim;  /* synopsis, examples */
  int is_name;      /* the section NAME: "hologram run - ..." */
  int wants_break;  /* the next line begins a paragraph */
  int in_item;
} writer;

/* As it stands: nothing of it means anything to troff. */
static void put_plain(writer *w, const char *text, size_t length) {
  static const struct {
    char character;
    const char *escape;
  } escapes[] = {{'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  if (length > 0 && text[0] == '.') fputs("\\&", w->file);
  for (size_t i = 0; i < length; i++) {
    const char *escape = NULL;
    for (size_t k = 0; k < sizeof escapes / sizeof escapes[0]; k++)
      if (escapes[k].character == text[i]) escape = escapes[k].escape;
    if (escape != NULL) fputs(escape, w->file);
    else fputc(text[i], w->file);
  }
}

static void put_line(writer *w, const char *text, size_t length) {
  put_plain(w, text, length);
  fputc('\n', w->file);
}

static int is_word(const char *line, size_t length, const char *word) {
  return strlen(word) == length && memcmp(line, word, length) == 0;
}

static void heading(writer *w, const char *line, size_t length) {
  int was_verbatim = w->is_verbatim;
  w->is_name = is_word(line, length, "NAME");
  w->is_verbatim = is_word(line, length, "SYNOPSIS") || is_word(line, length, "EXAMPLES");
  fprintf(w->file, "%s.SH %.*s\n%s", was_verbatim ? ".fi\n" : "", (int)length, line, w->is_verbatim ? ".nf\n" : "");
  w->wants_break = w->in_item = 0;
}

/* "hologram run - what it does" is "hologram-run \- what it does", as whatis wants it. */
static void name(writer *w, const char *line, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (length - i >= 3 && memcmp(line + i, " - ", 3) == 0) {
      fputs(" \\- ", w->file);
      put_line(w, line + i + 3, length - i - 3);
      return;
    }
    put_plain(w, line[i] == ' ' ? "-" : line + i, 1);
  }
}

static void item(writer *w, const char *line, size_t term, size_t length) {
  fputs(".TP\n\\fB", w->file);
  put_plain(w, line, term);
  fputs("\\fR\n", w->file);
  while (term < length && line[term] == ' ') term++;
  if (term < length) put_line(w, line + term, length - term);
  w->in_item = 1;
  w->wants_break = 0;
}

static size_t indent_of(const char *line) { return strspn(line, " "); }

/* The bytes of a line before two blanks; all of it where there are none. */
static size_t term_of(const char *line, size_t length) {
  for (size_t i = 0; i + 1 < length; i++)
    if (line[i] == ' ' && line[i + 1] == ' ') return i;
  return length;
}

static void body(writer *w, const char *line, size_t length, const char *next) {
  size_t indent = indent_of(line);
  line += indent < INDENT ? indent : INDENT;
  length -= indent < INDENT ? indent : INDENT;
  if (w->is_verbatim) {
    if (w->wants_break) fputs(".PP\n", w->file);
    put_line(w, line, length);
  } else if (w->is_name) {
    name(w, line, length);
  } else if (indent > INDENT) {
    if (w->wants_break) fputs(".IP\n", w->file);
    put_line(w, line + (indent - INDENT), length - (indent - INDENT));
  } else if (term_of(line, length) < length || indent_of(next) > INDENT) {
    item(w, line, term_of(line, length), length);
  } else {
    if (w->wants_break || w->in_item) fputs(".PP\n", w->file);
    w->in_item = 0;
    put_line(w, line, length);
  }
  w->wants_break = 0;
}

static void put_text(writer *w, const char *text) {
  while (*text != '\0') {
    size_t length = strcspn(text, "\n");
    const char *next = text + length + (text[length] == '\n');
    if (length == 0) w->wants_break = 1;
    else if (text[0] != ' ') heading(w, text, length);
    else body(w, text, length, next);
    text = next;
  }
}

static void see_also(writer *w, int is_whole, char **commands, int count) {
  if (w->is_verbatim) fputs(".fi\n", w->file);
  fputs(".SH SEE ALSO\n", w->file);
  if (!is_whole) fputs(".BR hologram (1)\n", w->file);
  for (int i = 0; is_whole && i < count; i++)
    fprintf(w->file, ".BR hologram\\-%s (1)%s\n", commands[i], i + 1 < count ? "," : "");
}

static void put_title(FILE *file, const char *command, const char *version) {
  fputs(".TH HOLOGRAM", file);
  if (command != NULL) fputc('-', file);
  for (const char *c = command; c != NULL && *c != '\0'; c++)
    fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, file);
  fprintf(file, " 1 \"\" \"Hologram %s\" \"Hologram\"\n.nh\n.ad l\n", version);
}

static int write_page(const char *folder, const char *version, const cli_page *page, char **commands, int count) {
  char path[MOST_PATH];
  const char *command = page->command;
  int length = snprintf(path, sizeof path, "%s/hologram%s%s.1", folder, command != NULL ? "-" : "",
                        command != NULL ? command : "");
  writer w = {.file = length < (int)sizeof path ? fopen(path, "wb") : NULL};
  if (w.file == NULL) return 0;
  put_title(w.file, command, version);
  size_t bytes = 1;
  for (size_t k = 0; k < CLI_PAGE_PIECES && page->text[k] != NULL; k++) bytes += strlen(page->text[k]);
  char *text = calloc(bytes, 1); /* in one piece: a line may end in the next */
  for (size_t k = 0; text != NULL && k < CLI_PAGE_PIECES && page->text[k] != NULL; k++) strcat(text, page->text[k]);
  if (text != NULL) put_text(&w, text);
  see_also(&w, command == NULL, commands, count);
  free(text);
  int is_good = text != NULL && !ferror(w.file);
  return fclose(w.file) == 0 && is_good;
}

static int is_listed(const char *command, char **commands, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(commands[i], command) == 0) return 1;
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: manpages FOLDER VERSION COMMAND...\n");
    return 2;
  }
  char **commands = argv + 3;
  int count = argc - 3, written = -1; /* the page of the whole command has no name */
  for (size_t i = 0; cli_help_page(i) != NULL; i++, written++) {
    const cli_page *page = cli_help_page(i);
    if (page->command != NULL && !is_listed(page->command, commands, count)) {
      fprintf(stderr, "manpages: command '%s' has a text, but meson.build does not list it\n", page->command);
      return 1;
    }
    if (!write_page(argv[1], argv[2], page, commands, count)) {
      fprintf(stderr, "manpages: cannot write a page to %s\n", argv[1]);
      return 1;
    }
  }
  if (written == count) return 0;
  fprintf(stderr, "manpages: meson.build lists %d commands, src/cli/usage.c has texts for %d\n", count, written);
  return 1;
}
