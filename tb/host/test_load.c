/* SPDX-License-Identifier: Apache-2.0 */
/* The load runner: parts are topped up before each result, failures are sentences; requests, their
 * figures and their rows. */
#include "ct_tb.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/tools/load/load.h"
#include "host/tools/load/requests.h"
#include "coltrain_spec.h"
#include "tiny_program.h"

enum { COUNT = 6, SAMPLES = 40 };

/* ---- Turns ---- */

/* A part that hands over jobs of an empty program, three at a time, up to `wanted`. */
struct feed {
  struct load load;
  ct_program *program;
  uint64_t wanted, submitted, ended;
  unsigned tops; /* calls of top_up() */
  int fail;      /* what it says instead */
};

static int top_up(void *arg) {
  struct feed *f = arg;
  ++f->tops;
  if (f->fail) return f->fail;
  while (f->submitted < f->wanted) {
    const struct ct_job job = {.program = f->program, .user = f};
    if (f->submitted - f->ended >= 3) return CT_ERR_FULL;
    const int rc = ct_submit(f->load.dev, CT_TRAINING, &job, NULL);
    if (rc < 0) return rc;
    ++f->submitted;
  }
  return 0;
}

static int take(void *arg, const struct ct_event *event) {
  struct feed *f = arg;
  assert_ptr_equal(event->user, f);
  ++f->ended;
  return event->error ? load_job_failed(event, "a job") : 0;
}

static void open_feed(struct feed *f, uint64_t wanted) {
  *f = (struct feed){.wanted = wanted};
  assert_int_equal(load_open(&f->load, "emu:", NULL), 0);
  f->program = tiny_program(f->load.dev, false);
  f->load.part[1] = (struct load_part){"submitting a job", top_up, f};
  f->load.take = take;
  f->load.arg = f;
}

static void close_feed(struct feed *f) {
  ct_program_free(f->program);
  load_close(&f->load);
  load_close(&f->load);
}

static void queues_are_kept_full(void **state) {
  (void)state;
  struct feed f;
  open_feed(&f, 10);
  assert_int_equal(load_until_count(&f.load, &f.ended, 4), 0);
  assert_int_equal(f.ended, 4);
  assert_int_equal(f.tops, 4);
  assert_int_equal(f.submitted, 6); /* three under way before each turn took one */
  assert_true(load_is_busy(&f.load));
  f.wanted = f.submitted;
  assert_int_equal(load_drain(&f.load), 0);
  assert_int_equal(f.ended, 6);
  assert_false(load_is_busy(&f.load));
  close_feed(&f);
}

static void failures_end_a_turn(void **state) {
  (void)state;
  struct feed f;
  open_feed(&f, 10);
  f.fail = CT_ERR_MEMORY;
  assert_int_equal(load_turn(&f.load, CT_NO_CYCLE), 1);
  assert_int_equal(f.submitted, 0);
  close_feed(&f);
  assert_int_equal(load_open(&f.load, "nothing:", NULL), 1);
  load_close(&f.load);
}

/* ---- Requests ---- */

/* All of them end 10, 20 ... cycles after they arrive, but the last, which failed. */
static void run(struct requests *r) {
  static const uint64_t arrivals[COUNT] = {0, 5, 100, 200, 200, 400};
  assert_int_equal(requests_open(r, COUNT), 0);
  requests_draw(r, 7, 3, SAMPLES);
  requests_schedule(r, 1000, arrivals);
  for (size_t i = 0; i < COUNT; ++i) {
    const uint64_t at = r->request[i].scheduled;
    const bool failed = i == COUNT - 1;
    const struct ct_event event = {.arrive = at,
                                   .start = at + 5,
                                   .end = at + 10 * (i + 1),
                                   .batch = 1 + (i & 1),
                                   .version = 2,
                                   .error = failed ? CT_ERR_DEVICE : CT_OK,
                                   .code = failed ? CT_DEV_WATCHDOG : 0};
    requests_take(r, &r->request[i], &event);
  }
}

