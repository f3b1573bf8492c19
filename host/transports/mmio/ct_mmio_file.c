/* SPDX-License-Identifier: Apache-2.0 */
/* Files of devices; see the header. */
#define _GNU_SOURCE 1 /* F_OFD_SETLK */
#include "ct_mmio_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coltrain/coltrain.h"

/* ---- Opening ------------------------------------------------------------------------------- */

/* What a user can do about an error of open() or mmap(). */
static int refuse(const char *path, const char *what, int error, char *why, size_t why_size) {
  if (error == EACCES || error == EPERM) {
    snprintf(why, why_size,
             "%s: %s is not allowed (%s): it takes root or a udev rule; /dev/mem is also closed by "
             "a kernel in lockdown or with STRICT_DEVMEM, and UIO is the way then",
             path, what, strerror(error));
    return CT_ERR_PERMISSION;
  }
  if (error == ENOENT || error == ENOTDIR) {
    snprintf(why, why_size,
             "%s is not there: is the core in the device tree or on the bus, and its driver loaded "
             "(docs/mmio.md)?",
             path);
    return CT_ERR_NOT_FOUND;
  }
  if (error == EISDIR || error == ENXIO || error == ENODEV || error == EINVAL) {
    snprintf(why, why_size,
             "%s: %s fails (%s): it is not a file that a device's registers or memory can be "
             "mapped from, or nothing is behind it any more",
             path, what, strerror(error));
    return error == EISDIR ? CT_ERR_ARG : CT_ERR_DEVICE;
  }
  snprintf(why, why_size, "%s: %s fails: %s", path, what, strerror(error));
  return error == ENOMEM || error == EMFILE || error == ENFILE ? CT_ERR_MEMORY : CT_ERR_IO;
}

/* The number in a file of sysfs, such as "0x00001000". */
static bool read_number(const char *path, uint64_t *number) {
  char text[64];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return false;
  text[n] = 0;
  char *end = NULL;
  errno = 0;
  *number = strtoull(text, &end, 0);
  return end != text && !errno;
}

static bool is_uio(const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/sys/class/uio/%s/name", name);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* A link of udev's, such as /dev/coltrain, may stand for uioN: the kernel knows what was opened. */
static void find_uio(int fd, char *name, size_t size) {
  char link[64], path[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  const char *slash = strrchr(path, '/');
  *name = 0;
  if (!slash || strncmp(slash + 1, "uio", 3) != 0 || strlen(slash + 1) >= size) return;
  snprintf(name, size, "%s", slash + 1);
  if (!is_uio(name)) *name = 0;
}

int ct_mmio_file_open(struct ct_mmio_file *file, const char *path, char *why, size_t why_size) {
  struct stat st;
  *file = (struct ct_mmio_file){.fd = -1};
  snprintf(file->path, sizeof file->path, "%s", path);
  /* O_NONBLOCK: opening a FIFO must not wait. O_SYNC: /dev/mem and its like map uncached. */
  file->fd = open(path, O_RDWR | O_SYNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file->fd < 0) return refuse(path, "opening it", errno, why, why_size);
  if (fstat(file->fd, &st)) return refuse(path, "looking at it", errno, why, why_size);
  if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
    snprintf(why, why_size,
             "%s is neither a device nor a PCI resource file: name /dev/uioN, "
             "/sys/bus/pci/devices/.../resourceN or /dev/mem",
             path);
    return CT_ERR_ARG;
  }
  find_uio(file->fd, file->uio, sizeof file->uio);
  if (S_ISREG(st.st_mode)) file->size = (uint64_t)st.st_size;
  return CT_OK;
}

void ct_mmio_file_close(struct ct_mmio_file *file) {
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
}

/* The mapping outlives both: what is behind it may answer, but is nobody's any more. */
bool ct_mmio_file_is_there(const struct ct_mmio_file *file) {
  if (file->uio[0]) return is_uio(file->uio);
  if (strncmp(file->path, "/sys/", 5) != 0) return true;
  const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0 || errno != ENOENT;
}

/* ---- Areas --------------------------------------------------------------------------------- */

static int uio_area(const struct ct_mmio_file *file, unsigned map, uint64_t at,
                    struct ct_mmio_area *area, char *why, size_t why_size) {
  static const char *const holds[] = {"registers", "device memory"};
  char path[128];
  uint64_t size = 0, offset = 0;
  snprintf(path, sizeof path, "/sys/class/uio/%s/maps/map%u/size", file->uio, map);
  if (!read_number(path, &size)) {
    snprintf(why, why_size,
             "%s has no map%u for the core's %s: give it a second area in the device tree, or name "
             "the files of both (uio_pci_generic has no maps: use "
             "mmio:/sys/bus/pci/devices/.../resource0,mem=...,irq=%s)",
             file->path, map, holds[map > 0], file->path);
    return CT_ERR_NOT_FOUND;
  }
  snprintf(path, sizeof path, "/sys/class/uio/%s/maps/map%u/offset", file->uio, map);
  read_number(path, &offset); /* kernels before 2.6.33 had none: 0 */
  area->offset = map * (uint64_t)sysconf(_SC_PAGESIZE);
  area->skip = offset + at;
  area->size = at < size ? size - at : 0;
  return CT_OK;
}

int ct_mmio_area(const struct ct_mmio_file *file, unsigned map, uint64_t at,
                 struct ct_mmio_area *area, char *why, size_t why_size) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  *area = (struct ct_mmio_area){.at = NULL};
  if (file->uio[0]) return uio_area(file, map, at, area, why, why_size);
  area->offset = at - at % page;
  area->skip = at % page;
  area->size = UINT64_MAX;
  if (file->size) area->size = at < file->size ? file->size - at : 0;
  return CT_OK;
}

