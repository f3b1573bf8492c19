/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD: lets an unmodified program map a device that is a simulated core in another process.
 *
 * CT_TRAP_ROOT names a folder with stand-ins for files below /dev and /sys; what is there is opened
 * instead, and listed. Its file "areas" says which of them are windows: lines FILE OFFSET SKIP
 * KIND: the mmap() offset, how far behind it the device begins, and "regs", "mem" (a mapping whose
 * loads and stores go to mmio_core at the socket CT_TRAP_SOCKET), "irq" (opened without O_SYNC, the
 * file is that connection) or "denied" (opening fails with EACCES). Such mappings are made
 * inaccessible; each SIGSEGV in them is one access, taken from the instruction (x86-64): plain
 * moves of 1, 2, 4 or 8 bytes, which is what a driver may use on device memory. Anything else ends
 * the program with status 98.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <ucontext.h>
#include <unistd.h>

#include "mmio_wire.h"

#if defined(__x86_64__)

enum { AREAS = 16, WINDOWS = 8, PATH = 512, UNDECODED = 98 };

struct area {
  char path[PATH], kind[8];
  long offset, skip;
};

struct window {
  uint8_t *at;
  size_t length, skip;
  bool mem;
};

static struct area areas[AREAS];
static size_t area_count;
static struct window windows[WINDOWS];
static pthread_spinlock_t line; /* one access at a time on the connection */
static int connection = -1, irq_fd = -1;
static char irq_path[PATH_MAX];

static const char *root(void) {
  const char *r = getenv("CT_TRAP_ROOT");
  return r ? r : "/nowhere";
}

static int dial(void) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  snprintf(a.sun_path, sizeof a.sun_path, "%s", getenv("CT_TRAP_SOCKET"));
  const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (s >= 0 && connect(s, (struct sockaddr *)&a, sizeof a)) {
    close(s);
    return -1;
  }
  return s;
}

/* ---- Accesses ------------------------------------------------------------------------------ */

static void hang_up(void) {
  if (connection >= 0) close(connection);
  connection = -1;
}

/* A core that does not answer any more is one that is gone. False: the mapping is. */
static bool transfer(struct wire *w) {
  const uint64_t ones = UINT64_MAX;
  pthread_spin_lock(&line);
  if (connection < 0) connection = dial();
  const bool ok = connection >= 0 && send(connection, w, sizeof *w, MSG_NOSIGNAL) == sizeof *w &&
                  recv(connection, w, sizeof *w, 0) == sizeof *w;
  if (!ok) hang_up();
  pthread_spin_unlock(&line);
  if (!ok) w->value = ones;
  return !ok || w->op != WIRE_MODE;
}

/* A move between memory and a register or a constant. */
struct move {
  bool store, constant, extended; /* to the whole register, filled with zeros */
  unsigned size, reg, length;
  uint64_t value; /* of the constant */
  bool high;      /* AH, CH, DH, BH */
};

static unsigned modrm_length(const uint8_t *p) {
  const unsigned mod = p[0] >> 6, rm = p[0] & 7;
  unsigned n = 1;
  if (mod != 3 && rm == 4) {
    n = 2;
    if (mod == 0 && (p[1] & 7) == 5) n += 4;
  } else if (mod == 0 && rm == 5) {
    n += 4;
  }
  return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static bool decode_opcode(const uint8_t **p, struct move *m) {
  const uint8_t op = *(*p)++;
  m->size = op & 1 ? 4 : 1;
  if (op == 0x88 || op == 0x89) {
    m->store = true;
  } else if (op == 0xc6 || op == 0xc7) {
    m->store = m->constant = true;
  } else if (op == 0x0f && (**p == 0xb6 || **p == 0xb7)) {
    m->size = *(*p)++ == 0xb6 ? 1 : 2;
    m->extended = true;
  } else if (op != 0x8a && op != 0x8b) {
    return false;
  }
  return true;
}

static bool decode(const uint8_t *at, struct move *m) {
  const uint8_t *p = at;
  bool half = false;
  uint8_t rex = 0;
  *m = (struct move){.store = false};
  if (*p == 0x66) {
    half = true;
    ++p;
  }
  if ((*p & 0xf0) == 0x40) rex = *p++;
  if (!decode_opcode(&p, m)) return false;
  if (m->size == 4) m->size = rex & 8 ? 8 : half ? 2 : 4;
  m->reg = (p[0] >> 3 & 7) | (rex & 4 ? 8 : 0);
  m->high = m->size == 1 && !m->extended && !rex && m->reg >= 4;
  p += modrm_length(p);
  if (m->constant) {
    const unsigned n = m->size < 4 ? m->size : 4;
    int32_t value = 0;
    memcpy(&value, p, n);
    m->value = (uint64_t)(int64_t)value;
    p += n;
  }
  m->length = (unsigned)(p - at);
  return true;
}

static const int registers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};

