/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiments: many measurements by one definition (docs/experiments.md), each in a file of its
 * own, so that an interrupted experiment goes on where it was; then what they say together.
 *
 *   verb_experiment.c        the names of the experiments
 *   experiment_colocation.c  options and points of `colocation`, the order of things
 *   experiment_make.c        options of all experiments; points made by several processes
 *   experiment_point.c       one point: a fresh device, its load, its figures
 *   experiment_rate.c        one point of batching: costs of batches; a rate within a bound
 *   experiment_store.c       files of points: which are there, which is being made
 *   experiment_summary.c     ratios over seeds, targets, summary.json and the text
 *   experiment_report.c      the page for people; its charts are experiment_charts.c
 *   batching.h               `batching`
 *
 * A point depends on nothing but its settings: every one opens a device of its own, and its cycles
 * come from there. The same points made again, on any machine and in any order, are the same bytes.
 */
#ifndef EXPERIMENT_H
#define EXPERIMENT_H

#include "serve.h"

enum {
  EXP_NAME = 96,
  EXP_URI = 128,
  EXP_SERVERS = 3, /* digits, the large network, both at once */
  EXP_BATCH = 16,
  EXP_PATIENCE_MS = 600000 /* that an answer may take, wall clock */
};

/* What a point measures: how long a request takes alone and with a full queue; training without
 * requests; requests without training, and beside it; how long batches of each size take; whether a
 * rate of requests is sustained within a bound of p99. */
enum exp_kind { EXP_CAPACITY, EXP_TRAINING, EXP_ALONE, EXP_TOGETHER, EXP_COST, EXP_RATE };

/* Networks that serve. */
struct exp_server {
  const char *name;
  struct serve_shape shape[2];
  size_t models;
  size_t measured; /* requests of a point, by the definition */
};
extern const struct exp_server exp_servers[EXP_SERVERS];

/* Of RATE: the bound, in cycles; requests in 10^9 cycles; 1, or batches of up to so many by
 * ADAPTIVE; its presets and its margin. */
struct exp_batching {
  uint64_t bound, rate;
  uint32_t max_batch, margin, service[EXP_BATCH];
};

/* What the load of ALONE and TOGETHER is a part of, as it was measured for the same server and
 * memory; done 0: not known yet. */
struct exp_capacity {
  uint64_t service;    /* cycles of a request alone on an idle device */
  uint64_t batch;      /* the longest service of a batch */
  uint64_t busy, done; /* cycles and requests with a full queue */
};

struct exp_point {
  char name[EXP_NAME]; /* of its files, too */
  enum exp_kind kind;
  const struct exp_server *server; /* NULL: none */
  enum ct_policy policy;
  uint32_t permille;
  enum serve_arrivals arrivals;
  const char *memory; /* arguments of sim:, "" for the default memory */
  uint64_t seed;
  bool core;   /* of the core grid */
  bool wanted; /* to be made if it is missing */
  struct exp_capacity capacity;
  struct exp_batching batching;
};

/* The core grid: its loads, permille, and its seeds. */
enum { EXP_LOADS = 4, EXP_CORE_SEEDS = 5 };
extern const uint32_t exp_loads[EXP_LOADS];

/* What all points have in common. */
struct exp_settings {
  const char *out;   /* folder */
  const char *trace; /* arrival times for SERVE_TRACE */
  const char *data;  /* that is trained on */
  uint32_t part;     /* percent of the requests that the definition asks for; 100 but for tests */
  uint64_t on_percent, period; /* of bursts */
  bool whole;                  /* co-location: the list of points has the other axes, too */
  size_t number, count;        /* which point this is, for the progress line */
};

