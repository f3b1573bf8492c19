/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_usb_bed.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/ioctl.h>
#include <linux/usbdevice_fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <umockdev.h>
#include <unistd.h>

#include "ct_tb.h"
#include "ct_usb_behind.h"
#include "ct_usb_rtl.h"

enum {
  PACKET = 512,
  LINE = 1 << 20,
  LATENCY_US = 2000, /* of the chip's timer here */
  POLL_US = 50,      /* libusb takes the mocked file for ready at any time: not so fast */
  MAX_URBS = 16,
  FT_PS = 16667, /* the chip's clock: 60 MHz; the Verilated board's is the same */
  MAX_BEDS = 4
};

/* Bytes on their way in one direction. */
struct line {
  uint8_t byte[LINE];
  size_t first, count;
};

struct urb {
  UMockdevIoctlData *data, *buffer;
};

struct ct_usb_bed {
  UMockdevIoctlBase *ioctls;
  unsigned address; /* on bus 1 */
  char node[32], *syspath;
  struct ct_usb_rtl *rtl;     /* the Verilated board; NULL: the model in C */
  struct ct_usb_behind model; /* of the thread */
  pthread_t thread;
  struct urb flying[MAX_URBS], done[MAX_URBS]; /* of umockdev's thread */
  unsigned flyings, dones;
  uint64_t last_in;

  pthread_mutex_t lock; /* of what follows */
  struct line in, out;  /* to the host, to the board */
  struct ct_usb_faults faults;
  ct_rng rng;
  unsigned long bad; /* bytes lost or damaged */
  bool gone, stop, flush;
};

/* ---- The line ------------------------------------------------------------------------------ */

static void put(struct line *l, uint8_t byte) {
  if (l->count == LINE) return;
  l->byte[(l->first + l->count++) % LINE] = byte;
}

static uint8_t get(struct line *l) {
  const uint8_t byte = l->byte[l->first];
  l->first = (l->first + 1) % LINE;
  --l->count;
  return byte;
}

/* Locked. With the faults that are asked for. */
static void put_faulty(struct ct_usb_bed *b, struct line *l, uint8_t byte) {
  const struct ct_usb_faults *f = &b->faults;
  const bool drop = f->drop && ct_rng_below(&b->rng, 1000000) < f->drop;
  const bool damage = f->damage && ct_rng_below(&b->rng, 1000000) < f->damage;
  b->bad += drop || damage;
  if (damage) byte ^= (uint8_t)(1 + ct_rng_below(&b->rng, 255));
  if (!drop) put(l, byte);
}

static void board_sends(void *arg, const uint8_t *bytes, size_t size) {
  struct ct_usb_bed *b = arg;
  pthread_mutex_lock(&b->lock);
  for (size_t i = 0; i < size && !b->faults.silent; ++i)
    put_faulty(b, &b->in, bytes[i]);
  pthread_mutex_unlock(&b->lock);
}

/* Bytes between the line and the FIFOs of the Verilated board's chip. */
static void feed_rtl(struct ct_usb_bed *b) {
  uint8_t bytes[1024];
  size_t n = 0;
  bool flush;
  pthread_mutex_lock(&b->lock);
  const size_t room = ct_usb_rtl_room(b->rtl);
  while (n < room && b->out.count)
    bytes[n++] = get(&b->out);
  ct_usb_rtl_put(b->rtl, bytes, n);
  n = ct_usb_rtl_get(b->rtl, bytes, sizeof bytes, &flush);
  for (size_t i = 0; i < n && !b->faults.silent; ++i)
    put_faulty(b, &b->in, bytes[i]);
  b->flush = b->flush || flush;
  pthread_mutex_unlock(&b->lock);
}

static void *run_rtl(void *arg) {
  struct ct_usb_bed *b = arg;
  for (bool stop = false; !stop;) {
    feed_rtl(b);
    ct_usb_rtl_run(b->rtl, 256);
    pthread_mutex_lock(&b->lock);
    stop = b->stop;
    pthread_mutex_unlock(&b->lock);
  }
  return NULL;
}

