/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_usb_link.h"

#include <inttypes.h>
#include <libusb-1.0/libusb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_deadline.h"

/* FTDI's vendor requests; wIndex names the channel, from 1. */
enum {
  SIO_RESET = 0,
  SIO_SET_FLOW_CONTROL = 2,
  SIO_SET_LATENCY = 9,
  SIO_SET_BITMODE = 11,
  RESET_ALL = 0,
  RESET_PURGE_RX = 1,
  RESET_PURGE_TX = 2,
  MODE_RESET = 0x0000,
  MODE_SYNC_FIFO = 0x40ff,
  FLOW_RTS_CTS = 0x0100,
  CHANNEL_A = 1
};

enum {
  FTDI = 0x0403,
  FT2232H = 0x6010,
  FT232H = 0x6014,
  INTERFACE = 0,
  EP_OUT = 0x02,
  EP_IN = 0x81,
  STATUS_BYTES = 2, /* at the head of every packet from the chip */
  READS = 4,        /* under way at a time */
  READ_BYTES = 16384,
  WRITES = 4,
  WRITE_BYTES = 16384,
  CONTROL_MS = 200,
  LOOK_MS = 100, /* the thread looks at least that often whether it shall stop */
  CLOSE_MS = 400
};

struct ct_usb_link {
  libusb_context *usb;
  libusb_device_handle *handle;
  ct_line_take *take;
  void *arg;
  size_t packet; /* bytes of a packet from the chip */
  struct libusb_transfer *read[READS], *write[WRITES];
  pthread_t thread;
  bool claimed, running;

  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t changed;
  unsigned reads, writes; /* under way */
  bool writing[WRITES], stop, gone;
  bool abandoned; /* transfers do not end */
  char error[128];
  char name[64];
};

/* ---- Finding ------------------------------------------------------------------------------- */

static bool fits(const struct ct_usb_where *where, libusb_device *dev,
                 const struct libusb_device_descriptor *d) {
  const uint64_t vid = where->vid ? where->vid : FTDI;
  const bool known = d->idProduct == FT232H || d->idProduct == FT2232H;
  return d->idVendor == vid && (where->pid ? d->idProduct == where->pid : known) &&
         (!where->bus || libusb_get_bus_number(dev) == where->bus) &&
         (!where->address || libusb_get_device_address(dev) == where->address);
}

static void name_board(libusb_device *dev, char *name, size_t size) {
  snprintf(name, size, "the board at bus %u, address %u", libusb_get_bus_number(dev),
           libusb_get_device_address(dev));
}

static int cannot_open(libusb_device *dev, int error, char *why, size_t whysize) {
  char name[64];
  name_board(dev, name, sizeof name);
  if (error == LIBUSB_ERROR_ACCESS) {
    snprintf(why, whysize,
             "no permission for %s: copy scripts/60-coltrain-usb.rules to /etc/udev/rules.d and "
             "plug the board in again",
             name);
    return CT_ERR_PERMISSION;
  }
  snprintf(why, whysize, "%s cannot be opened: %s", name, libusb_strerror(error));
  return error == LIBUSB_ERROR_NO_MEM ? CT_ERR_MEMORY : CT_ERR_DEVICE;
}

/* Whether an open board has the serial number that is asked for. */
static bool has_serial(const struct ct_usb_where *where, libusb_device_handle *handle,
                       uint8_t index) {
  unsigned char text[64] = "";
  if (!where->serial[0]) return true;
  if (!index) return false;
  const int n = libusb_get_string_descriptor_ascii(handle, index, text, sizeof text);
  return n > 0 && !strcmp((const char *)text, where->serial);
}

