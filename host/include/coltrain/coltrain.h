/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcoltrain: serve neural networks on a Coltrain device and train them in its idle cycles.
 *
 *  Introduction
 *
 *  A device has two queues. Jobs of the inference queue go first in every slot of every unit; jobs
 *  of the training queue take what is left. A job is a program in device memory with up to 24
 *  arguments; it is submitted, runs by itself and is reaped. Everything here is built on that:
 *
 *    ct_device *dev;
 *    if (ct_open("sim:", &dev) == 0) {
 *      ct_matmul(dev, CT_INFERENCE, m, n, k, a, b, c, NULL);    // C = A * B in HBFP8
 *      ct_close(dev);
 *    }
 *
 *  Sections: errors, devices, device memory, tensors, jobs, products, models.
 *
 *  Conventions
 *
 *  Functions return 0 or a positive result on success and a negative ct_error otherwise; then
 *  ct_last_error() has a sentence about it. Handles are opaque; freeing NULL is allowed. Nothing is
 *  printed, no process is ended, there is no global state. A device and what was made from it is
 *  used by one thread at a time; different devices may be used by different threads at once.
 *
 *  A timeout is in milliseconds of wall clock; 0 does not wait, CT_FOREVER waits without limit. A
 *  timeout leaves everything as it was: the job goes on and can be reaped later.
 *
 *  Addresses of device memory are byte offsets. Cycles are device clock cycles since reset;
 *  CT_NO_CYCLE stands for "no such time" on a device without a clock (emu:).
 */
#ifndef COLTRAIN_COLTRAIN_H
#define COLTRAIN_COLTRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CT_VERSION_MAJOR 0
#define CT_VERSION_MINOR 1
#define CT_VERSION_STRING "0.1.0"

#define CT_NO_CYCLE UINT64_MAX
#define CT_FOREVER (-1)

/* ---- Errors -------------------------------------------------------------------------------- */

enum ct_error {
  CT_OK = 0,
  CT_ERR_ARG = -1,          /* an argument makes no sense; the text says which */
  CT_ERR_MEMORY = -2,       /* the host has no memory left */
  CT_ERR_DEVICE = -3,       /* the device does not answer as a device should */
  CT_ERR_NOT_FOUND = -4,    /* no such device, transport, file or tag */
  CT_ERR_PERMISSION = -5,   /* it is there, but access is denied */
  CT_ERR_IO = -6,           /* reading or writing a file failed */
  CT_ERR_ABI = -7,          /* the device or plug-in speaks another interface version */
  CT_ERR_TIMEOUT = -8,      /* nothing happened in the given time */
  CT_ERR_FULL = -9,         /* the queue is full: reap, then submit again */
  CT_ERR_NO_SPACE = -10,    /* device memory or scratchpad is too small */
  CT_ERR_UNSUPPORTED = -11, /* this device, or this version, cannot do that */
  CT_ERR_JOB = -12,         /* the device ended the job with an error */
  CT_ERR_CANCELLED = -13,   /* the job was cancelled */
  CT_ERR_FORMAT = -14,      /* a file is not what it should be */
  CT_ERR_INTERNAL = -15     /* a defect of this library: please report it */
};

/* A few words about an error code; never NULL. */
const char *ct_strerror(int error);

/* ---- Devices ------------------------------------------------------------------------------- */

typedef struct ct_device ct_device;

/* Called with one line (without newline) that may interest whoever debugs. level: 0 error,
 * 1 warning, 2 information. */
typedef void ct_log_fn(void *arg, int level, const char *text);

struct ct_options {
  ct_log_fn *log; /* NULL: no log */
  void *log_arg;
  char *why; /* where ct_open_with() writes a sentence when it fails; may be NULL */
  size_t why_size;
  uintptr_t reserved[8]; /* 0 */
};

/* Opens a device. uri is SCHEME:ARGUMENTS with arguments "key=value,key=value":
 *   "emu:"  the bit-exact model in C, without time       "sim:"  the simulated hardware, a plug-in
 * A plug-in SCHEME.so is looked for in $COLTRAIN_PLUGIN_DIR, in ../lib/coltrain beside the
 * program, in ../lib/coltrain and coltrain beside the library, then where libraries are installed.
 * On failure *dev is NULL. */
int ct_open(const char *uri, ct_device **dev);
int ct_open_with(const char *uri, const struct ct_options *options, ct_device **dev);

