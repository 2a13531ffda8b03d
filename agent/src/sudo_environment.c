/*
 * Makes the environment of a command, by the rules of sudoers(5) with Debian's defaults. Usually this is a new environment. With -E
 * it is the caller's environment, without the variables that make programs load or run other code.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sudo.h"
#include "sudo_request.h"

#define COMMAND_MAX 4096 /* maximum of SUDO_COMMAND; a longer value may exceed the kernel's limit */

/* Variables of the caller that the command gets (env_keep of sudoers(5)). */
static const char *const kept[] = {"COLORS",     "DISPLAY", "DPKG_COLORS",     "HOSTNAME", "KRB5CCNAME",
                                   "LS_COLORS",  "PS1",     "PS2",             "XAUTHORITY", "XAUTHORIZATION",
                                   "XDG_CURRENT_DESKTOP"};
/* Variables of the caller that the command gets if the function `passes_check` accepts their values (env_check of sudoers(5)). */
static const char *const checked[] = {"COLORTERM", "LANG", "LANGUAGE", "LC_*", "LINGUAS", "TERM", "TZ"};
/* Variables of the caller that the command does not get even with -E (env_delete of sudoers(5)). */
static const char *const dangerous[] = {
    "BASHOPTS",   "BASH_ENV",     "CDPATH",       "ENV",           "FPATH",     "GLOBIGNORE",    "HOSTALIASES",    "IFS",
    "JAVA_TOOL_OPTIONS", "LD_*",  "LOCALDOMAIN",  "NLSPATH",       "NULLCMD",   "PATH_LOCALE",   "PERL5DB",        "PERL5LIB",
    "PERL5OPT",   "PERLIO_DEBUG", "PERLLIB",      "PS4",           "PYTHONHOME", "PYTHONINSPECT", "PYTHONPATH",    "PYTHONUSERBASE",
    "READNULLCMD", "RES_OPTIONS", "RUBYLIB",      "RUBYOPT",       "SHELLOPTS", "TERMCAP",       "TERMINFO",       "TERMINFO_DIRS",
    "TERMPATH",   "TMPPREFIX",    "ZDOTDIR",      "_RLD*"};

#define COUNT(table) (sizeof(table) / sizeof *(table))

struct environment {
  char **all;
  size_t count;
  bool failed;
};

static bool has_name(const char *variable, const char *name, size_t size) {
  return strncmp(variable, name, size) == 0 && variable[size] == '=';
}

/* Sets a variable. If it was set before, the new value replaces the old one. */
static void set(struct environment *environment, char *variable) {
  if (!variable || environment->failed) {
    environment->failed = true;
    return;
  }
  size_t size = strcspn(variable, "=");
  for (size_t i = 0; i < environment->count; i++)
    if (has_name(environment->all[i], variable, size)) {
      environment->all[i] = variable;
      return;
    }
  environment->all[environment->count++] = variable;
}

static void put(struct environment *environment, const char *name, const char *value) {
  char *variable = NULL;
  if (asprintf(&variable, "%s=%s", name, value) < 0) variable = NULL;
  set(environment, variable);
}

static void put_number(struct environment *environment, const char *name, unsigned long value) {
  char text[24];
  snprintf(text, sizeof text, "%lu", value);
  put(environment, name, text);
}

const char *sudo_variable(char **variables, uint32_t count, const char *name) {
  size_t size = strlen(name);
  for (uint32_t i = 0; i < count; i++)
    if (has_name(variables[i], name, size)) return variables[i] + size + 1;
  return NULL;
}

static bool is_one_of(const char *name, const char *const *table, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (fnmatch(table[i], name, 0) == 0) return true;
  return false;
}

/* No value may have a percent sign, and only a time zone may have a slash. */
static bool passes_check(const char *name, const char *value) {
  if (strcmp(name, "TZ") != 0) return !strpbrk(value, "/%");
  if (*value == ':') value++;
  return (*value != '/' || strncmp(value, "/usr/share/zoneinfo/", 20) == 0) && !strstr(value, "..") && !strpbrk(value, " \t\n%");
}

static bool is_named(const struct sudo_request *request, const char *name) {
  for (uint32_t i = 0; i < request->keep_count; i++)
    if (strcmp(request->keep[i], name) == 0) return true;
  return false;
}

/* Whether a variable's value is a shell function. */
static bool is_function(const char *value) { return strncmp(value, "() ", 3) == 0; }

static bool is_kept(const struct sudo_request *request, const char *name, const char *value) {
  if (is_named(request, name)) return true;
  if (is_function(value)) return false;
  if (is_one_of(name, checked, COUNT(checked))) return passes_check(name, value);
  if (request->flags & SUDO_KEEP_ENVIRONMENT && !(request->flags & SUDO_LOGIN)) return !is_one_of(name, dangerous, COUNT(dangerous));
  return is_one_of(name, kept, COUNT(kept));
}

static void take_over(struct environment *environment, const struct sudo_request *request) {
  for (uint32_t i = 0; i < request->env_count; i++) {
    char *variable = request->env[i], *equals = strchr(variable, '=');
    if (!equals || equals == variable) continue;
    *equals = 0;
    bool keeps = is_kept(request, variable, equals + 1);
    *equals = '=';
    if (keeps) set(environment, variable);
  }
}

static void put_mailbox(struct environment *environment, const char *name) {
  char mailbox[300];
  snprintf(mailbox, sizeof mailbox, "/var/mail/%s", name);
  put(environment, "MAIL", mailbox);
}

static void describe_target(struct environment *environment, const struct sudo_request *request, const struct user *target) {
  bool keeps_all = request->flags & SUDO_KEEP_ENVIRONMENT && !(request->flags & SUDO_LOGIN);
  bool keeps_home = (keeps_all || is_named(request, "HOME")) && !(request->flags & SUDO_SET_HOME) &&
                    sudo_variable(environment->all, (uint32_t)environment->count, "HOME");
  if (!keeps_home) put(environment, "HOME", target->home);
  if (!is_named(request, "USER")) put(environment, "USER", target->name);
  if (!is_named(request, "LOGNAME")) put(environment, "LOGNAME", target->name);
  if (!sudo_variable(environment->all, (uint32_t)environment->count, "SHELL")) put(environment, "SHELL", target->shell);
  if (!sudo_variable(environment->all, (uint32_t)environment->count, "MAIL")) put_mailbox(environment, target->name);
  if (!sudo_variable(environment->all, (uint32_t)environment->count, "TERM")) put(environment, "TERM", "unknown");
}

static void describe_caller(struct environment *environment, const struct user *caller, const char *command) {
  char shortened[COMMAND_MAX + 1];
  snprintf(shortened, sizeof shortened, "%s", command);
  put(environment, "SUDO_COMMAND", shortened);
  put(environment, "SUDO_USER", caller->name);
  put_number(environment, "SUDO_UID", caller->uid);
  put_number(environment, "SUDO_GID", caller->gid);
}

char **sudo_environment(const struct sudo_request *request, const struct user *caller, const struct user *target, const char *path,
                        const char *command) {
  size_t room = (size_t)request->env_count + request->variable_count + 16;
  struct environment environment = {.all = calloc(room, sizeof(char *))};
  if (!environment.all) return NULL;
  take_over(&environment, request);
  describe_target(&environment, request, target);
  put(&environment, "PATH", path);
  describe_caller(&environment, caller, command);
  for (uint32_t i = 0; i < request->variable_count; i++) set(&environment, request->variables[i]);
  return environment.failed ? NULL : environment.all;
}