/* The board and its core, in real parallel with the host. */
static void *run_board(void *arg) {
  struct ct_usb_bed *b = arg;
  for (bool stop = false; !stop;) {
    uint8_t bytes[256];
    size_t n = 0;
    pthread_mutex_lock(&b->lock);
    while (n < sizeof bytes && b->out.count)
      bytes[n++] = get(&b->out);
    stop = b->stop;
    pthread_mutex_unlock(&b->lock);
    for (size_t i = 0; i < n; ++i)
      ct_usb_board_take(&b->model.board, bytes[i]);
    ct_usb_behind_run(&b->model, n == 0);
  }
  return NULL;
}

/* ---- The chip ------------------------------------------------------------------------------ */

static uint64_t us_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Packets with two status bytes each, until one is short. Locked. */
static int fill_packets(struct ct_usb_bed *b, uint8_t *to, int size) {
  int at = 0;
  const bool late = us_now() - b->last_in > LATENCY_US;
  const bool held = b->faults.delay && ct_rng_percent(&b->rng, b->faults.delay);
  const bool full = b->in.count >= PACKET - 2 || b->flush || !b->rtl; /* the model flushes */
  if ((!b->in.count || !full || held) && !late) return -1;
  b->flush = false;
  b->last_in = us_now();
  while (at + 2 <= size) {
    unsigned room = size - at < PACKET ? (unsigned)(size - at) : PACKET, n = 2;
    if (b->faults.packets && ct_rng_percent(&b->rng, b->faults.packets))
      room = 2 + ct_rng_below(&b->rng, room - 1);
    to[at] = 0x02;
    to[at + 1] = 0x60;
    while (n < room && b->in.count)
      to[at + (int)n++] = get(&b->in);
    at += (int)n;
    if (n < PACKET) break;
  }
  return at;
}

static int take_bytes(struct ct_usb_bed *b, const uint8_t *from, int size) {
  if (LINE - b->out.count < (size_t)size) return -1;
  for (int i = 0; i < size; ++i)
    put_faulty(b, &b->out, from[i]);
  return size;
}

/* Control requests: the vendor's, and the serial number. -EPIPE: not known. */
static int control(struct ct_usb_bed *b, uint8_t *setup) {
  const unsigned type = setup[0], request = setup[1], value = ct_usb_get16(setup + 2);
  (void)b;
  if (type == 0x40 && (request == 0 || request == 2 || request == 9 || request == 11)) return 0;
  if (type != 0x80 || request != 6 || value >> 8 != 3) return -EPIPE;
  const char *text = g_object_get_data(G_OBJECT(b->ioctls), "serial");
  uint8_t *d = setup + 8;
  size_t n = 2;
  if (value & 255) {
    for (size_t i = 0; text[i]; ++i, n += 2)
      ct_usb_put16(d + n, (uint8_t)text[i]);
  } else {
    ct_usb_put16(d + n, 0x0409);
    n += 2;
  }
  d[0] = (uint8_t)n;
  d[1] = 3;
  const unsigned room = ct_usb_get16(setup + 6);
  return (int)(n < room ? n : room);
}

/* ---- The kernel's file --------------------------------------------------------------------- */

/* Whether the transfer is over. */
static bool progress(struct ct_usb_bed *b, const struct urb *u) {
  struct usbdevfs_urb *x = (struct usbdevfs_urb *)u->data->data;
  int n = 0;
  pthread_mutex_lock(&b->lock);
  if (b->gone)
    n = -ENODEV;
  else if (x->type == USBDEVFS_URB_TYPE_CONTROL)
    n = control(b, x->buffer);
  else if (x->endpoint & 0x80)
    n = fill_packets(b, x->buffer, x->buffer_length);
  else
    n = take_bytes(b, x->buffer, x->buffer_length);
  pthread_mutex_unlock(&b->lock);
  if (n == -1) return false;
  x->status = n < 0 ? n : 0;
  x->actual_length = n < 0 ? 0 : n;
  return true;
}

