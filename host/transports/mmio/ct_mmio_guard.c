/* SPDX-License-Identifier: Apache-2.0 */
/* SIGBUS in a device's mapping; see the header. */
#define _GNU_SOURCE 1 /* MAP_ANONYMOUS */
#include "ct_mmio_guard.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

/* initial-exec, so that the handler finds it without allocating anything. */
_Thread_local struct ct_guard *volatile ct_guard_current;

/* A signal's disposition is the process's, so what was there before has to be, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned guards;
static struct sigaction before;

/* An address that the processor does not know (arm64, an error of the bus) shows as NULL. */
static bool covers(const struct ct_guard *g, const void *address) {
  if (!address) return true;
  for (int i = 0; i < CT_GUARD_AREAS; ++i)
    if (g->area[i].at && (uintptr_t)address - (uintptr_t)g->area[i].at < g->area[i].length)
      return true;
  return false;
}

/* mmap() is a system call and nothing else here takes a lock, so this may run in a handler. */
static bool replace(struct ct_guard *g) {
  g->gone = 1;
  for (int i = 0; i < CT_GUARD_AREAS; ++i)
    if (g->area[i].at &&
        mmap(g->area[i].at, g->area[i].length, PROT_READ | PROT_WRITE,
             MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      return false;
  return true;
}

static void on_bus_error(int signal, siginfo_t *info, void *context) {
  struct ct_guard *g = ct_guard_current;
  if (g && !g->gone && covers(g, info->si_addr) && replace(g)) return;
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
    sigaction(signal, &before, NULL); /* the access is done again and ends the process */
  else
    before.sa_handler(signal);
}

bool ct_guard_open(struct ct_guard *guard) {
  bool ok = true;
  *guard = (struct ct_guard){.gone = 0};
  pthread_mutex_lock(&lock);
  if (guards == 0) {
    struct sigaction ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&ours.sa_mask);
    ok = sigaction(SIGBUS, &ours, &before) == 0;
  }
  guards += ok;
  pthread_mutex_unlock(&lock);
  return ok;
}

void ct_guard_close(void) {
  struct sigaction now;
  pthread_mutex_lock(&lock);
  if (--guards == 0 && sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
      now.sa_sigaction == on_bus_error)
    sigaction(SIGBUS, &before, NULL);
  pthread_mutex_unlock(&lock);
}
