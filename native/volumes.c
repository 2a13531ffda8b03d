// Steps of a sandbox's start that mount a volume. Other sandboxes may be changing the volume at the same time.
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch.h"

// Opens a directory below `directory`. Sandboxes can make links in a volume, so the kernel refuses links and paths out of the
// volume.
static int open_below(int directory, const char *name) {
  struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                         .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
  return (int)syscall(SYS_openat2, directory, name, &how, sizeof how);
}

// Gives a new directory to the root user of the sandboxes, and makes it writable for all users. Sets the owner last. So a directory
// of the host's root user is new, or was left unfinished.
static void finish_directory(int directory, uid_t owner, const char *about) {
  struct stat found;
  if (fstat(directory, &found) < 0) fail(about);
  if (found.st_uid != 0) return;
  if (fchmod(directory, 0777) < 0 || fchown(directory, owner, owner) < 0) fail(about);
}

// volume FROM SUBPATH OWNER TO: mounts the volume FROM at TO, or only its directory SUBPATH, which is made if it is missing. An
// earlier step `ids` sets how owners on the disk map to owners in the mount. Devices and set-id bits have no effect.
void mount_volume(char **arg) {
  uid_t owner = (uid_t)number(arg[2], 10);
  int directory = open(arg[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (directory < 0) fail("the volume");
  finish_directory(directory, owner, "the volume");
  char *rest = NULL;
  for (char *name = strtok_r(arg[1], "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
    if (mkdirat(directory, name, 0700) < 0 && errno != EEXIST) fail(name);
    int below = open_below(directory, name);
    if (below < 0) fail(name);
    finish_directory(below, owner, name);
    close(directory);
    directory = below;
  }
  show_directory(directory, arg[3]);
  close(directory);
}

// mount-point ROOT PATH: fails if PATH is a file, or if PATH leads through a symbolic link. Through a link, a volume could cover
// programs of the platform. A missing PATH is no error, because the runtime makes it.
void check_mount_point(char **arg) {
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                         .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  int root = open(arg[0], O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (root < 0) fail(arg[0]);
  int found = (int)syscall(SYS_openat2, root, arg[1], &how, sizeof how);
  if (found < 0 && errno != ENOENT) fail(arg[1]);
  if (found >= 0) close(found);
  close(root);
}