static void load(greg_t *g, const struct move *m, uint64_t value) {
  const uint64_t mask = m->size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * m->size) - 1;
  greg_t *to = &g[registers[m->high ? m->reg - 4 : m->reg]];
  if (m->extended || m->size >= 4)
    *to = (greg_t)(value & mask);
  else if (m->high)
    *to = (greg_t)(((uint64_t)*to & ~UINT64_C(0xff00)) | (value & mask) << 8);
  else
    *to = (greg_t)(((uint64_t)*to & ~mask) | (value & mask));
}

static uint64_t stored(const greg_t *g, const struct move *m) {
  if (m->constant) return m->value;
  return m->high ? (uint64_t)g[registers[m->reg - 4]] >> 8 : (uint64_t)g[registers[m->reg]];
}

/* The place becomes one that is behind the end of a file. */
static void take_away(const struct window *w) {
  const int empty = memfd_create("gone", MFD_CLOEXEC);
  syscall(SYS_mmap, w->at, w->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0);
  close(empty);
}

static const struct window *find_window(const void *at) {
  for (int i = 0; i < WINDOWS; ++i)
    if (windows[i].at && (size_t)((const uint8_t *)at - windows[i].at) < windows[i].length)
      return &windows[i];
  return NULL;
}

typedef int sigaction_fn(int, const struct sigaction *, struct sigaction *);

static sigaction_fn *libc_sigaction(void) {
  sigaction_fn *f = NULL;
  void *symbol = dlsym(RTLD_NEXT, "sigaction");
  memcpy(&f, &symbol, sizeof f);
  return f;
}

static void on_fault(int sig, siginfo_t *info, void *context) {
  greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
  const struct window *w = find_window(info->si_addr);
  const uint8_t *at = (const uint8_t *)g[REG_RIP]; /* NOLINT(performance-no-int-to-ptr) */
  const int kept = errno;
  struct move m;
  if (!w) { /* a true one: it happens again and ends the program */
    const struct sigaction deadly = {.sa_handler = SIG_DFL};
    libc_sigaction()(sig, &deadly, NULL);
    return;
  }
  if (!decode(at, &m)) {
    fprintf(stderr, "mmio_trap: not a plain move: %02x %02x %02x %02x\n", at[0], at[1], at[2],
            at[3]);
    _exit(UNDECODED);
  }
  struct wire x = {.op = (w->mem ? WIRE_READ_MEM : WIRE_READ_REG) + m.store,
                   .size = m.size,
                   .addr = (uint64_t)((uint8_t *)info->si_addr - w->at) - w->skip,
                   .value = m.store ? stored(g, &m) : 0};
  if (!transfer(&x)) {
    take_away(w);
  } else {
    if (!m.store) load(g, &m, x.value);
    g[REG_RIP] += m.length;
  }
  errno = kept;
}

/* ---- Files --------------------------------------------------------------------------------- */

static void read_areas(void) {
  char path[PATH];
  snprintf(path, sizeof path, "%s/areas", root());
  FILE *f = fopen(path, "r");
  for (area_count = 0; f && area_count < AREAS; ++area_count) {
    struct area *a = &areas[area_count];
    char name[256];
    if (fscanf(f, "%255s %li %li %7s", name, &a->offset, &a->skip, a->kind) != 4) break;
    snprintf(a->path, sizeof a->path, "%s%s", root(), name);
  }
  if (f) fclose(f);
}

__attribute__((constructor)) static void begin(void) {
  struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  pthread_spin_init(&line, PTHREAD_PROCESS_PRIVATE);
  libc_sigaction()(SIGSEGV, &sa, NULL);
}

/* SIGSEGV stays here: test frameworks and sanitizers want it, too. */
int sigaction(int sig, const struct sigaction *restrict sa, struct sigaction *restrict before) {
  return libc_sigaction()(sig, sig == SIGSEGV ? NULL : sa, before);
}

__sighandler_t signal(int sig, __sighandler_t handler) {
  struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
  return sigaction(sig, &sa, &before) ? SIG_ERR : before.sa_handler;
}

static const struct area *find_area(const char *path, const char *kind) {
  for (size_t i = 0; i < area_count; ++i)
    if (!strcmp(areas[i].path, path) && (!kind || !strcmp(areas[i].kind, kind))) return &areas[i];
  return NULL;
}