/* Only what was asked for is named. */
static int none_found(const struct ct_usb_where *where, char *why, size_t whysize) {
  const uint64_t vid = where->vid ? where->vid : FTDI;
  char what[160] = "";
  if (where->serial[0])
    snprintf(what, sizeof what, " with the serial number \"%s\"", where->serial);
  else if (where->bus && where->address)
    snprintf(what, sizeof what, " at bus %" PRIu64 ", address %" PRIu64, where->bus,
             where->address);
  else if (where->bus || where->address)
    snprintf(what, sizeof what, " at %s %" PRIu64, where->bus ? "bus" : "address",
             where->bus ? where->bus : where->address);
  if (where->pid)
    snprintf(why, whysize, "no board %04" PRIx64 ":%04" PRIx64 "%s is on USB (lsusb lists them)",
             vid, where->pid, what);
  else if (where->vid)
    snprintf(why, whysize,
             "no board %04" PRIx64 ":%04x or %04" PRIx64
             ":%04x%s is on USB (lsusb lists what is; "
             "usb:vid=,pid= names others)",
             vid, FT232H, vid, FT2232H, what);
  else
    snprintf(why, whysize,
             "no board with an FT232H or FT2232H (0403:6014, 0403:6010)%s is on USB (lsusb lists "
             "what is; usb:vid=,pid= names others)",
             what);
  return CT_ERR_NOT_FOUND;
}

/* Opens the first board that fits. */
static int find(struct ct_usb_link *l, const struct ct_usb_where *where, char *why,
                size_t whysize) {
  libusb_device **list = NULL;
  const ssize_t count = libusb_get_device_list(l->usb, &list);
  int err = CT_OK; /* of a board that fits as far as one can see */
  for (ssize_t i = 0; i < count && !l->handle; ++i) {
    struct libusb_device_descriptor d;
    if (libusb_get_device_descriptor(list[i], &d) || !fits(where, list[i], &d)) continue;
    const int error = libusb_open(list[i], &l->handle);
    if (error) {
      err = cannot_open(list[i], error, why, whysize);
      l->handle = NULL;
    } else if (has_serial(where, l->handle, d.iSerialNumber)) {
      name_board(list[i], l->name, sizeof l->name);
      const int packet = libusb_get_max_packet_size(list[i], EP_IN);
      l->packet = packet > STATUS_BYTES ? (size_t)packet : 512;
    } else {
      libusb_close(l->handle);
      l->handle = NULL;
    }
  }
  if (list) libusb_free_device_list(list, 1);
  if (l->handle) return CT_OK;
  return err ? err : none_found(where, why, whysize);
}

static int start_libusb(libusb_context **usb, char *why, size_t whysize) {
  const int error = libusb_init(usb);
  if (!error) return CT_OK;
  snprintf(why, whysize, "USB cannot be used on this machine: %s", libusb_strerror(error));
  return CT_ERR_DEVICE;
}

/* A serial number that a device's name can hold. */
static bool is_name(const char *serial) {
  return *serial && !strpbrk(serial, ",");
}

/* Whether the interface could be claimed now. A driver of the kernel's would give way. */
static int try_claim(libusb_device_handle *handle) {
  const int error = libusb_claim_interface(handle, INTERFACE);
  if (!error) libusb_release_interface(handle, INTERFACE);
  return error == LIBUSB_ERROR_BUSY && libusb_kernel_driver_active(handle, INTERFACE) != 1
             ? CT_ERR_BUSY
             : CT_OK;
}

static void list_board(libusb_device *dev, const struct libusb_device_descriptor *d,
                       ct_transport_found *found, void *arg) {
  unsigned char serial[64] = "";
  char args[96], text[160];
  libusb_device_handle *handle = NULL;
  const int error = libusb_open(dev, &handle);
  int err = error ? cannot_open(dev, error, text, sizeof text) : CT_OK;
  if (!error && d->iSerialNumber)
    libusb_get_string_descriptor_ascii(handle, d->iSerialNumber, serial, sizeof serial);
  if (!error) err = try_claim(handle);
  if (!error) libusb_close(handle);
  if (is_name((const char *)serial))
    snprintf(args, sizeof args, "serial=%s", serial);
  else
    snprintf(args, sizeof args, "bus=%u,addr=%u", libusb_get_bus_number(dev),
             libusb_get_device_address(dev));
  if (err == CT_ERR_BUSY)
    snprintf(text, sizeof text, "in use by another program: close that first");
  else if (!err)
    snprintf(text, sizeof text,
             "%s at bus %u, address %u; whether a core is behind it shows when "
             "it is opened",
             d->idProduct == FT232H ? "FT232H" : "FT2232H", libusb_get_bus_number(dev),
             libusb_get_device_address(dev));
  found(arg, args, text, err);
}

