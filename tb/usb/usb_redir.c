/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usb_redir QEMU ARGUMENTS...: runs QEMU with a board on its USB, the Verilated one behind an
 * FT232H (ct_usb_chip.h), by the protocol usbredir. Ends as QEMU ends. QEMU gets two character
 * devices:
 *
 *   board    for -device usb-redir,chardev=board
 *   hand     for a serial port; what the guest writes there is done: '+' plugs the board in, '-'
 *            pulls it out. Before the first '+' it is not there. Each time it is plugged in it has
 *            just got power.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <usbredirparser.h>

#include "ct_usb_chip.h"

enum { CYCLES = 64, /* the board runs between looks at QEMU */ IDLE_MS = 100 };

/* A bulk transfer that is not over. */
struct transfer {
  struct transfer *next;
  uint64_t id;
  struct usb_redir_bulk_packet_header head;
  uint8_t *bytes;
  size_t size, at;
};

struct bed {
  int qemu, hand;
  struct usbredirparser *parser;
  struct ct_usb_chip *chip;  /* NULL: pulled out */
  struct transfer *first[2]; /* of those to the board, to the host */
  bool greeted;              /* QEMU may be told of a board */
  uint8_t configuration;
  bool broken; /* a rule of the board's memory */
};

/* ---- The stream ---------------------------------------------------------------------------- */

static int again_or(ssize_t n) {
  if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  return (int)n;
}

static int read_stream(void *bed, uint8_t *to, int size) {
  const ssize_t n = read(((struct bed *)bed)->qemu, to, (size_t)size);
  return n == 0 ? -1 : again_or(n);
}

static int write_stream(void *bed, uint8_t *from, int size) {
  return again_or(send(((struct bed *)bed)->qemu, from, (size_t)size, MSG_NOSIGNAL));
}

static void note(void *bed, int level, const char *text) {
  (void)bed;
  if (level <= usbredirparser_warning) fprintf(stderr, "usb_redir: %s\n", text);
}

/* ---- Transfers ----------------------------------------------------------------------------- */

static void answer_transfer(struct bed *b, struct transfer *t, uint8_t status) {
  const bool in = t->head.endpoint & 0x80;
  struct usb_redir_bulk_packet_header h = t->head;
  h.status = status;
  h.length = (uint16_t)t->at;
  h.length_high = (uint16_t)(t->at >> 16);
  usbredirparser_send_bulk_packet(b->parser, t->id, &h, in && t->at ? t->bytes : NULL,
                                  in ? (int)t->at : 0);
}

static void free_transfer(struct transfer *t) {
  free(t->bytes);
  free(t);
}

static void drop_transfers(struct bed *b) {
  for (int in = 0; in < 2; ++in)
    for (struct transfer *t = b->first[in], *next; t; t = next) {
      next = t->next;
      free_transfer(t);
    }
  b->first[0] = b->first[1] = NULL;
}

static void begin_transfer(void *bed, uint64_t id, struct usb_redir_bulk_packet_header *h,
                           uint8_t *data, int size) {
  struct bed *b = bed;
  const bool in = h->endpoint == CT_USB_CHIP_IN;
  struct transfer *t = calloc(1, sizeof *t), **last = &b->first[in];
  if (!t) abort();
  *t = (struct transfer){.id = id, .head = *h, .size = h->length | (size_t)h->length_high << 16};
  t->bytes = malloc(t->size + 1);
  if (!t->bytes) abort();
  if (!in && (size_t)size == t->size) memcpy(t->bytes, data, t->size);
  usbredirparser_free_packet_data(b->parser, data);
  if (!b->chip || (!in && (h->endpoint != CT_USB_CHIP_OUT || (size_t)size != t->size))) {
    answer_transfer(b, t, usb_redir_ioerror);
    free_transfer(t);
    return;
  }
  while (*last)
    last = &(*last)->next;
  *last = t;
}

/* Every transfer is answered once. */
static void cancel_transfer(void *bed, uint64_t id) {
  struct bed *b = bed;
  for (int in = 0; in < 2; ++in)
    for (struct transfer **at = &b->first[in]; *at; at = &(*at)->next) {
      struct transfer *t = *at;
      if (t->id != id) continue;
      *at = t->next;
      if (in) t->at = 0;
      answer_transfer(b, t, usb_redir_cancelled);
      free_transfer(t);
      return;
    }
}