/* Stops what runs, gives everything back. Bounded: never waits for a job. Programs and models of
 * the device must have been freed before. */
void ct_close(ct_device *dev);

/* A sentence about the last call that failed on this device; "" if none did. Valid until the next
 * call. */
const char *ct_last_error(const ct_device *dev);

struct ct_info {
  char uri[256];
  uint32_t abi;                               /* version of registers, commands and descriptors */
  uint32_t array_rows, array_cols, vpu_lanes; /* 16, 16 or 8, 16 or 4 */
  uint32_t block;                             /* elements that share an exponent: 16 */
  uint32_t macs_per_cycle;                    /* multiply-accumulates of the array in a cycle */
  uint32_t spm_words;                         /* scratchpad words of 16 mantissas, an exponent */
  uint64_t spm_bytes, dram_bytes, clock_hz;   /* spm_bytes counts mantissas only */
  uint32_t features;                          /* CT_FEATURE_* */
  bool has_clock;                             /* false: cycles are CT_NO_CYCLE */
  uint32_t reserved[16];
};
#define CT_FEATURE_HBFP8 1u
#define CT_FEATURE_TRAINING 2u
#define CT_FEATURE_FUNCTIONS 4u
#define CT_FEATURE_PARITY 8u

int ct_info(ct_device *dev, struct ct_info *info);

/* The device's clock. */
int ct_now(ct_device *dev, uint64_t *cycle);

/* Who goes first; takes effect at the next grant. */
enum ct_policy { CT_PRIORITY, CT_FCFS, CT_ROUND_ROBIN, CT_WHOLE_JOB };
int ct_set_policy(ct_device *dev, enum ct_policy policy);

enum ct_queue { CT_INFERENCE = 0, CT_TRAINING = 1 };

/* Reads the first count (at most 32) counters of a queue; returns how many there are. Their names
 * are ct_counter_name(0..), NULL beyond the last. */
int ct_counters(ct_device *dev, enum ct_queue queue, uint64_t *values, size_t count);
const char *ct_counter_name(size_t index);
const char *ct_counter_text(size_t index);

/* ---- Device memory ------------------------------------------------------------------------- */

/* Allocates size bytes, aligned to 256. Contents are undefined. */
int ct_mem_alloc(ct_device *dev, uint64_t size, uint64_t *addr);

/* Gives back what ct_mem_alloc() gave. 0 is ignored. No job may use it any more. */
int ct_mem_free(ct_device *dev, uint64_t addr);

int ct_mem_write(ct_device *dev, uint64_t addr, const void *data, size_t size);
int ct_mem_read(ct_device *dev, uint64_t addr, void *data, size_t size);

/* ---- Tensors ------------------------------------------------------------------------------- */

/* HBFP8 matrices lie in device memory as records of 272 bytes, one for a 16x16 tile: 16 exponents,
 * then 16 rows of 16 mantissas; the tiles of 16 rows are contiguous. Rows and columns are padded
 * with zeros to multiples of 16. FP32 is quantised by rounding to nearest even (docs/numerics.md).
 */
enum ct_sharing {
  CT_ROW,   /* an exponent for each block of 16 elements along a row */
  CT_SQUARE /* one exponent for a tile: it can be read transposed */
};

/* Bytes of a packed matrix of rows x cols; 0 if that does not fit a size_t. */
size_t ct_pack_size(size_t rows, size_t cols);

/* Packs x (row-major, pitch elements from row to row) into out (ct_pack_size(rows, cols) bytes). */
void ct_pack(const float *x, size_t rows, size_t cols, size_t pitch, enum ct_sharing sharing,
             void *out);

/* As ct_pack() of the transpose: x is cols x rows with that pitch. */
void ct_pack_transposed(const float *x, size_t rows, size_t cols, size_t pitch,
                        enum ct_sharing sharing, void *out);

/* The values of a packed matrix. */
void ct_unpack(const void *packed, size_t rows, size_t cols, size_t pitch, float *x);

/* A request is one row vector: groups of up to 16 blocks, each group 16 exponents and then its
 * blocks. Size in bytes, and packing of n elements. */
size_t ct_pack_row_size(size_t n);
void ct_pack_row(const float *x, size_t n, void *out);

/* ---- Jobs ---------------------------------------------------------------------------------- */

#define CT_MAX_ARGS 24

typedef struct ct_program ct_program;