static int open_irq(const char *path) {
  const struct wire w = {.op = WIRE_IRQ};
  irq_fd = dial();
  if (irq_fd < 0 || send(irq_fd, &w, sizeof w, MSG_NOSIGNAL) != sizeof w) {
    errno = ENODEV;
    return -1;
  }
  fcntl(irq_fd, F_SETFL, O_NONBLOCK);
  if (!realpath(path, irq_path)) *irq_path = 0;
  return irq_fd;
}

int open(const char *path, int flags, ...) {
  char ours[PATH];
  va_list args;
  va_start(args, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  if (!strncmp(path, "/dev/", 5) || !strncmp(path, "/sys/", 5)) {
    read_areas();
    snprintf(ours, sizeof ours, "%s%s", root(), path);
    if (find_area(ours, "denied")) {
      errno = EACCES;
      return -1;
    }
    if ((flags & O_SYNC) != O_SYNC && (flags & O_ACCMODE) == O_RDWR && find_area(ours, "irq"))
      return open_irq(ours);
    if (!access(ours, F_OK)) path = ours;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

/* Of what stands below /sys only what is made up is there. */
static const char *below_sys(const char *path, char ours[PATH]) {
  if (strncmp(path, "/sys/", 5) != 0) return path;
  snprintf(ours, PATH, "%s%s", root(), path);
  return ours;
}

DIR *opendir(const char *path) {
  DIR *(*real)(const char *) = NULL;
  void *symbol = dlsym(RTLD_NEXT, "opendir");
  char ours[PATH];
  memcpy(&real, &symbol, sizeof real);
  return real(below_sys(path, ours));
}

int stat(const char *restrict path, struct stat *restrict st) {
  char ours[PATH];
  return (int)syscall(SYS_newfstatat, AT_FDCWD, below_sys(path, ours), st, 0);
}

FILE *fopen(const char *restrict path, const char *restrict mode) {
  FILE *(*real)(const char *, const char *) = NULL;
  void *symbol = dlsym(RTLD_NEXT, "fopen");
  char ours[PATH];
  memcpy(&real, &symbol, sizeof real);
  return real(below_sys(path, ours), mode);
}

static void path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long n = syscall(SYS_readlink, link, path, PATH - 1);
  path[n > 0 ? n : 0] = 0;
}

/* The interrupt's connection has the name of its device. */
ssize_t readlink(const char *restrict path, char *restrict to, size_t size) {
  char link[64];
  struct stat st;
  snprintf(link, sizeof link, "/proc/self/fd/%d", irq_fd);
  if (irq_fd < 0 || strcmp(path, link) != 0 || syscall(SYS_fstat, irq_fd, &st) ||
      !S_ISSOCK(st.st_mode))
    return syscall(SYS_readlink, path, to, size);
  const size_t n = strlen(irq_path) < size ? strlen(irq_path) : size;
  memcpy(to, irq_path, n);
  return (ssize_t)n;
}

/* What stands for a device node has no size. */
int fstat(int fd, struct stat *st) {
  char path[PATH], nodes[PATH];
  const int err = (int)syscall(SYS_fstat, fd, st);
  path_of(fd, path);
  snprintf(nodes, sizeof nodes, "%s/dev/", root());
  if (err || strncmp(path, nodes, strlen(nodes)) != 0 || !S_ISREG(st->st_mode)) return err;
  st->st_mode = S_IFCHR | 0600;
  st->st_size = 0;
  return 0;
}

static void *open_window(const struct area *a, size_t length) {
  void *at = (void *)syscall(SYS_mmap, NULL, length, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (int i = 0; i < WINDOWS && at != MAP_FAILED; ++i) {
    if (windows[i].at) continue;
    windows[i] = (struct window){
        .at = at, .length = length, .skip = (size_t)a->skip, .mem = !strcmp(a->kind, "mem")};
    return at;
  }
  errno = ENOMEM;
  return MAP_FAILED;
}

void *mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset) {
  char path[PATH];
  if (fd >= 0 && flags & MAP_SHARED) {
    path_of(fd, path);
    for (size_t i = 0; i < area_count; ++i)
      if (!strcmp(areas[i].path, path) && areas[i].offset == offset &&
          strcmp(areas[i].kind, "irq") != 0)
        return open_window(&areas[i], length);
  }
  return (void *)syscall(SYS_mmap, at, length, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t length, int prot, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));

int munmap(void *at, size_t length) {
  const struct window *w = find_window(at);
  if (w && w->at == at) {
    windows[w - windows].at = NULL;
    hang_up(); /* the next access finds whoever is there then */
  }
  return (int)syscall(SYS_munmap, at, length);
}

#endif