int ct_mmio_lock(const struct ct_mmio_file *file, const struct ct_mmio_area *area, uint64_t size,
                 char *why, size_t why_size) {
  struct flock lock = {.l_type = F_WRLCK,
                       .l_whence = SEEK_SET,
                       .l_start = (off_t)(area->offset + area->skip),
                       .l_len = (off_t)size};
  if (!fcntl(file->fd, F_OFD_SETLK, &lock)) return CT_OK;
  if (errno != EAGAIN && errno != EACCES)
    return refuse(file->path, "locking it", errno, why, why_size);
  snprintf(why, why_size,
           "%s is open elsewhere, in this process or another: a core has one user at a time; close "
           "it there (fuser -v %s says who it is)",
           file->path, file->path);
  return CT_ERR_BUSY;
}

int ct_mmio_map(const struct ct_mmio_file *file, struct ct_mmio_area *area, uint64_t size,
                char *why, size_t why_size) {
  const uint64_t whole = area->skip + size;
  if (area->size < size || whole < size || whole > SIZE_MAX || area->offset > INT64_MAX) {
    snprintf(why, why_size,
             "%s is too small: %" PRIu64 " bytes are needed from there and it has %" PRIu64
             "; look at the offsets and at the sizes of its areas",
             file->path, size, area->size);
    return CT_ERR_DEVICE;
  }
  void *at =
      mmap(NULL, (size_t)whole, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, (off_t)area->offset);
  if (at == MAP_FAILED) return refuse(file->path, "mapping it", errno, why, why_size);
  area->at = at;
  area->length = (size_t)whole;
  area->data = (volatile uint8_t *)at + area->skip;
  return CT_OK;
}

void ct_mmio_unmap(struct ct_mmio_area *area) {
  if (area->at) munmap(area->at, area->length);
  *area = (struct ct_mmio_area){.at = NULL};
}

/* ---- Interrupts ---------------------------------------------------------------------------- */

/* uio_pci_generic masks the interrupt in the function's command register and leaves unmasking to
 * who opened it. */
static int open_config(const char *uio) {
  char path[96];
  snprintf(path, sizeof path, "/sys/class/uio/%s/device/config", uio);
  return open(path, O_RDWR | O_CLOEXEC);
}

bool ct_mmio_irq_unmask(int config) {
  enum { COMMAND = 4, INTX_DISABLE = 4 }; /* the latter in the upper byte */
  uint8_t command[2]; /* written as a whole: QEMU does not hear of the upper byte alone */
  if (pread(config, command, sizeof command, COMMAND) != (ssize_t)sizeof command) return false;
  if (!(command[1] & INTX_DISABLE)) return true;
  command[1] &= (uint8_t)~INTX_DISABLE;
  return pwrite(config, command, sizeof command, COMMAND) == (ssize_t)sizeof command;
}

int ct_mmio_irq_open(const char *path, int *fd, bool *armed, int *config, char *why,
                     size_t why_size) {
  const int32_t enable = 1;
  char uio[32];
  *armed = true;
  *config = -1;
  *fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (*fd < 0) return refuse(path, "opening it", errno, why, why_size);
  find_uio(*fd, uio, sizeof uio);
  if (!uio[0]) {
    snprintf(why, why_size, "%s gives no interrupts: irq= wants a UIO device (/dev/uioN) or off",
             path);
    close(*fd);
    *fd = -1;
    return CT_ERR_ARG;
  }
  if (write(*fd, &enable, sizeof enable) == (ssize_t)sizeof enable) return CT_OK;
  if (errno == ENOSYS) { /* the driver in the kernel quietens the device by itself, or see above */
    *armed = false;
    *config = open_config(uio);
    return CT_OK;
  }
  close(*fd); /* EIO: it has none */
  *fd = -1;
  return CT_OK;
}