static void figures_of_requests(void **state) {
  (void)state;
  struct requests r, again;
  struct ct_stats s;
  double share = 0;
  run(&r);
  run(&again);
  for (size_t i = 0; i < COUNT; ++i) {
    assert_in_range(r.request[i].model, 0, 2);
    assert_in_range(r.request[i].sample, 0, SAMPLES - 1);
    assert_int_equal(r.request[i].sample, again.request[i].sample);
  }
  assert_int_equal(r.done, COUNT);
  assert_int_equal(r.failed, 1);
  assert_int_equal(r.code, CT_DEV_WATCHDOG);
  assert_int_equal(requests_sum_up(&r, COUNT, 1, CT_NO_CYCLE, &s), 0);
  assert_int_equal(s.count, COUNT - 1);
  assert_int_equal(s.p50, 40); /* of 20 30 40 50 never */
  assert_true(s.max == CT_STATS_NEVER);
  assert_int_equal(requests_sum_up(&r, 3, 0, 1029, &s), 0); /* the third ends in cycle 1130 */
  assert_int_equal(s.p50, 20);
  assert_true(s.max == CT_STATS_NEVER);
  /* 5..25 without a gap, 105..130, 205..250: of 250 cycles. */
  assert_int_equal(requests_busy(&r, &share), 0);
  assert_true(share > 0.3599 && share < 0.3601);
  json_t *batches = requests_json_batches(&r);
  assert_int_equal(json_array_size(batches), REQUESTS_BATCH);
  assert_int_equal(json_integer_value(json_array_get(batches, 0)), 3);
  assert_int_equal(json_integer_value(json_array_get(batches, 1)), 2); /* of 3 requests */
  json_decref(batches);
  requests_close(&r);
  requests_close(&again);
}

static void rows_of_requests(void **state) {
  (void)state;
  struct requests r;
  char path[] = "/tmp/test_load.XXXXXX", text[512] = "";
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  run(&r);
  r.request[0].done = false; /* has no row */
  r.request[1].start = CT_NO_CYCLE;
  r.request[1].answer = 9;
  assert_int_equal(requests_csv(&r, path, "id,start,end,version,answer,code"), 0);
  assert_true(read(fd, text, sizeof text - 1) > 0);
  assert_ptr_equal(strstr(text, "id,start,end,version,answer,code\n1,,1025,2,9,"), text);
  assert_non_null(strstr(text, "\n5,1405,1460,2,,WATCHDOG\n")); /* no answer */
  assert_int_equal(requests_csv(&r, "/nonexistent/x", "id"), 1);
  close(fd);
  unlink(path);
  requests_close(&r);
}

/* In a child, because Ctrl-C is heard once in a process: a device that never answers is waited for
 * until then, not for as long as a device is given. */
static int wait_for_nothing(void) {
  struct load l;
  struct ct_event event;
  if (load_open(&l, "sim:core=16x8", NULL)) return 1;
  cli_catch_stop();
  ct_program *program = tiny_program(l.dev, true);
  const uint64_t held = tiny_hold(l.dev, CT_INFERENCE, program, false);
  alarm(1); /* SIGALRM becomes the SIGINT of a user */
  const uint64_t start = ct_tb_ms();
  const int status = load_reap(&l, &event);
  const uint64_t took = ct_tb_ms() - start;
  print_message("heard after %llu ms\n", (unsigned long long)took);
  tiny_let_go(l.dev, held, false);
  ct_program_free(program);
  load_close(&l);
  return status || event.tag || !cli_stopped() || took < 500 || took > 8000;
}

static void interrupt(int signal) {
  (void)signal;
  raise(SIGINT);
}

static void waits_hear_ctrl_c(void **state) {
  (void)state;
  int status;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, interrupt);
    _exit(wait_for_nothing());
  }
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(queues_are_kept_full), cmocka_unit_test(failures_end_a_turn),
      cmocka_unit_test(waits_hear_ctrl_c),    cmocka_unit_test(figures_of_requests),
      cmocka_unit_test(rows_of_requests),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