int ct_usb_link_list(ct_transport_found *found, void *arg) {
  const struct ct_usb_where any = {.vid = 0};
  libusb_context *usb;
  libusb_device **list = NULL;
  if (libusb_init(&usb)) return CT_OK; /* a machine without USB has no board on it */
  const ssize_t count = libusb_get_device_list(usb, &list);
  for (ssize_t i = 0; i < count; ++i) {
    struct libusb_device_descriptor d;
    if (!libusb_get_device_descriptor(list[i], &d) && fits(&any, list[i], &d))
      list_board(list[i], &d, found, arg);
  }
  if (list) libusb_free_device_list(list, 1);
  libusb_exit(usb);
  return CT_OK;
}

/* ---- The chip ------------------------------------------------------------------------------ */

static int chip(struct ct_usb_link *l, uint8_t request, unsigned value, unsigned index) {
  const uint8_t type = LIBUSB_REQUEST_TYPE_VENDOR | LIBUSB_RECIPIENT_DEVICE | LIBUSB_ENDPOINT_OUT;
  return libusb_control_transfer(l->handle, type, request, (uint16_t)value, (uint16_t)index, NULL,
                                 0, CONTROL_MS);
}

static int set_up_chip(struct ct_usb_link *l, unsigned latency, char *why, size_t whysize) {
  const struct {
    uint8_t request;
    unsigned value, index;
  } steps[] = {{SIO_RESET, RESET_ALL, CHANNEL_A},
               {SIO_SET_BITMODE, MODE_RESET, CHANNEL_A},
               {SIO_SET_LATENCY, latency, CHANNEL_A},
               {SIO_SET_FLOW_CONTROL, 0, FLOW_RTS_CTS | CHANNEL_A},
               {SIO_SET_BITMODE, MODE_SYNC_FIFO, CHANNEL_A},
               {SIO_RESET, RESET_PURGE_RX, CHANNEL_A},
               {SIO_RESET, RESET_PURGE_TX, CHANNEL_A}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; ++i) {
    const int error = chip(l, steps[i].request, steps[i].value, steps[i].index);
    if (error >= 0) continue;
    snprintf(why, whysize,
             "%s cannot be put into synchronous FIFO mode (%s): it needs an FT232H or FT2232H",
             l->name, libusb_strerror(error));
    return CT_ERR_DEVICE;
  }
  return CT_OK;
}

static int claim(struct ct_usb_link *l, char *why, size_t whysize) {
  libusb_set_auto_detach_kernel_driver(l->handle, 1);
  const int error = libusb_claim_interface(l->handle, INTERFACE);
  l->claimed = !error;
  if (!error) return CT_OK;
  if (error == LIBUSB_ERROR_BUSY) {
    snprintf(why, whysize, "%s is in use by another program: close that first", l->name);
    return CT_ERR_BUSY;
  }
  snprintf(why, whysize, "%s cannot be used: %s", l->name, libusb_strerror(error));
  return CT_ERR_DEVICE;
}

/* ---- Transfers ----------------------------------------------------------------------------- */

/* Locked. The first reason counts. */
static void lose(struct ct_usb_link *l, const char *reason) {
  if (!l->gone) snprintf(l->error, sizeof l->error, "%s %s", l->name, reason);
  l->gone = true;
  pthread_cond_broadcast(&l->changed);
}

static const char *reason_of(enum libusb_transfer_status status) {
  switch (status) {
    case LIBUSB_TRANSFER_NO_DEVICE:
      return "was unplugged";
    case LIBUSB_TRANSFER_STALL:
      return "refuses transfers (stall)";
    case LIBUSB_TRANSFER_OVERFLOW:
      return "sent more than it was asked for";
    default:
      return "was unplugged, or the USB connection fails";
  }
}

/* The bytes of the packets, without the two that head each. */
static void take_packets(struct ct_usb_link *l, const uint8_t *bytes, size_t size) {
  while (size > STATUS_BYTES) {
    const size_t n = size < l->packet ? size : l->packet;
    l->take(l->arg, bytes + STATUS_BYTES, n - STATUS_BYTES);
    bytes += n;
    size -= n;
  }
}