/* Copies a program (count commands of 32 bytes) into device memory. It must stay until its last job
 * has been reaped. */
int ct_program_load(ct_device *dev, const void *commands, size_t count, ct_program **program);
void ct_program_free(ct_program *program);

struct ct_job {
  const ct_program *program;
  uint32_t args[CT_MAX_ARGS]; /* registers r1..r24; addresses count units of 16 bytes */
  uint32_t version;           /* comes back in the result */
  uint32_t watchdog;          /* cycles the job may run; 0: no limit */
  void *user;                 /* comes back in the result */
  uint32_t flags;             /* CT_JOB_OVERLAP, or 0 */
  uintptr_t reserved[3];
};

/* The job reads nothing from device memory that the job before it in the queue writes. It may then
 * start while the stores of that one are on their way: back to back, small jobs lose less time. */
#define CT_JOB_OVERLAP 1u

struct ct_result {
  uint64_t tag;
  enum ct_queue queue;
  int error;        /* CT_OK, CT_ERR_JOB or CT_ERR_CANCELLED */
  uint32_t code;    /* the device's code (0 = success); ct_code_text() */
  uint32_t address; /* that belongs to the code */
  uint32_t version;
  uint32_t rows;               /* rows of 16 x 16 multiply-accumulates that the array took for it */
  uint64_t scheduled;          /* cycle given to ct_submit_at(), else CT_NO_CYCLE */
  uint64_t arrive, start, end; /* doorbell seen, descriptor taken, completion visible */
  void *user;
  uintptr_t reserved[4];
};

/* Submits a job and returns at once; *tag (may be NULL) names it until it is reaped. CT_ERR_FULL
 * when the queue holds as many jobs as it can: nothing was submitted. */
int ct_submit(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t *tag);

/* As ct_submit(), but the device hears of the job when its clock shows cycle (at once, if that has
 * passed, or if the device cannot schedule). Jobs of a queue keep their order: one submitted after
 * a scheduled one is not heard of before it. */
int ct_submit_at(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t cycle,
                 uint64_t *tag);

/* Takes the result of a finished job: of any, oldest first. CT_ERR_TIMEOUT if none finishes in
 * time; CT_ERR_NOT_FOUND if none is outstanding. A failed job is a success of ct_reap(): see error.
 */
int ct_reap(ct_device *dev, struct ct_result *result, int timeout_ms);

/* The same, but also gives up with CT_ERR_TIMEOUT when the device's clock reaches until. With
 * nothing outstanding it waits just for that. */
int ct_reap_until(ct_device *dev, struct ct_result *result, uint64_t until, int timeout_ms);

/* The same, for one job; results of others stay for later. result may be NULL. */
int ct_wait(ct_device *dev, uint64_t tag, struct ct_result *result, int timeout_ms);

/* Asks to end a job; its result still has to be reaped and says CT_ERR_CANCELLED unless the job
 * finished first; no other job is hit. CT_ERR_NOT_FOUND if there is no such job outstanding. */
int ct_cancel(ct_device *dev, uint64_t tag);

/* Jobs submitted and not reaped. */
size_t ct_outstanding(const ct_device *dev, enum ct_queue queue);

/* Name and meaning of a result's code. */
const char *ct_code_name(uint32_t code);
const char *ct_code_text(uint32_t code);

/* ---- Products ------------------------------------------------------------------------------ */

/* What a timed call took, on the device alone. */
struct ct_timing {
  uint64_t cycles; /* doorbell to completion; CT_NO_CYCLE without a clock */
  uint64_t macs;   /* useful multiply-accumulates */
  uintptr_t reserved[4];
};

/* C (m x n) = A (m x k) * B (k x n), FP32 row-major without gaps. Both operands are quantised to
 * HBFP8 along k with an exponent for each block, rounding to nearest even. Blocks. timing may be
 * NULL. */
int ct_matmul(ct_device *dev, enum ct_queue queue, size_t m, size_t n, size_t k, const float *a,
              const float *b, float *c, struct ct_timing *timing);

/* ---- Models -------------------------------------------------------------------------------- */

/* A multilayer perceptron with ReLU between its layers and a softmax cross-entropy loss. Master
 * weights, biases and momentum are FP32 on the device; products run on HBFP8. */
typedef struct ct_model ct_model;

#define CT_MAX_LAYERS 16

