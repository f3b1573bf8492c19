/* SPDX-License-Identifier: Apache-2.0 */
#include "mmio_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_run.h"
#include "ct_tb.h"

enum { PATH = 512 };

static pid_t core = -1;

/* ---- Files --------------------------------------------------------------------------------- */

/* A file of the build beside this program. */
static const char *built(const char *name) {
  static char path[2 * PATH];
  char self[PATH] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return "";
  *strrchr(self, '/') = 0;
  snprintf(path, sizeof path, "%s/%s", self, name);
  return path;
}

/* Makes a file below the root, with text or with so many bytes. */
static void make_file(const char *name, const char *text, long bytes) {
  char path[PATH];
  snprintf(path, sizeof path, "%s", cli_path(name));
  for (char *p = path + 1; (p = strchr(p, '/')); *p++ = '/') {
    *p = 0;
    mkdir(path, 0700);
  }
  FILE *f = fopen(path, "w");
  if (!f || (text && fputs(text, f) < 0) || fclose(f)) fail_msg("cannot write %s", path);
  if (bytes) assert_int_equal(truncate(path, bytes), 0);
}

static void make_sysfs(const char *uio, const char *file, const char *text) {
  char path[PATH];
  snprintf(path, sizeof path, "root/sys/class/uio/%s/%s", uio, file);
  make_file(path, text, 0);
}

/* Sizes of its maps, NULL: it has not got this one. */
static void make_uio(const char *name, const char *map0, const char *map1) {
  char path[PATH];
  snprintf(path, sizeof path, "root/dev/%s", name);
  make_file(path, "", 0);
  make_sysfs(name, "name", "coltrain\n");
  if (map0) make_sysfs(name, "maps/map0/size", map0);
  if (map0) make_sysfs(name, "maps/map0/offset", "0x0\n");
  if (map1) make_sysfs(name, "maps/map1/size", map1);
  if (map1) make_sysfs(name, "maps/map1/offset", "0x0\n");
}

static void make_files(void) {
  const long page = sysconf(_SC_PAGESIZE);
  char areas[2 * PATH];
  make_uio("uio0", "0x0000000000001000\n", "0x0000000001000000\n");
  make_uio("uio1", "0x0000000000001000\n", NULL);
  make_uio("uio2", NULL, NULL);
  make_uio("uio3", NULL, NULL);
  unlink(cli_path("root/dev/coltrain"));
  assert_int_equal(symlink("uio0", cli_path("root/dev/coltrain")), 0);
  make_file("root/dev/mem", NULL, 0xc0000000);
  make_file("root" RIG_PCI "class", "0x120000\n", 0);
  make_file("root" RIG_PCI "resource0", NULL, 65536);
  make_file("root" RIG_PCI "resource2", NULL, (long)RIG_MIB << 20);
  make_file("root" RIG_PCI "resource4", NULL, 1 << 20);
  snprintf(areas, sizeof areas,
           "/dev/uio0 0 0 regs\n/dev/uio0 %ld 0 mem\n/dev/uio0 0 0 irq\n/dev/coltrain 0 0 irq\n"
           "/dev/uio1 0 0 regs\n/dev/uio2 0 0 irq\n/dev/uio3 0 0 denied\n"
           "/dev/mem %ld %ld regs\n/dev/mem %ld %ld mem\n" RIG_PCI "resource0 0 0 regs\n" RIG_PCI
           "resource2 0 0 mem\n" RIG_PCI "resource4 0 0 mem\n",
           page, RIG_REGS / page * page, RIG_REGS % page, RIG_MEM / page * page, RIG_MEM % page);
  make_file("root/areas", areas, 0);
}

bool rig_begin(char **argv) {
#if defined(__x86_64__)
  if (!getenv("CT_TRAP_ROOT")) {
    char folder[PATH];
    if (cli_make_folder(NULL)) return false;
    snprintf(folder, sizeof folder, "%s", cli_path(""));
    folder[strlen(folder) - 1] = 0;
    setenv("CT_TRAP_FOLDER", folder, 1);
    setenv("CT_TRAP_ROOT", cli_path("root"), 1);
    setenv("CT_TRAP_SOCKET", cli_path("socket"), 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0); /* it wants to be the first itself */
    setenv("LD_PRELOAD", built("mmio_trap.so"), 1);
    execv("/proc/self/exe", argv);
    perror("cannot start anew with mmio_trap.so");
    exit(1);
  }
  cli_use_folder(getenv("CT_TRAP_FOLDER"));
  return true;
#else
  (void)argv;
  return false;
#endif
}

/* ---- The core ------------------------------------------------------------------------------ */

/* The core ends with the thread that started it, however that ends. */
static void become_core(const char *options, pid_t parent) {
  char program[2 * PATH], args[128];
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent) _exit(127);
  snprintf(program, sizeof program, "%s", built("mmio_core"));
  snprintf(args, sizeof args, "dram=%d%s%s", RIG_MIB, *options ? "," : "", options);
  unsetenv("LD_PRELOAD");
  execl(program, program, getenv("CT_TRAP_SOCKET"), built("../lib/coltrain/sim.so"), args,
        (char *)NULL);
  _exit(127);
}

static int dial(void) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  snprintf(a.sun_path, sizeof a.sun_path, "%s", getenv("CT_TRAP_SOCKET"));
  const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  assert_true(s >= 0);
  if (!connect(s, (struct sockaddr *)&a, sizeof a)) return s;
  close(s);
  return -1;
}

void rig_start(const char *options) {
  enum { TRIES = 1000 };
  rig_stop();
  make_files();
  fflush(NULL);
  const pid_t parent = getpid();
  core = fork();
  assert_true(core >= 0);
  if (core == 0) become_core(options, parent);
  int s = -1;
  for (int i = 0; i < TRIES && s < 0; ++i) {
    s = dial();
    if (s < 0) cli_sleep_ms(5);
  }
  if (s < 0) fail_msg("mmio_core does not start");
  close(s);
}

void rig_kill(void) {
  if (core > 0) {
    kill(core, SIGKILL);
    waitpid(core, NULL, 0);
  }
  core = -1;
}

void rig_stop(void) {
  rig_kill();
  unlink(getenv("CT_TRAP_SOCKET"));
}

static uint64_t ask(enum wire_op op, uint64_t value) {
  struct wire w = {.op = op, .size = 4, .value = value};
  const int s = dial();
  assert_true(s >= 0);
  assert_int_equal(send(s, &w, sizeof w, MSG_NOSIGNAL), sizeof w);
  assert_int_equal(recv(s, &w, sizeof w, 0), sizeof w);
  close(s);
  return w.value;
}

void rig_mode(enum wire_mode mode) {
  ask(WIRE_MODE, mode);
}

uint64_t rig_broken(void) {
  return ask(WIRE_STATS, 0);
}

uint64_t rig_irqs(void) {
  return ask(WIRE_STATS, 1);
}

void rig_unbind(void) {
  rig_mode(WIRE_UNBOUND);
  unlink(cli_path("root/sys/class/uio/uio0/name"));
}

void rig_remove(void) {
  unlink(cli_path("root" RIG_PCI "resource0"));
}
