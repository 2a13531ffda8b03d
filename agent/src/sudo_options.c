/*
 * Options of sudo(8). Options without meaning in a sandbox, such as those for passwords, are ignored. Other options are refused if
 * they are not supported.
 */
#include "sudo_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sudo.h"

static const char usage[] =
    "usage: sudo -h | -K | -k | -V\n"
    "usage: sudo -v [-ABknS] [-g group] [-u user]\n"
    "usage: sudo -l [-ABknS] [-g group] [-U user] [-u user] [command [arg ...]]\n"
    "usage: sudo [-ABbEHknPS] [-D directory] [-g group] [-u user] [VAR=value] [-i | -s] [command [arg ...]]\n";

enum takes { NOTHING, A_VALUE, PERHAPS_A_VALUE };

static const struct option {
  char letter;
  const char *name;
  enum takes takes;
} options[] = {
    {'A', "askpass", NOTHING},
    {'B', "bell", NOTHING},
    {'b', "background", NOTHING},
    {'C', "close-from", A_VALUE},
    {'D', "chdir", A_VALUE},
    {'E', "preserve-env", PERHAPS_A_VALUE},
    {'e', "edit", NOTHING},
    {'g', "group", A_VALUE},
    {'H', "set-home", NOTHING},
    {'h', "help", NOTHING},
    {'i', "login", NOTHING},
    {'K', "remove-timestamp", NOTHING},
    {'k', "reset-timestamp", NOTHING},
    {'l', "list", NOTHING},
    {'N', "no-update", NOTHING},
    {'n', "non-interactive", NOTHING},
    {'P', "preserve-groups", NOTHING},
    {'p', "prompt", A_VALUE},
    {'R', "chroot", A_VALUE},
    {'r', "role", A_VALUE},
    {'S', "stdin", NOTHING},
    {'s', "shell", NOTHING},
    {'T', "command-timeout", A_VALUE},
    {'t', "type", A_VALUE},
    {'U', "other-user", A_VALUE},
    {'u', "user", A_VALUE},
    {'V', "version", NOTHING},
    {'v', "validate", NOTHING},
};

#define OPTION_COUNT (sizeof options / sizeof *options)

void sudo_usage(void) {
  fputs(usage, stderr);
  exit(1);
}

_Noreturn static void wrong(const char *what, const char *option) {
  fprintf(stderr, "sudo: %s -- '%s'\n", what, option);
  sudo_usage();
}

_Noreturn static void answer(const char *text) {
  fputs(text, stdout);
  exit(0);
}

static void append(char ***list, char *word) {
  size_t count = 0;
  while (*list && (*list)[count]) count++;
  *list = realloc(*list, (count + 2) * sizeof **list);
  if (!*list) abort();
  (*list)[count] = word;
  (*list)[count + 1] = NULL;
}

static void keep(struct sudo_options *sudo, char *names) {
  for (char *name; (name = strsep(&names, ","));)
    if (*name) append(&sudo->keep, name);
}

_Noreturn static void refuse(const struct option *option) {
  fprintf(stderr, "sudo: the option -%c (--%s) is not offered in a sandbox\n", option->letter, option->name);
  exit(1);
}

static void apply(struct sudo_options *sudo, const struct option *option, char *value) {
  /* Refuse an empty value. Otherwise `-u "$NAME"` in a script that forgot to set NAME would run the command as root. */
  if (option->takes == A_VALUE && option->letter != 'p' && !*value) wrong("option requires an argument", option->name);
  switch (option->letter) {
    case 'A': case 'B': case 'N': case 'n': case 'p': case 'S': return;
    case 'b': sudo->background = true; return;
    case 'D': sudo->directory = value; return;
    case 'E':
      if (value) keep(sudo, value);
      else sudo->flags |= SUDO_KEEP_ENVIRONMENT;
      return;
    case 'g': sudo->group = value; return;
    case 'H': sudo->flags |= SUDO_SET_HOME; return;
    case 'h': answer(usage);
    case 'i': sudo->flags |= SUDO_LOGIN; return;
    case 'K': case 'k': sudo->forgets = true; return;
    case 'l': sudo->lists = true; return;
    case 's': sudo->flags |= SUDO_SHELL; return;
    case 'U': sudo->lists_other = true; return;
    case 'u': sudo->user = value; return;
    case 'V': answer("Sudo version 1.9 (Alcove's own, for sandboxes)\n");
    case 'v': sudo->validates = true; return;
    default: refuse(option);
  }
}

static const struct option *by_letter(char letter) {
  for (size_t i = 0; i < OPTION_COUNT; i++)
    if (options[i].letter == letter) return &options[i];
  return NULL;
}

/* Finds an option by its long name, which may be abbreviated as long as it is unambiguous. */
static const struct option *by_name(const char *name, size_t size) {
  const struct option *found = NULL;
  for (size_t i = 0; i < OPTION_COUNT; i++) {
    if (strncmp(options[i].name, name, size) != 0) continue;
    if (options[i].name[size] == 0) return &options[i];
    if (found) return NULL;
    found = &options[i];
  }
  return found;
}

/* Reads a long option. Returns how many arguments it used: 2 if the next argument is its value, otherwise 1. */
static int take_long(struct sudo_options *sudo, char **word) {
  char *name = *word + 2, *equals = strchr(name, '=');
  const struct option *option = by_name(name, equals ? (size_t)(equals - name) : strlen(name));
  if (!option) wrong("unrecognized option", *word);
  if (equals && option->takes == NOTHING) wrong("option doesn't allow an argument", *word);
  if (option->takes == A_VALUE && !equals && !word[1]) wrong("option requires an argument", *word);
  bool takes_next = option->takes == A_VALUE && !equals;
  apply(sudo, option, equals ? equals + 1 : takes_next ? word[1] : NULL);
  return takes_next ? 2 : 1;
}

static int take_letters(struct sudo_options *sudo, char **word) {
  for (char *at = *word + 1; *at; at++) {
    const struct option *option = by_letter(*at);
    char letter[2] = {*at, 0};
    if (!option) wrong("invalid option", letter);
    if (option->takes != A_VALUE) {
      apply(sudo, option, NULL);
      continue;
    }
    if (at[1]) {
      apply(sudo, option, at + 1);
      return 1;
    }
    if (!word[1]) wrong("option requires an argument", letter);
    apply(sudo, option, word[1]);
    return 2;
  }
  return 1;
}

static bool is_assignment(const char *word) {
  const char *equals = strchr(word, '=');
  return equals && equals != word && !memchr(word, '/', (size_t)(equals - word));
}

void sudo_options_read(int argc, char **argv, struct sudo_options *sudo) {
  *sudo = (struct sudo_options){.user = "", .group = "", .directory = ""};
  int at = 1;
  while (at < argc) {
    char *word = argv[at];
    if (strcmp(word, "--") == 0) {
      at++;
      break;
    }
    if (strncmp(word, "--", 2) == 0) at += take_long(sudo, argv + at);
    else if (word[0] == '-' && word[1]) at += take_letters(sudo, argv + at);
    else if (is_assignment(word)) append(&sudo->variables, argv[at++]);
    else break;
  }
  sudo->argv = argv + (at < argc ? at : argc);
  if (sudo->lists_other && !sudo->lists) sudo_usage();
  if ((sudo->flags & SUDO_LOGIN) && (sudo->flags & SUDO_SHELL)) {
    fprintf(stderr, "sudo: you may not specify both the -i and -s options\n");
    sudo_usage();
  }
}