static void end_urb(struct ct_usb_bed *b, unsigned i) {
  b->done[b->dones++] = b->flying[i];
  --b->flyings;
  memmove(b->flying + i, b->flying + i + 1, (b->flyings - i) * sizeof *b->flying);
}

static void progress_all(struct ct_usb_bed *b) {
  bool in_busy = false; /* reads are served in order */
  for (unsigned i = 0; i < b->flyings;) {
    const struct usbdevfs_urb *x = (const struct usbdevfs_urb *)b->flying[i].data->data;
    const bool in = x->endpoint & 0x80 && x->type != USBDEVFS_URB_TYPE_CONTROL;
    if (!(in && in_busy) && progress(b, &b->flying[i])) {
      end_urb(b, i);
    } else {
      in_busy = in_busy || in;
      ++i;
    }
  }
}

static int submit(struct ct_usb_bed *b, UMockdevIoctlData *arg) {
  struct urb u;
  if (b->flyings + b->dones == MAX_URBS) return ENOMEM;
  /* Nothing can be read of a client that was killed meanwhile. */
  u.data = umockdev_ioctl_data_resolve(arg, 0, sizeof(struct usbdevfs_urb), NULL);
  if (!u.data) return EFAULT;
  const struct usbdevfs_urb *x = (const struct usbdevfs_urb *)u.data->data;
  u.buffer = umockdev_ioctl_data_resolve(u.data, G_STRUCT_OFFSET(struct usbdevfs_urb, buffer),
                                         (gsize)x->buffer_length, NULL);
  if (!u.buffer && x->buffer_length > 0) {
    umockdev_ioctl_data_unref(u.data);
    return EFAULT;
  }
  b->flying[b->flyings++] = u;
  progress_all(b);
  return 0;
}

static int reap(struct ct_usb_bed *b, UMockdevIoctlData *arg) {
  progress_all(b);
  if (!b->dones) {
    usleep(POLL_US);
    return b->gone ? ENODEV : EAGAIN;
  }
  const struct urb u = b->done[0];
  --b->dones;
  memmove(b->done, b->done + 1, b->dones * sizeof *b->done);
  UMockdevIoctlData *d = umockdev_ioctl_data_resolve(arg, 0, sizeof(void *), NULL);
  if (d) {
    umockdev_ioctl_data_set_ptr(d, 0, u.data);
    umockdev_ioctl_data_unref(d);
  }
  if (u.buffer) umockdev_ioctl_data_unref(u.buffer);
  umockdev_ioctl_data_unref(u.data);
  return d ? 0 : EFAULT;
}

static int discard(struct ct_usb_bed *b, UMockdevIoctlData *arg) {
  const gulong key = *(const gulong *)(const void *)arg->data;
  for (unsigned i = 0; i < b->flyings; ++i) {
    if (b->flying[i].data->client_addr != key) continue;
    ((struct usbdevfs_urb *)b->flying[i].data->data)->status = -ENOENT;
    end_urb(b, i);
    return 0;
  }
  return EINVAL;
}