/* The first of each direction goes on as far as the chip lets it. */
static void move(struct bed *b) {
  for (int in = 0; in < 2; ++in)
    for (struct transfer *t = b->first[in]; t; t = b->first[in]) {
      if (!in) t->at += ct_usb_chip_take(b->chip, t->bytes + t->at, t->size - t->at);
      if (in ? !ct_usb_chip_give(b->chip, t->bytes, t->size, &t->at) : t->at < t->size) break;
      b->first[in] = t->next;
      answer_transfer(b, t, usb_redir_success);
      free_transfer(t);
    }
}

/* ---- Requests ------------------------------------------------------------------------------ */

static void on_request(void *bed, uint64_t id, struct usb_redir_control_packet_header *h,
                       uint8_t *data, int size) {
  struct bed *b = bed;
  uint8_t reply[CT_USB_CHIP_REPLY];
  const struct ct_usb_setup setup = {h->requesttype, h->request, h->value, h->index, h->length};
  const bool in = h->requesttype & 0x80;
  const int n = b->chip ? ct_usb_chip_request(b->chip, &setup, reply) : CT_USB_CHIP_STALL;
  (void)size;
  if (data) usbredirparser_free_packet_data(b->parser, data);
  h->status = n < 0 ? usb_redir_stall : usb_redir_success;
  if (n < 0 || in) h->length = n < 0 ? 0 : (uint16_t)n;
  usbredirparser_send_control_packet(b->parser, id, h, in && n > 0 ? reply : NULL,
                                     in && n > 0 ? n : 0);
}

static void say_configuration(void *bed, uint64_t id) {
  struct bed *b = bed;
  struct usb_redir_configuration_status_header s = {.status = usb_redir_success,
                                                    .configuration = b->configuration};
  usbredirparser_send_configuration_status(b->parser, id, &s);
}

static void set_configuration(void *bed, uint64_t id,
                              struct usb_redir_set_configuration_header *h) {
  ((struct bed *)bed)->configuration = h->configuration;
  say_configuration(bed, id);
}

static void say_setting(struct bed *b, uint64_t id, uint8_t interface) {
  struct usb_redir_alt_setting_status_header s = {.status = usb_redir_success,
                                                  .interface = interface};
  usbredirparser_send_alt_setting_status(b->parser, id, &s);
}

static void set_setting(void *bed, uint64_t id, struct usb_redir_set_alt_setting_header *h) {
  say_setting(bed, id, h->interface);
}

static void get_setting(void *bed, uint64_t id, struct usb_redir_get_alt_setting_header *h) {
  say_setting(bed, id, h->interface);
}

/* A reset of the USB port: the chip forgets its transfers, the board behind it goes on. */
static void on_reset(void *bed) {
  struct bed *b = bed;
  drop_transfers(b);
  b->configuration = 0;
}

/* ---- Plugging in, pulling out -------------------------------------------------------------- */

static void tell_of_board(struct bed *b) {
  struct usb_redir_interface_info_header i = {.interface_count = 1, .interface_class = {0xff}};
  struct usb_redir_ep_info_header e;
  struct usb_redir_device_connect_header d = {.speed = usb_redir_speed_high,
                                              .vendor_id = CT_USB_CHIP_VENDOR,
                                              .product_id = CT_USB_CHIP_PRODUCT,
                                              .device_version_bcd = CT_USB_CHIP_VERSION};
  const unsigned in = 16 + (CT_USB_CHIP_IN & 15), out = CT_USB_CHIP_OUT;
  memset(&e, 0, sizeof e);
  memset(e.type, usb_redir_type_invalid, sizeof e.type);
  e.type[0] = e.type[16] = usb_redir_type_control;
  e.max_packet_size[0] = e.max_packet_size[16] = 64;
  e.type[in] = e.type[out] = usb_redir_type_bulk;
  e.max_packet_size[in] = e.max_packet_size[out] = CT_USB_CHIP_PACKET;
  usbredirparser_send_interface_info(b->parser, &i);
  usbredirparser_send_ep_info(b->parser, &e);
  usbredirparser_send_device_connect(b->parser, &d);
}

static void plug_in(struct bed *b) {
  if (b->chip) return;
  b->chip = ct_usb_chip_new("CT0001");
  if (!b->chip) abort();
  b->configuration = 0;
  if (b->greeted) tell_of_board(b);
}

static void pull_out(struct bed *b) {
  if (!b->chip) return;
  const char *fault = ct_usb_chip_fault(b->chip);
  if (fault) fprintf(stderr, "usb_redir: the board's memory: %s\n", fault);
  b->broken = b->broken || fault;
  if (b->greeted) usbredirparser_send_device_disconnect(b->parser);
  drop_transfers(b);
  ct_usb_chip_free(b->chip);
  b->chip = NULL;
}