/* A finished point, as its file has it. Cycles; CT_STATS_NEVER for infinite. */
struct exp_result {
  bool there;
  uint64_t service;    /* CAPACITY, COST: a request alone on an idle device */
  uint64_t batch;      /* CAPACITY: the longest service of a batch */
  uint64_t busy, done; /* CAPACITY: cycles and requests with a full queue */
  uint64_t requests, measured, answered, wrong, missed;
  uint64_t deadline, p99;
  double u, mean_batch;
  uint64_t batches[EXP_BATCH + 1]; /* of so many requests */
  uint64_t window, rows;           /* cycles; rows of the array that training took in them */
  bool given_up;
  size_t samples; /* TRAINING: rows after every `pitch` cycles */
  uint64_t pitch;
  uint64_t *sample;             /* free() */
  uint64_t clock_hz;            /* COST */
  uint64_t interval[2];         /* COST: from end to end of full batches in a row, of 1 and of 16 */
  uint64_t cost[EXP_BATCH + 1]; /* COST: start to end of a batch of so many */
};

/* ---- One point (experiment_point.c) ---- */

/* Measures it: *json, a new object, is the content of its file; the rows of its requests go to csv.
 * 1 after a sentence, with *json NULL; 0 with *json NULL: stopped by Ctrl-C. */
int exp_point_run(const struct exp_settings *settings, const struct exp_point *point,
                  const char *csv, json_t **json);

/* What a point's figures depend on, a new object: a file made by other settings is another point's.
 */
json_t *exp_point_settings(const struct exp_settings *settings, const struct exp_point *point);

/* Requests of a point, and how many of the first ones are not measured. */
size_t exp_point_requests(const struct exp_settings *settings, const struct exp_point *point);
size_t exp_point_dropped(const struct exp_settings *settings, size_t requests);

/* Adds the figures of the requests of s->run to an object. 0, or 1 after a sentence. */
int exp_point_served(const struct exp_settings *settings, const struct serve *s, json_t *o);

/* Requests of a model one by one: the longest of the last ones, in cycles. 0, or 1 after a
 * sentence. */
int exp_point_ask_alone(struct serve *s, const struct serve_model *m, uint64_t *latency);

/* ---- Kinds COST and RATE (experiment_rate.c) ---- */

/* Their part of exp_point_run() and exp_point_settings(): adds to an object. */
int exp_rate_run(const struct exp_settings *settings, const struct exp_point *point,
                 const char *csv, json_t *o);
void exp_rate_settings(const struct exp_point *point, json_t *o);

/* Requests that a RATE measures, by the definition. */
size_t exp_rate_measured(const struct exp_point *point);

/* The network that is trained. */
extern const char exp_trained[];

/* ---- Files of points (experiment_store.c) ---- */

/* Makes the folders. 0, or 1 after a sentence. */
int exp_store_open(const struct exp_settings *settings);

/* The finished point, if there is one made by the same settings. False: not there. */
bool exp_store_load(const struct exp_settings *settings, const struct exp_point *point,
                    struct exp_result *result);

/* Takes a point for this process: a file descriptor to be closed when it is done; -1 if another
 * process makes it, -2 after a sentence. */
int exp_store_claim(const struct exp_settings *settings, const struct exp_point *point);

/* The path of its file, ending in that; of EXP_PATH bytes. */
enum { EXP_PATH = 1024 };
void exp_store_path(const struct exp_settings *settings, const struct exp_point *point,
                    const char *end, char path[EXP_PATH]);

/* Writes the finished point, whole or not at all. Drops the reference. 0, or 1 after a sentence. */
int exp_store_save(const struct exp_settings *settings, const struct exp_point *point,
                   json_t *json);

/* Requests in a batch, of so many batches of 1, 2 ... 16; 0: there are none. */
double exp_mean_batch(const uint64_t batches[EXP_BATCH + 1]);

/* Forgets what was loaded. */
void exp_result_free(struct exp_result *result);

/* ---- Making them (experiment_make.c) ---- */

/* Makes a point that is missing. *left is set where another process is at it. 0, or 1 after a
 * sentence. */
int exp_make(const struct exp_settings *settings, const struct exp_point *point, bool *left);