static int answer(struct ct_usb_bed *b, gulong request, UMockdevIoctlData *arg) {
  pthread_mutex_lock(&b->lock);
  const bool gone = b->gone, busy = b->faults.busy;
  pthread_mutex_unlock(&b->lock);
  if (gone && request != USBDEVFS_REAPURBNDELAY && request != USBDEVFS_DISCARDURB) return ENODEV;
  switch (request) {
    case USBDEVFS_GET_CAPABILITIES: {
      UMockdevIoctlData *d = umockdev_ioctl_data_resolve(arg, 0, 4, NULL);
      if (!d) return EFAULT;
      *(guint32 *)(void *)d->data = USBDEVFS_CAP_NO_PACKET_SIZE_LIM |
                                    USBDEVFS_CAP_BULK_CONTINUATION |
                                    USBDEVFS_CAP_REAP_AFTER_DISCONNECT | USBDEVFS_CAP_ZERO_PACKET;
      umockdev_ioctl_data_unref(d);
      return 0;
    }
    case USBDEVFS_DISCONNECT_CLAIM:
    case USBDEVFS_CLAIMINTERFACE:
      return busy ? EBUSY : 0;
    case USBDEVFS_RELEASEINTERFACE:
    case USBDEVFS_CLEAR_HALT:
    case USBDEVFS_SETINTERFACE:
    case USBDEVFS_SETCONFIGURATION:
    case USBDEVFS_RESET:
      return 0;
    case USBDEVFS_GETDRIVER:
      return ENODATA;
    case USBDEVFS_SUBMITURB:
      return submit(b, arg);
    case USBDEVFS_REAPURB:
    case USBDEVFS_REAPURBNDELAY:
      return reap(b, arg);
    case USBDEVFS_DISCARDURB:
      return discard(b, arg);
    default:
      return ENOTTY;
  }
}

static gboolean on_ioctl(UMockdevIoctlBase *base, UMockdevIoctlClient *client, gpointer bed) {
  (void)base;
  const int error =
      answer(bed, umockdev_ioctl_client_get_request(client), umockdev_ioctl_client_get_arg(client));
  umockdev_ioctl_client_complete(client, error ? -1 : 0, error);
  return TRUE;
}

/* ---- The bed ------------------------------------------------------------------------------- */

void ct_usb_bed_enter(char **argv) {
  const char *loaded = getenv("LD_PRELOAD");
  if (loaded && strstr(loaded, "libumockdev-preload")) return;
  setenv("LD_PRELOAD", "libumockdev-preload.so.0", 1);
  execv("/proc/self/exe", argv);
  exit(1);
}

/* One testbed for all boards of this process; the first bed makes it, the last one ends it. */
static struct {
  UMockdevTestbed *testbed;
  unsigned beds;
  unsigned made; /* so far: each has other faults */
  bool taken[MAX_BEDS];
} shared;

/* umockdev 0.17 now and then frees a client whose file is still open, and then its program waits
 * for ever: we hold each one once more. */
static void on_connected(UMockdevIoctlBase *base, UMockdevIoctlClient *client, gpointer bed) {
  (void)base;
  (void)bed;
  g_object_ref(client);
}

static void attach(struct ct_usb_bed *b, const char *serial) {
  GError *error = NULL;
  b->ioctls = umockdev_ioctl_base_new();
  g_object_set_data_full(G_OBJECT(b->ioctls), "serial", g_strdup(serial), g_free);
  g_object_connect(b->ioctls, "signal-after::handle-ioctl", on_ioctl, b, "signal::client-connected",
                   on_connected, b, NULL);
  if (!umockdev_testbed_attach_ioctl(shared.testbed, b->node, b->ioctls, &error))
    fail_msg("umockdev: %s", error->message);
}

void ct_usb_bed_killed(struct ct_usb_bed *b) {
  char *serial = g_strdup(g_object_get_data(G_OBJECT(b->ioctls), "serial"));
  umockdev_testbed_detach_ioctl(shared.testbed, b->node, NULL);
  b->flyings = b->dones = 0; /* the dead program's, and its memory */
  attach(b, serial);
  g_free(serial);
}

static void show_board(struct ct_usb_bed *b, const char *serial) {
  char text[1024];
  GError *error = NULL;
  snprintf(text, sizeof text,
           "P: /devices/usb1/1-%u\nN: bus/usb/001/%03u\nE: SUBSYSTEM=usb\nE: DRIVER=usb\n"
           "E: BUSNUM=001\nE: DEVNUM=%03u\nE: DEVNAME=/dev/bus/usb/001/%03u\nE: "
           "DEVTYPE=usb_device\n"
           "A: bConfigurationValue=1\\n\nA: busnum=1\\n\nA: devnum=%u\\n\nA: speed=480\\n\n"
           "A: serial=%s\\n\n"
           "H: descriptors=12010002FF00004003041460000900000301"
           "09022000010100803209040000"
           "02FF000000"
           "0705810200020007050202000200\n",
           b->address, b->address, b->address, b->address, b->address, serial);
  snprintf(b->node, sizeof b->node, "/dev/bus/usb/001/%03u", b->address);
  b->syspath = g_strdup_printf("/sys/devices/usb1/1-%u", b->address);
  attach(b, serial);
  if (!umockdev_testbed_add_from_string(shared.testbed, text, &error))
    fail_msg("umockdev: %s", error->message);
}