static void on_hello(void *bed, struct usb_redir_hello_header *h) {
  struct bed *b = bed;
  (void)h;
  b->greeted = true;
  if (b->chip) tell_of_board(b);
}

static void ignore(void *bed) {
  (void)bed;
}

static void ignore_filter(void *bed, struct usbredirfilter_rule *rules, int count) {
  (void)bed;
  (void)count;
  free(rules);
}

/* What the guest writes to its serial port. */
static void follow_hand(struct bed *b) {
  char c;
  while (recv(b->hand, &c, 1, MSG_DONTWAIT) == 1) {
    if (c == '+') plug_in(b);
    if (c == '-') pull_out(b);
  }
}

/* ---- Running ------------------------------------------------------------------------------- */

static void make_parser(struct bed *b) {
  static const int able[] = {usb_redir_cap_connect_device_version,
                             usb_redir_cap_filter,
                             usb_redir_cap_device_disconnect_ack,
                             usb_redir_cap_ep_info_max_packet_size,
                             usb_redir_cap_64bits_ids,
                             usb_redir_cap_32bits_bulk_length};
  uint32_t caps[USB_REDIR_CAPS_SIZE] = {0};
  struct usbredirparser *p = usbredirparser_create();
  if (!p) abort();
  b->parser = p;
  p->priv = b;
  p->log_func = note;
  p->read_func = read_stream;
  p->write_func = write_stream;
  p->hello_func = on_hello;
  p->reset_func = on_reset;
  p->set_configuration_func = set_configuration;
  p->get_configuration_func = say_configuration;
  p->set_alt_setting_func = set_setting;
  p->get_alt_setting_func = get_setting;
  p->control_packet_func = on_request;
  p->bulk_packet_func = begin_transfer;
  p->cancel_data_packet_func = cancel_transfer;
  p->filter_reject_func = ignore;
  p->filter_filter_func = ignore_filter;
  p->device_disconnect_ack_func = ignore;
  for (size_t i = 0; i < sizeof able / sizeof *able; ++i)
    usbredirparser_caps_set_cap(caps, able[i]);
  usbredirparser_init(p, "coltrain", caps, USB_REDIR_CAPS_SIZE, usbredirparser_fl_usb_host);
}

/* False: QEMU has ended. */
static bool serve(struct bed *b) {
  struct pollfd fds[] = {{.fd = b->qemu, .events = POLLIN}, {.fd = b->hand, .events = POLLIN}};
  if (usbredirparser_has_data_to_write(b->parser)) fds[0].events |= POLLOUT;
  poll(fds, 2, b->chip ? 0 : IDLE_MS);
  if (fds[0].revents & (POLLIN | POLLHUP) &&
      usbredirparser_do_read(b->parser) == usbredirparser_read_io_error)
    return false;
  follow_hand(b);
  if (b->chip) {
    move(b);
    ct_usb_chip_run(b->chip, CYCLES);
  }
  return !usbredirparser_has_data_to_write(b->parser) || !usbredirparser_do_write(b->parser);
}

static void become_qemu(int board, int hand, int argc, char **argv) {
  char text[2][64];
  char **args = calloc((size_t)argc + 5, sizeof *args);
  if (!args) _exit(127);
  snprintf(text[0], sizeof text[0], "socket,id=board,fd=%d", board);
  snprintf(text[1], sizeof text[1], "socket,id=hand,fd=%d", hand);
  memcpy(args, argv, (size_t)argc * sizeof *args);
  for (int i = 0; i < 2; ++i) {
    args[argc + 2 * i] = (char *)"-chardev";
    args[argc + 2 * i + 1] = text[i];
  }
  execvp(args[0], args);
  _exit(127);
}

int main(int argc, char **argv) {
  static struct bed b; /* zeros */
  int board[2], hand[2], status = 0;
  if (argc < 2) return 2;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, board) || socketpair(AF_UNIX, SOCK_STREAM, 0, hand)) {
    perror("usb_redir");
    return 1;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(board[0]);
    close(hand[0]);
    become_qemu(board[1], hand[1], argc - 1, argv + 1);
  }
  close(board[1]);
  close(hand[1]);
  b.qemu = board[0];
  b.hand = hand[0];
  fcntl(b.qemu, F_SETFL, O_NONBLOCK);
  make_parser(&b);
  while (serve(&b)) {
  }
  pull_out(&b);
  waitpid(pid, &status, 0);
  usbredirparser_destroy(b.parser);
  return WIFEXITED(status) && !b.broken ? WEXITSTATUS(status) : 1;
}