static void LIBUSB_CALL read_done(struct libusb_transfer *t) {
  struct ct_usb_link *l = t->user_data;
  const enum libusb_transfer_status status = t->status;
  const bool fine = status == LIBUSB_TRANSFER_COMPLETED || status == LIBUSB_TRANSFER_TIMED_OUT;
  if (fine) take_packets(l, t->buffer, (size_t)t->actual_length);
  pthread_mutex_lock(&l->lock);
  if (!fine && !l->stop) lose(l, reason_of(status));
  const bool again = !l->stop && !l->gone && libusb_submit_transfer(t) == 0;
  if (!again) {
    --l->reads;
    if (!l->stop) lose(l, reason_of(LIBUSB_TRANSFER_NO_DEVICE));
  }
  const bool gone = l->gone && !l->stop;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  if (gone) l->take(l->arg, NULL, 0);
}

static void LIBUSB_CALL write_done(struct libusb_transfer *t) {
  struct ct_usb_link *l = t->user_data;
  pthread_mutex_lock(&l->lock);
  /* What was not taken in time is lost. */
  if (t->status != LIBUSB_TRANSFER_COMPLETED && t->status != LIBUSB_TRANSFER_TIMED_OUT && !l->stop)
    lose(l, reason_of(t->status));
  for (unsigned i = 0; i < WRITES; ++i)
    if (l->write[i] == t) l->writing[i] = false;
  --l->writes;
  const bool gone = l->gone && !l->stop;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  if (gone) l->take(l->arg, NULL, 0);
}

static void *handle_events(void *arg) {
  struct ct_usb_link *l = arg;
  for (bool stop = false; !stop;) {
    struct timeval look = {.tv_usec = LOOK_MS * 1000L};
    libusb_handle_events_timeout_completed(l->usb, &look, NULL);
    pthread_mutex_lock(&l->lock);
    stop = l->abandoned || (l->stop && !l->reads && !l->writes);
    pthread_mutex_unlock(&l->lock);
  }
  return NULL;
}

/* A transfer with a buffer, or NULL. */
static struct libusb_transfer *new_transfer(size_t size) {
  struct libusb_transfer *t = libusb_alloc_transfer(0);
  if (t && !(t->buffer = malloc(size))) {
    libusb_free_transfer(t);
    t = NULL;
  }
  return t;
}

static void free_transfer(struct libusb_transfer *t) {
  if (t) free(t->buffer);
  libusb_free_transfer(t);
}

static bool start_transfers(struct ct_usb_link *l) {
  for (unsigned i = 0; i < WRITES; ++i) {
    l->write[i] = new_transfer(WRITE_BYTES);
    if (!l->write[i]) return false;
  }
  for (unsigned i = 0; i < READS; ++i) {
    struct libusb_transfer *t = l->read[i] = new_transfer(READ_BYTES);
    if (!t) return false;
    libusb_fill_bulk_transfer(t, l->handle, EP_IN, t->buffer, READ_BYTES, read_done, l, 0);
    pthread_mutex_lock(&l->lock);
    const bool good = libusb_submit_transfer(t) == 0;
    l->reads += good;
    pthread_mutex_unlock(&l->lock);
    if (!good) return false;
  }
  return true;
}

/* The thread leaves signals to the program's own. */
static bool start_thread(struct ct_usb_link *l) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  l->running = pthread_create(&l->thread, NULL, handle_events, l) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return l->running;
}

/* Locked. A transfer that is not under way; waits for it. NULL: none came in time, or the board is
 * gone. */
static struct libusb_transfer *free_write(struct ct_usb_link *l, unsigned timeout_ms) {
  const struct timespec end = ct_after_ms(timeout_ms);
  for (bool late = false; !l->gone;) {
    for (unsigned i = 0; i < WRITES; ++i)
      if (!l->writing[i]) {
        l->writing[i] = true;
        return l->write[i];
      }
    if (late) return NULL;
    late = pthread_cond_timedwait(&l->changed, &l->lock, &end) != 0;
  }
  return NULL;
}

/* Locked. */
static void submit(struct ct_usb_link *l, struct libusb_transfer *t, size_t size, unsigned ms) {
  libusb_fill_bulk_transfer(t, l->handle, EP_OUT, t->buffer, (int)size, write_done, l, ms);
  ++l->writes;
  if (libusb_submit_transfer(t) == 0) return;
  --l->writes;
  for (unsigned i = 0; i < WRITES; ++i)
    if (l->write[i] == t) l->writing[i] = false;
  lose(l, reason_of(LIBUSB_TRANSFER_NO_DEVICE));
}