/* layers + 1 widths: widths[0] inputs, widths[layers] classes. Weights are drawn from the seed
 * (He-uniform, the same bits on every host), biases and momentum are 0. */
int ct_model_create(ct_device *dev, const uint32_t *widths, size_t layers, uint64_t seed,
                    ct_model **model);
void ct_model_free(ct_model *model);

struct ct_model_info {
  size_t layers;
  uint32_t widths[CT_MAX_LAYERS + 1];
  uint64_t seed, steps, epochs; /* steps taken; epochs as told by ct_model_set_epochs() */
  uint64_t image_bytes;         /* of a version, see ct_model_publish() */
  uint64_t macs_per_row;        /* forward multiply-accumulates for one row */
  uint32_t reserved[16];
};
int ct_model_info(const ct_model *model, struct ct_model_info *info);
void ct_model_set_epochs(ct_model *model, uint64_t epochs);

/* Files: everything that training needs to go on bit by bit. */
int ct_model_save(ct_model *model, const char *path);
int ct_model_load(ct_device *dev, const char *path, ct_model **model);

/* Weights (outputs x inputs), biases and their momentum of layer 0.., FP32 row-major. NULL: not
 * wanted, or not changed. */
int ct_model_get(ct_model *model, size_t layer, float *w, float *b, float *vw, float *vb);
int ct_model_set(ct_model *model, size_t layer, const float *w, const float *b, const float *vw,
                 const float *vb);

/* Training: stochastic gradient descent with momentum and weight decay (docs/numerics.md). The
 * batch size is fixed by ct_model_training(); it may be called again. CT_ERR_NO_SPACE when a step
 * does not fit the device, with a sentence that says what would. */
struct ct_training {
  uint32_t batch; /* rows of a step, at least 1 */
  float lr, momentum, weight_decay;
  uintptr_t reserved[4];
};
int ct_model_training(ct_model *model, const struct ct_training *training);

/* One step on batch rows x (batch x inputs) with their classes. Blocks. loss (may be NULL): the
 * mean over the batch before the step. */
int ct_model_step(ct_model *model, const float *x, const uint32_t *labels, float *loss);

/* The same in three parts, so that steps queue up: a batch in device memory, the job, its loss.
 * A batch takes ct_model_batch_size() bytes; the loss is one float (the sum over the batch) in the
 * first 4 of 16 bytes at loss_addr. A step may be several jobs; the last one carries user and tag.
 */
uint64_t ct_model_batch_size(const ct_model *model);
int ct_model_batch_write(ct_model *model, uint64_t addr, const float *x, const uint32_t *labels);
int ct_model_step_submit(ct_model *model, uint64_t batch_addr, uint64_t loss_addr, void *user,
                         uint64_t *tag);
/* Jobs of the training queue that a step takes. */
int ct_model_step_jobs(const ct_model *model);

/* Serving. A version is an image of the compute weights and biases in device memory,
 * ct_model_info.image_bytes long. Publishing copies the present weights to addr on the training
 * queue, after the steps submitted before. */
int ct_model_publish(ct_model *model, uint64_t addr, void *user, uint64_t *tag);

/* Address of the model's own image: the weights being trained. */
uint64_t ct_model_image(const ct_model *model);

/* A request: 1..16 rows, each packed by ct_pack_row() somewhere in device memory, answered by the
 * version at image with rows x classes FP32 logits at out, ct_model_answer_size() bytes apart.
 * cycle: CT_NO_CYCLE, or when the device shall hear of it. version and user come back in the
 * result. On the inference queue the job has CT_JOB_OVERLAP: what wrote the image or the rows must
 * have completed, unless it is older than the job before. */
uint64_t ct_model_answer_size(const ct_model *model);
int ct_model_infer_submit(ct_model *model, enum ct_queue queue, uint64_t image, uint32_t version,
                          size_t rows, const uint64_t *row_addrs, uint64_t out, uint64_t cycle,
                          void *user, uint64_t *tag);

/* Logits (rows x classes) of any number of rows, by the present weights or by the image at addr (0:
 * the model's own). Blocks. */
int ct_model_infer(ct_model *model, uint64_t image, const float *x, size_t rows, float *logits);

/* How many of the rows the present weights (or that image) classify rightly. Blocks. */
int ct_model_evaluate(ct_model *model, uint64_t image, const float *x, const uint32_t *labels,
                      size_t rows, size_t *right);

#ifdef __cplusplus
}
#endif

#endif