/* all(arg) in several processes on one folder; each has its own devices. Returns what they returned
 * together: 0 or 1. */
int exp_make_by(uint64_t jobs, int (*all)(const void *arg), const void *arg);

/* The exit status; says so if Ctrl-C was pressed. */
int exp_make_end(int status);

/* What all experiments can be told: an argp child with a struct exp_options as its input. */
enum { EXP_SEEDS = 20, EXP_PROCESSES = 16 };
struct exp_options {
  struct exp_settings settings;
  const char *only, *json, *report;
  uint64_t seeds, jobs;
};
extern const struct argp exp_options_argp;

/* The file that was given, or that name in the folder. */
const char *exp_options_path(const struct exp_options *o, const char *given, const char *name,
                             char path[EXP_PATH]);

/* ---- What the points say together (experiment_summary.c) ---- */

/* A ratio of figures of the same arrivals, over seeds: geometric mean and its 95 % interval. One
 * seed has no interval (NaN); none at all is NaN. */
struct exp_ratio {
  size_t seeds;
  double mean, low, high;
};

/* Points that differ in nothing but the seed, and what belongs to them. */
struct exp_cell {
  struct exp_point point; /* of the first seed */
  size_t seeds;
  double p99, p99_alone;          /* cycles, geometric means; infinite: never answered */
  struct exp_ratio stretch;       /* of p99 against the same arrivals alone */
  struct exp_ratio share;         /* of training's speed alone */
  struct exp_ratio same_work;     /* its time alone for the same rows, of the window */
  struct exp_ratio share_of_idle; /* the same / (1 - u) */
  double u, u_over_load, mean_batch;
  uint64_t batches[EXP_BATCH + 1];
  uint64_t asked, answered;                /* of all requests */
  uint64_t lost_alone;                     /* never answered in the runs without training */
  uint64_t wrong, wrong_alone;             /* answers, beside training and without */
  uint64_t requests, missed, missed_alone; /* measured ones; late ones of these */
  uint64_t missed_only_together;           /* in time alone, late beside training */
  uint64_t deadline;                       /* cycles */
};

struct exp_summary {
  const struct exp_settings *settings;
  struct exp_cell *cell; /* TOGETHER only, in the order of the grid */
  size_t cells, points, there;
  struct exp_point *lacking; /* runs TOGETHER and ALONE that are not there, or not in a cell */
  size_t lacking_count;
  struct exp_result capacity[EXP_SERVERS]; /* at the default memory */
  uint64_t wrong;                          /* answers, of all points */
};

/* Reads all points that are there. 0, or 1 after a sentence. */
int exp_summary_make(const struct exp_settings *settings, const struct exp_point *points,
                     size_t count, struct exp_summary *summary);
void exp_summary_free(struct exp_summary *summary);

/* Whether a target holds: 1, 0, or -1 where points are missing, though those that are there can be
 * against it. Text says which and by what. */
struct exp_target {
  char text[200], figure[120];
  int held;
};
enum { EXP_TARGETS = 8 };
size_t exp_summary_targets(const struct exp_summary *summary,
                           struct exp_target target[EXP_TARGETS]);

/* Of any experiment. */
json_t *exp_targets_json(const struct exp_target *target, size_t count);
void exp_targets_print(const struct exp_target *target, size_t count, FILE *to);

json_t *exp_summary_json(const struct exp_summary *summary);
void exp_summary_print(const struct exp_summary *summary, FILE *to);

/* ---- The page (experiment_report.c) ---- */

/* Writes a self-contained page. 0, or 1 after a sentence. */
int exp_report(const struct exp_summary *summary, const char *path);

/* ---- Experiments ---- */

int experiment_colocation(int argc, char **argv);
int experiment_batching(int argc, char **argv);

/* ct_policy_name() as stored points and docs/results.md spell it: "ROUND_ROBIN". */
struct exp_policy_text {
  char text[16];
};
struct exp_policy_text exp_policy_text(enum ct_policy policy);

#endif