int ct_usb_link_send(void *link, const uint8_t *bytes, size_t size, unsigned timeout_ms) {
  struct ct_usb_link *l = link;
  int err = CT_OK;
  pthread_mutex_lock(&l->lock);
  for (size_t done = 0; done < size && !err;) {
    struct libusb_transfer *t = free_write(l, timeout_ms);
    const size_t n = size - done < WRITE_BYTES ? size - done : WRITE_BYTES;
    if (t) {
      memcpy(t->buffer, bytes + done, n);
      submit(l, t, n, timeout_ms);
      done += n;
    } else {
      err = CT_ERR_TIMEOUT;
    }
    if (l->gone) err = CT_ERR_DEVICE;
  }
  if (l->gone) err = CT_ERR_DEVICE;
  pthread_mutex_unlock(&l->lock);
  return err;
}

/* ---- Opening and closing ------------------------------------------------------------------- */

const char *ct_usb_link_error(void *link) {
  struct ct_usb_link *l = link;
  pthread_mutex_lock(&l->lock);
  const char *error = l->error;
  pthread_mutex_unlock(&l->lock);
  return error;
}

const char *ct_usb_link_name(const void *link) {
  return ((const struct ct_usb_link *)link)->name;
}

static int begin(struct ct_usb_link *l, const struct ct_usb_where *where, char *why,
                 size_t whysize) {
  int err = start_libusb(&l->usb, why, whysize);
  if (!err) err = find(l, where, why, whysize);
  if (!err) err = claim(l, why, whysize);
  if (!err) err = set_up_chip(l, (unsigned)where->latency, why, whysize);
  if (err) return err;
  if (start_thread(l) && start_transfers(l)) return CT_OK;
  snprintf(why, whysize, "%s cannot be read from", l->name);
  return CT_ERR_DEVICE;
}

int ct_usb_link_open(const struct ct_usb_where *where, ct_line_take *take, void *arg, void **link,
                     char *why, size_t whysize) {
  struct ct_usb_link *l = calloc(1, sizeof *l);
  pthread_condattr_t attr;
  if (!l) {
    snprintf(why, whysize, "the host has no memory left");
    return CT_ERR_MEMORY;
  }
  l->take = take;
  l->arg = arg;
  pthread_mutex_init(&l->lock, NULL);
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&l->changed, &attr);
  pthread_condattr_destroy(&attr);
  const int err = begin(l, where, why, whysize);
  if (err) {
    ct_usb_link_close(l);
    return err;
  }
  *link = l;
  return CT_OK;
}

/* Ends the transfers and the thread. False: some transfers did not end in time. */
static bool stop(struct ct_usb_link *l) {
  const struct timespec end = ct_after_ms(CLOSE_MS);
  pthread_mutex_lock(&l->lock);
  l->stop = true;
  for (unsigned i = 0; i < READS; ++i)
    if (l->read[i]) libusb_cancel_transfer(l->read[i]);
  for (unsigned i = 0; i < WRITES; ++i)
    if (l->writing[i]) libusb_cancel_transfer(l->write[i]);
  while ((l->reads || l->writes) && l->running &&
         !pthread_cond_timedwait(&l->changed, &l->lock, &end)) {
  }
  const bool ended = !l->reads && !l->writes;
  l->abandoned = !ended;
  pthread_mutex_unlock(&l->lock);
  libusb_interrupt_event_handler(l->usb);
  if (l->running) pthread_join(l->thread, NULL);
  return ended;
}

void ct_usb_link_close(void *link) {
  struct ct_usb_link *l = link;
  if (!l) return;
  if (l->usb && !stop(l)) return; /* the kernel may still write to the buffers: they stay */
  for (unsigned i = 0; i < READS; ++i)
    free_transfer(l->read[i]);
  for (unsigned i = 0; i < WRITES; ++i)
    free_transfer(l->write[i]);
  if (l->claimed && !l->gone) chip(l, SIO_SET_BITMODE, MODE_RESET, CHANNEL_A);
  if (l->claimed) libusb_release_interface(l->handle, INTERFACE);
  if (l->handle) libusb_close(l->handle);
  if (l->usb) libusb_exit(l->usb);
  pthread_cond_destroy(&l->changed);
  pthread_mutex_destroy(&l->lock);
  free(l);
}
