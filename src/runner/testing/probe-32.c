// A 32-bit program (i386) without a C library, so that every compiler for x86-64 can build it. Tests run it in a sandbox. It
// makes calls that ordinary 32-bit programs make, and prints a line for each.

typedef unsigned int word;

static long call(long number, long a, long b, long c, long d, long e) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e) : "memory");
  return result;
}

enum {
  call_exit = 1, call_fork = 2, call_read = 3, call_write = 4, call_open = 5, call_waitpid = 7, call_socketcall = 102,
  call_mmap2 = 192, call_getuid32 = 199, call_set_thread_area = 243, call_clock_gettime64 = 403, call_socket = 359,
};

static void say(const char *text) {
  word length = 0;
  while (text[length]) length++;
  call(call_write, 1, (long)text, length, 0, 0);
}

static void tell(const char *name, long result) {
  say(name);
  char digits[12] = {0};
  int at = 10;
  long rest = result < 0 ? -result : 0;
  do digits[at--] = (char)('0' + rest % 10);
  while (rest /= 10);
  say(" ");
  say(digits + at + 1);
  say("\n");
}

struct segment {
  word entry, base, limit, flags;
};

void _start(void) {
  char bytes[64];
  struct segment thread = {.entry = (word)-1, .limit = 0xfffff, .flags = 0x51};
  long long clock[2];
  int status = 1;
  long file = call(call_open, (long)"/etc/passwd", 0, 0, 0, 0);
  tell("open", file);
  tell("read", call(call_read, file, (long)bytes, sizeof bytes, 0, 0));
  tell("memory", (word)call(call_mmap2, 0, 4096, 3, 0x22, -1) >= 0xfffff000u ? -12 : 0);
  tell("thread area", call(call_set_thread_area, (long)&thread, 0, 0, 0, 0));
  tell("user", call(call_getuid32, 0, 0, 0, 0, 0));
  tell("clock", call(call_clock_gettime64, 0, (long)clock, 0, 0, 0));
  long child = call(call_fork, 0, 0, 0, 0, 0);
  if (child == 0) call(call_exit, 0, 0, 0, 0, 0);
  tell("child", call(call_waitpid, child, (long)&status, 0, 0, 0));
  tell("its exit code", -status);
  tell("socket", call(call_socket, 2, 1, 0, 0, 0));
  long given[] = {2, 1, 0};
  tell("socket by socketcall", call(call_socketcall, 1, (long)given, 0, 0, 0));
  call(call_exit, 0, 0, 0, 0, 0);
}