static void open_board(struct ct_usb_bed *b, const char *device) {
  if (strncmp(device, "rtl:", 4) == 0) {
    b->rtl = ct_usb_rtl_new(FT_PS, FT_PS);
    assert_non_null(b->rtl);
    return;
  }
  ct_usb_behind_open(&b->model, device, board_sends, b);
}

struct ct_usb_bed *ct_usb_bed_new(const char *device, const char *serial) {
  struct ct_usb_bed *b = calloc(1, sizeof *b);
  unsigned place = 0;
  assert_non_null(b);
  open_board(b, device);
  pthread_mutex_init(&b->lock, NULL);
  b->rng = ct_rng_make(77 + shared.made++);
  if (!shared.beds++) shared.testbed = umockdev_testbed_new();
  while (place < MAX_BEDS - 1 && shared.taken[place])
    ++place;
  assert_false(shared.taken[place]);
  shared.taken[place] = true;
  b->address = 2 + place;
  show_board(b, serial);
  assert_int_equal(pthread_create(&b->thread, NULL, b->rtl ? run_rtl : run_board, b), 0);
  return b;
}

static void close_board(struct ct_usb_bed *b) {
  ct_usb_behind_close(&b->model);
  if (!b->rtl) return;
  if (ct_usb_rtl_fault(b->rtl)) fail_msg("the board's memory: %s", ct_usb_rtl_fault(b->rtl));
  ct_usb_rtl_free(b->rtl);
}

void ct_usb_bed_free(struct ct_usb_bed *b) {
  pthread_mutex_lock(&b->lock);
  b->stop = true;
  pthread_mutex_unlock(&b->lock);
  pthread_join(b->thread, NULL);
  umockdev_testbed_detach_ioctl(shared.testbed, b->node, NULL);
  if (b->syspath) umockdev_testbed_remove_device(shared.testbed, b->syspath);
  g_free(b->syspath);
  g_object_unref(b->ioctls);
  shared.taken[b->address - 2] = false;
  if (!--shared.beds) g_clear_object(&shared.testbed);
  close_board(b);
  pthread_mutex_destroy(&b->lock);
  free(b);
}

unsigned ct_usb_bed_count(void) {
  return shared.beds;
}

void ct_usb_bed_faults(struct ct_usb_bed *b, struct ct_usb_faults faults) {
  pthread_mutex_lock(&b->lock);
  b->faults = faults;
  pthread_mutex_unlock(&b->lock);
}

void ct_usb_bed_version(struct ct_usb_bed *b, unsigned version) {
  b->model.board.version = (uint16_t)version;
}

void ct_usb_bed_unplug(struct ct_usb_bed *b) {
  pthread_mutex_lock(&b->lock);
  b->gone = true;
  pthread_mutex_unlock(&b->lock);
  umockdev_testbed_remove_device(shared.testbed, b->syspath);
  g_free(b->syspath);
  b->syspath = NULL;
}

struct ct_usb_bed_counts ct_usb_bed_counts(struct ct_usb_bed *b) {
  pthread_mutex_lock(&b->lock);
  const struct ct_usb_bed_counts c = {b->model.board.done, b->model.board.again, b->bad};
  pthread_mutex_unlock(&b->lock);
  return c;
}

const char *ct_usb_bed_node(struct ct_usb_bed *b) {
  return b->node;
}
