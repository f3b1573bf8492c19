/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcoltrain: serve neural networks on a Coltrain device and train them in its idle cycles.
 *
 *  Introduction
 *
 *  A device has two queues. Jobs of the inference queue go first in every slot of every unit; jobs
 *  of the training queue take what is left. A job is a program in device memory with up to 24
 *  arguments; it is submitted, runs by itself and is reaped. Everything here is built on that, and
 *  the sections go from what needs no knowledge of it to what does:
 *
 *    simple calls         ct_open(), ct_info(), ct_matmul(), ct_close(): enough for products
 *    models               networks that are created, trained, evaluated, saved
 *    asynchronous work    submit, and reap when it is done: serving and training at once
 *    serving              requests with deadlines, which the device collects into batches
 *    expert calls         device memory, own programs, counters, the clock
 *
 *    ct_device *dev;
 *    if (ct_open("sim:", &dev) == 0) {
 *      ct_matmul(dev, CT_INFERENCE, m, n, k, a, b, c, NULL);    // C = A * B in HBFP8
 *      ct_close(dev);
 *    }
 *
 *  Conventions
 *
 *  Errors. Functions return 0 or a positive result on success and a negative ct_error otherwise;
 *  then ct_last_error() has a sentence about it. A call that was refused has changed nothing: the
 *  device can be used as before. Every call that takes a device or what was made from one can
 *  return CT_ERR_ARG (the sentence says which argument, and why) and CT_ERR_CLOSED; every call that
 *  reaches the device can return CT_ERR_DEVICE; so they are not repeated below. Nothing is printed
 *  and no process is ended. There is no global state, apart from a sentence for each thread about
 *  its last failed call that had no device.
 *
 *  Threads. A device and what was made from it is used by one thread at a time; different devices
 *  may be used by different threads at once. Functions without a device may be called by any.
 *
 *  Ownership. What a function named open, create, load, publish or list gives is the caller's to
 *  give back by close or free; freeing NULL is allowed. Freeing is always safe: what is under way
 *  goes on or is cancelled, as the comment says, and device memory is given back when nothing uses
 *  it any more. A handle that was freed, or that is another device's, is refused. Arrays and texts
 *  that are passed in are only used during the call, unless its comment says otherwise.
 *
 *  In flight. What is submitted uses its handles (a batch, rows, answers, weights) until its event
 *  is known to the library: at the latest when it is reaped. To change or read what is in flight is
 *  refused with CT_ERR_BUSY.
 *
 *  Structures grow in one way: each ends in words called reserved, and a new field takes the place
 *  of some. Set a structure that you pass to zeros before its fields (as initialisers do): zero
 *  means the default, and reserved words that are not 0 are refused. What has no fixed number of
 *  elements is never part of a structure, which has a pointer to it and the number instead.
 *
 *  Timeouts. All are in milliseconds of wall clock: CT_NO_WAIT (0) looks and returns, CT_FOREVER
 *  waits without limit, other negative numbers are refused. A timeout (CT_ERR_TIMEOUT) leaves
 *  everything as it was: the job goes on and can be reaped later. "Blocks" means that the call
 * waits for its job, for as long as ct_set_timeout() says; only then does a timeout cancel the job.
 *
 *  Units. Addresses of device memory are byte offsets. Cycles are device clock cycles since
 *  power-up, which no reset takes back; CT_NO_CYCLE stands for "no such time" on a device without
 *  a clock (emu:). Matrices are FP32, row-major; sizes count elements unless they are called bytes.
 *
 *  Results do not depend on compiler, processor or the caller's floating-point environment
 *  (rounding, flushing, traps), and every call leaves that as it was.
 */
#ifndef COLTRAIN_COLTRAIN_H
#define COLTRAIN_COLTRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ------------------------------------------------------------------------------- */

/* Of this header: "0.1.0", as its parts and as one number that grows, 100. The text is for people
 * and for output, the number for comparisons. */
#define CT_VERSION_MAJOR 0
#define CT_VERSION_MINOR 1
#define CT_VERSION_PATCH 0
#define CT_VERSION_NUMBER (CT_VERSION_MAJOR * 10000 + CT_VERSION_MINOR * 100 + CT_VERSION_PATCH)
#define CT_VERSION_TEXT(major, minor, patch) #major "." #minor "." #patch
#define CT_VERSION_EXPAND(major, minor, patch) CT_VERSION_TEXT(major, minor, patch)
#define CT_VERSION_STRING CT_VERSION_EXPAND(CT_VERSION_MAJOR, CT_VERSION_MINOR, CT_VERSION_PATCH)

/* The same of the library that runs, which may be a newer one than that of the header: its text,
 * never NULL, and its CT_VERSION_NUMBER. Any thread. */
const char *ct_version(void);
uint32_t ct_version_number(void);

/* ---- Errors -------------------------------------------------------------------------------- */

/* What calls return when they fail. New codes may be added at the end. */
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
  CT_ERR_INTERNAL = -15,    /* a defect of this library: please report it */
  CT_ERR_CLOSED = -16,      /* the device was closed, or the handle freed, before */
  CT_ERR_BUSY = -17 /* in use: a device that is open elsewhere, a handle that is in flight */
};

/* A few words about an error code; never NULL. Any thread. */
const char *ct_strerror(int error);

/* An open device. */
typedef struct ct_device ct_device;

/* A sentence about the last call that failed on this device; "" if none did. It names the thing
 * that was wrong and is valid until the next call with the device. dev NULL: about this thread's
 * last failed call that had no device, such as ct_open() or ct_pack(). */
const char *ct_last_error(const ct_device *dev);

/* How much the log says: each level includes those before it. */
enum ct_log_level {
  CT_LOG_ERROR,   /* a device cannot be opened, or does not answer as it should */
  CT_LOG_WARNING, /* closed with jobs that nobody reaped, freed twice or while in use */
  CT_LOG_INFO,    /* opened, closed */
  CT_LOG_DEBUG    /* every call that failed, with its sentence */
};

/* Called with one line (without newline) that may interest whoever debugs, in the thread and during
 * the call that it is about. It must not call the library. */
typedef void ct_log_fn(void *arg, int level, const char *text);

/* ---- Simple calls -------------------------------------------------------------------------- */

/* The options of ct_open_with(); zeros are the defaults. */
struct ct_options {
  ct_log_fn *log; /* NULL: no log */
  void *log_arg;  /* passed on to it */
  char *why;      /* where ct_open_with() writes a sentence when it fails; may be NULL */
  size_t why_size;
  enum ct_log_level log_level; /* the highest that is passed to log */
  uintptr_t reserved[8];       /* 0 */
};

/* Opens a device and resets it. uri is SCHEME:ARGUMENTS with arguments "key=value,key=value", at
 * most 255 characters; `coltrain info --help` and docs/devices.md list the keys:
 *   "emu:"  the bit-exact model in C, without time       "sim:"  the simulated hardware, a plug-in
 *   "mmio:FILE"  a core in this machine's address space (docs/mmio.md), such as mmio:/dev/uio0 or
 *           mmio:/sys/bus/pci/devices/.../resource0,mem=/sys/bus/pci/devices/.../resource2
 *   "usb:"  a board on USB (docs/usb.md), a plug-in: the first that is found, or "usb:serial=TEXT",
 *           "usb:bus=1,addr=4", "usb:vid=0x0403,pid=0x6014"; CT_ERR_UNSUPPORTED where it was not
 *           built, for want of libusb
 *   "serial:FILE"  a board on a serial port (docs/serial.md), a plug-in: serial:/dev/ttyUSB0
 * A plug-in SCHEME.so is looked for in $COLTRAIN_PLUGIN_DIR, in ../lib/coltrain,
 * ../../lib/coltrain, ../lib/TRIPLET/coltrain (such as x86_64-linux-gnu) and ../lib64/coltrain
 * beside the program, in coltrain and ../lib/coltrain beside the library, then where libraries are
 * installed.
 * On failure *device is NULL, and ct_last_error(NULL) or options->why say why: CT_ERR_ARG for a
 * name or argument that makes no sense, CT_ERR_NOT_FOUND, CT_ERR_PERMISSION, CT_ERR_BUSY (hardware
 * has one user at a time), CT_ERR_ABI, CT_ERR_MEMORY, CT_ERR_IO, CT_ERR_DEVICE. Several devices may
 * be open at once. ct_open() is ct_open_with() without options.
 */
int ct_open(const char *uri, ct_device **device);
int ct_open_with(const char *uri, const struct ct_options *options, ct_device **device);

/* Stops what runs and gives everything back, within a second whatever is running. Results that were
 * not reaped are lost. Models and programs of the device may be freed before or after; until the
 * last of them is, calls with them or the device are refused with CT_ERR_CLOSED. */
void ct_close(ct_device *dev);

/* What a device is. */
struct ct_info {
  char uri[256];                              /* as it was opened */
  uint32_t abi;                               /* version of registers, commands and descriptors */
  uint32_t array_rows, array_cols, vpu_lanes; /* 16; 16, 8 or 4; 16 or 4 */
  uint32_t block;                             /* elements that share an exponent: 16 */
  uint32_t macs_per_cycle;                    /* multiply-accumulates of the array in a cycle */
  uint32_t spm_words;                         /* scratchpad words of 16 mantissas, an exponent */
  uint64_t spm_bytes, dram_bytes, clock_hz;   /* spm_bytes counts mantissas only; dram_bytes what
                                               * can be used: at most 64 GiB less a MiB */
  uint32_t features;                          /* CT_FEATURE_* */
  bool has_clock;                             /* false: cycles are CT_NO_CYCLE */
  bool has_schedule;  /* things given with a cycle reach the device in that cycle, not at once */
  char memory[40];    /* what its memory is, for people; "" if that is not known */
  uint64_t line_rate; /* bytes a second each way that the line to it carries at most, what the
                       * protocol adds included; 0: not known, or there is no line */
  uint32_t reserved[4];
};
#define CT_FEATURE_HBFP8 1u
#define CT_FEATURE_TRAINING 2u
#define CT_FEATURE_FUNCTIONS 4u
#define CT_FEATURE_PARITY 8u
#define CT_FEATURE_REQUESTS 16u    /* ct_server_create(), CT_SLACK */
#define CT_FEATURE_CONVOLUTION 32u /* programs may walk: docs/programming.md */
#define CT_FEATURE_COMPRESSION 64u /* activations may be kept compressed: docs/compression.md */

/* Copies what the device is to *info. */
int ct_info(ct_device *dev, struct ct_info *info);

/* Stands for "no such time", and for "no limit" where a cycle is a limit. */
#define CT_NO_CYCLE UINT64_MAX

/* The two queues of a device. */
enum ct_queue { CT_INFERENCE = 0, CT_TRAINING = 1 };

/* What a timed call took, on the device alone. */
struct ct_timing {
  uint64_t cycles; /* doorbell to completion; CT_NO_CYCLE without a clock */
  uint64_t macs;   /* useful multiply-accumulates */
  uintptr_t reserved[4];
};

/* C (m x n) = A (m x k) * B (k x n), FP32 row-major without gaps, each dimension 1..2^24. Both
 * operands are quantised to HBFP8 along k with an exponent for each block of 16, rounding to
 * nearest even; sums are FP32 in a fixed order (docs/numerics.md), so the bits of C do not depend
 * on the device. Blocks. timing may be NULL. CT_ERR_NO_SPACE when the operands do not fit the
 * device's memory, CT_ERR_MEMORY, CT_ERR_TIMEOUT, CT_ERR_JOB. Capacity: needs about 1.07 bytes of
 * device memory for each element of A and B and 4 for each of C while it runs. */
int ct_matmul(ct_device *dev, enum ct_queue queue, size_t m, size_t n, size_t k, const float *a,
              const float *b, float *c, struct ct_timing *timing);

/* A device that could be opened, or a kind of device and why not. */
struct ct_entry {
  char uri[256];  /* for ct_open(), or what its argument begins with (mmio:) */
  char text[256]; /* what it is, or what to do */
  int error;      /* CT_OK, or what ct_open() would return */
  uintptr_t reserved[4];
};

/* Lists what ct_open() knows. *entries is an array of *count, to be given back with
 * ct_list_free(). Nothing is opened. CT_ERR_MEMORY. Any thread. */
int ct_list(struct ct_entry **entries, size_t *count);
void ct_list_free(struct ct_entry *entries);

/* Lists the devices that this machine has: the emulator, the simulated cores, boards on USB by
 * their serial numbers, UIO devices and PCI functions that may be a core (docs/mmio.md), each under
 * the name that opens it alone; none on a serial port, where it is not looked. error and text say
 * whether it could be opened now, and else why not: CT_ERR_PERMISSION, CT_ERR_BUSY, ...; of a kind
 * that cannot be used at all there is one entry with the kind's name. No device is reset and no
 * register read. Give it back with ct_list_free(). CT_ERR_MEMORY. Any thread. */
int ct_scan(struct ct_entry **entries, size_t *count);

/* A register as it was read, a field of the one before, or a counter. */
struct ct_register {
  char name[24];     /* "CTRL", "CTX1.STATUS", "CTX0.CNT.JOBS" */
  const char *field; /* NULL: the whole register */
  uint64_t value;    /* counters have 64 bits, registers 32 */
  uint32_t offset;   /* of the register, bytes */
  uint32_t msb, lsb; /* the bits of value; 31 and 0 of a register */
  const char *text;  /* what the register is; in the library, valid for ever */
  char called[16];   /* what a field's value is called, such as "running"; "" if it has no name */
  uintptr_t reserved[4];
};

/* Reads every readable register of a device, with its fields, and the counters of both contexts.
 * The device is opened for that, but not reset, and its jobs go on: what hangs can be looked at.
 * uri and options are those of ct_open_with(), and so are the errors. *registers is an array of
 * *count in the order of addresses, to be given back with ct_registers_free(). */
int ct_registers(const char *uri, const struct ct_options *options, struct ct_register **registers,
                 size_t *count);
void ct_registers_free(struct ct_register *registers);

/* ---- Models -------------------------------------------------------------------------------- */

/* A multilayer perceptron with ReLU between its layers and a softmax cross-entropy loss. Products
 * run on HBFP8; master weights, biases and momentum are FP32. It belongs to its device and follows
 * its thread rule. */
typedef struct ct_model ct_model;

/* The weights of a model at one moment, on the device: what answers are computed from. Every model
 * has its live weights, which training changes; ct_model_publish() makes versions of them, which
 * nothing changes. Where a call takes weights, NULL stands for the live ones of its model; those of
 * another model of the same widths on the same device will do, too. */
typedef struct ct_weights ct_weights;

/* The most layers a model can have. */
#define CT_MAX_LAYERS 16

/* layers + 1 widths: widths[0] inputs, widths[layers] classes; 1..CT_MAX_LAYERS layers, each width
 * 1..65536. Weights are drawn from the seed (He-uniform, the same bits on every host), biases and
 * momentum are 0. *model is NULL on failure. CT_ERR_NO_SPACE, CT_ERR_MEMORY. Capacity: about 1.07
 * bytes of device memory for each weight, and 8 more for its master and momentum from the first
 * ct_model_training() on; until then these are 8 bytes of the host. */
int ct_model_create(ct_device *dev, const uint32_t *widths, size_t layers, uint64_t seed,
                    ct_model **model);

/* Frees a model. Jobs of it that are under way are cancelled first (half a second at most; their
 * results can still be reaped), its server ends; batches, rows, answers and versions remain to be
 * freed. Freeing one of the last few freed models again is noticed and refused. Both are
 * CT_LOG_WARNING. */
void ct_model_free(ct_model *model);

/* The rates of stochastic gradient descent with momentum and weight decay (docs/numerics.md). They
 * are data of a step: each may have its own. */
struct ct_rates {
  float lr;                     /* learning rate, 0..1000 */
  float momentum, weight_decay; /* 0..1 */
  uintptr_t reserved[4];        /* 0 */
};

/* Whether they make sense: CT_OK, or CT_ERR_ARG with a sentence of ct_last_error(NULL). Any
 * thread. */
int ct_rates_check(const struct ct_rates *rates);

/* What a step does with its gradients: updates the weights by them at once and keeps none; leaves
 * them in device memory in place of those before; adds them to those that are there. */
enum ct_gradients { CT_GRADIENTS_NONE, CT_GRADIENTS_SET, CT_GRADIENTS_ADD };

/* How a model is trained. */
struct ct_training {
  uint32_t batch;        /* rows of a step: 1..4096, or more if the scratchpad holds it */
  struct ct_rates rates; /* of steps that are given none of their own */
  bool gradients;        /* steps may leave gradients in device memory (enum ct_gradients) */
  uintptr_t reserved[4]; /* 0 */
};

/* Prepares for steps of that many rows: makes their programs, which takes time, unless the model is
 * prepared for that many. Steps under way and batches of another size keep their programs. If it is
 * refused, the model remains prepared as it was. Where the scratchpad does not hold a step's
 * activations they go through device memory, and a step is several jobs; that memory is kept as
 * long as the programs are. The bits are the same. With training->gradients there are programs and
 * memory for those, too, 4 bytes of device memory for each weight until the model is freed; batches
 * of that size may be older. CT_ERR_NO_SPACE when device memory is too small, or the window of the
 * scratchpad: a step needs 200 words, an update from gradients 237; CT_ERR_MEMORY,
 * CT_ERR_UNSUPPORTED. */
int ct_model_training(ct_model *model, const struct ct_training *training);

/* The rates of steps submitted from here on that are given none of their own. Costs nothing. */
int ct_model_set_rates(ct_model *model, const struct ct_rates *rates);

/* One step on batch rows x (batch x inputs) with their classes (batch labels), by the model's
 * rates. Blocks. loss (may be NULL): the mean over the batch before the step. After an error of the
 * device or a timeout the weights may be half changed: load the last file. CT_ERR_BUSY:
 * see ct_model_step_submit(). */
int ct_model_step(ct_model *model, const float *x, const uint32_t *labels, float *loss);

/* Logits (rows x classes) of any number of rows x (rows x inputs) by these weights; by the live
 * ones after the steps submitted before. Blocks. CT_ERR_MEMORY, CT_ERR_NO_SPACE, CT_ERR_TIMEOUT,
 * CT_ERR_JOB; CT_ERR_BUSY: see ct_model_publish_submit(). */
int ct_model_infer(ct_model *model, ct_weights *weights, const float *x, size_t rows,
                   float *logits);

/* How many of the rows these weights classify rightly: the first of the largest logits is the
 * label. Blocks. *right is only set on success. Errors as ct_model_infer(). */
int ct_model_evaluate(ct_model *model, ct_weights *weights, const float *x, const uint32_t *labels,
                      size_t rows, size_t *right);

/* Makes a version of the live weights as they are after the steps submitted before. Blocks.
 * *weights is NULL on failure: CT_ERR_NO_SPACE, CT_ERR_MEMORY, CT_ERR_TIMEOUT, CT_ERR_FULL,
 * CT_ERR_JOB. Capacity: ct_weights_info.bytes of device memory for each version. */
int ct_model_publish(ct_model *model, ct_weights **weights);

/* The live weights of a model: they go with it and are not to be freed. NULL without a model. */
ct_weights *ct_model_weights(ct_model *model);

/* What is known of weights. */
struct ct_weights_info {
  uint32_t version; /* counts from 1 for each model; 0: live */
  int error;        /* CT_OK: complete; CT_ERR_BUSY: not yet; else why it never will be */
  uint64_t steps;   /* that made them */
  uint64_t bytes;   /* of device memory, and of ct_weights_read() */
  uintptr_t reserved[8];
};

/* Copies what is known to *info. */
int ct_weights_info(const ct_weights *weights, struct ct_weights_info *info);

/* Weights to and from the host, as they are on a device (docs/architecture.md says how), so that
 * what one device has trained another may serve. Both want exactly ct_weights_info.bytes bytes.
 * ct_weights_load() makes a version of a model of the same widths; *weights is NULL on failure.
 * CT_ERR_ARG: another size; CT_ERR_BUSY: steps that change them are in flight, or they are not
 * complete. */
int ct_weights_read(ct_weights *weights, void *data, size_t size);
int ct_weights_load(ct_model *model, const void *data, size_t size, ct_weights **weights);

/* Frees a version; the memory goes when the last request and server that read it have ended. */
void ct_weights_free(ct_weights *weights);

/* What is known of a model. */
struct ct_model_info {
  size_t layers;
  const uint32_t *widths;      /* layers + 1; the model's, for as long as it is there */
  uint64_t seed, steps;        /* steps that ran: one that failed or was cancelled is none; of
                                * gradients the updates count */
  uint64_t epochs;             /* as set by ct_model_set_epochs() */
  uint64_t macs_per_row;       /* forward multiply-accumulates for one row */
  struct ct_training training; /* the last, also of a loaded file, which does not say whether it
                                * had gradients; batch 0: none yet */
  bool prepared;               /* for steps of training.batch rows */
  uintptr_t reserved[8];
};

/* Copies what is known to *info. */
int ct_model_info(const ct_model *model, struct ct_model_info *info);

/* Notes how many epochs the model has been trained, for its file. NULL is ignored. */
void ct_model_set_epochs(ct_model *model, uint64_t epochs);

/* Writes a file (docs/model-format.md) with everything that training needs to go on bit by bit. The
 * file is complete on the disk before it replaces one of that name, so a crash at any moment leaves
 * the old or the new one whole; PATH.new is used on the way. CT_ERR_IO names the file and the
 * reason, and the old one is untouched. CT_ERR_BUSY while a step is in flight. */
int ct_model_save(ct_model *model, const char *path);

/* A model from a file, on any device, with the same bits; ct_model_training() before the next step
 * (ct_model_info() knows how it was trained). *model is NULL on failure: CT_ERR_NOT_FOUND,
 * CT_ERR_PERMISSION, CT_ERR_IO, CT_ERR_FORMAT (foreign, of another version, cut short, damaged:
 * the sentence names file and reason), CT_ERR_NO_SPACE, CT_ERR_MEMORY. */
int ct_model_load(ct_device *dev, const char *path, ct_model **model);

/* Weights (outputs x inputs), biases and their momentum of layer 0.., FP32 row-major. NULL: not
 * wanted, or not changed. CT_ERR_MEMORY; CT_ERR_ARG: NaN is among what is to be set.
 * CT_ERR_BUSY while a step is in flight; to set, also while
 * anything reads the live weights: requests, a server, a version or gradients that are being made.
 */
int ct_model_get(ct_model *model, size_t layer, float *w, float *b, float *vw, float *vb);
int ct_model_set(ct_model *model, size_t layer, const float *w, const float *b, const float *vw,
                 const float *vb);

/* ---- Gradients ----------------------------------------------------------------------------- */

/* A step usually updates the weights as it goes and its gradients are never seen. A model that is
 * prepared with ct_training.gradients may take it in two: steps that leave their gradients in
 * device memory (ct_step.gradients), then an update from there. In between they can be added up
 * over several batches, read and written, scaled:
 *
 *   step.gradients = CT_GRADIENTS_SET;  ct_model_step_submit(m, &step, &tag);     the first batch
 *   step.gradients = CT_GRADIENTS_ADD;  ct_model_step_submit(m, &step, &tag);     more of them
 *   ct_model_apply(m, &(struct ct_apply){.scale = 0.5f});                         by their mean
 *
 * With one batch and a scale of 1 this leaves the very bits that a step leaves; docs/numerics.md
 * says what the others do. Steps that leave gradients read the live weights and change nothing
 * else, so requests and servers may read them meanwhile.
 *
 * What is added up, and updates, must be there. Where a step that leaves gradients fails or is
 * cancelled they are lost (some of them may have been written): CT_GRADIENTS_ADD, updates and
 * reading are refused until a step with CT_GRADIENTS_SET or ct_model_set_gradients() has made new
 * ones; and what had been submitted behind it and needs them does not run (CT_ERR_JOB, code
 * SKIPPED), so weights are never updated by half of them. */

/* An update. The structure is copied. */
struct ct_apply {
  const struct ct_rates *rates; /* NULL: the model's */
  float scale;                  /* gradients are multiplied by it first; 0: 1 */
  void *user;                   /* comes back in the event */
  uintptr_t reserved[4];        /* 0 */
};

/* Updates weights, biases and momentum by the gradients, which stay as they are. Blocks. It counts
 * as a step in ct_model_info. apply NULL: the defaults. Errors as for ct_model_apply_submit(), and
 * as for ct_model_step(). */
int ct_model_apply(ct_model *model, const struct ct_apply *apply);

/* The same, but returns at once; CT_EVENT_APPLY. CT_ERR_ARG: there are no gradients, or the scale
 * is not a positive number that FP32 holds with 24 bits. CT_ERR_FULL. CT_ERR_BUSY as for
 * ct_model_step_submit(); and where steps that leave gradients are in flight and something else was
 * submitted to the training queue behind them: wait for them first. That holds for
 * CT_GRADIENTS_ADD, too. */
int ct_model_apply_submit(ct_model *model, const struct ct_apply *apply, uint64_t *tag);

/* Gradients of layer 0..: of weights (outputs x inputs) and biases, FP32 row-major. NULL: not
 * wanted, or not changed. A layer of which there are none must be written whole; once all layers
 * are there they are as good as those of a step. CT_ERR_ARG: there are none. CT_ERR_BUSY while a
 * step that leaves them, or an update, is in flight. CT_ERR_MEMORY. */
int ct_model_get_gradients(ct_model *model, size_t layer, float *w, float *b);
int ct_model_set_gradients(ct_model *model, size_t layer, const float *w, const float *b);

/* The square root of the sum of the squares of all gradients: the exact sum, its root rounded once;
 * infinity if that is too large, or one of them is not a finite number. Errors as
 * ct_model_get_gradients(). */
int ct_model_gradient_norm(ct_model *model, float *norm);

/* The scale for ct_apply that clips by norm: `scale`, or if scale * norm is larger than `most`,
 * most / norm. Each positive, that FP32 holds with 24 bits (norm may be 0), else CT_ERR_ARG with a
 * sentence of ct_last_error(NULL). Any thread. */
int ct_clip_scale(float norm, float scale, float most, float *clipped);

/* ---- Asynchronous work --------------------------------------------------------------------- */

/* The two named timeouts: look and return, and no limit. */
#define CT_NO_WAIT 0
#define CT_FOREVER (-1)

/* How long calls that block wait for their job: CT_FOREVER at first. When it is over, the job is
 * cancelled and the call returns CT_ERR_TIMEOUT. */
int ct_set_timeout(ct_device *dev, int timeout_ms);

/* What an event is about. New kinds may be added at the end. */
enum ct_event_kind {
  CT_EVENT_JOB,     /* ct_submit() */
  CT_EVENT_STEP,    /* ct_model_step_submit() */
  CT_EVENT_PUBLISH, /* ct_model_publish_submit() */
  CT_EVENT_ANSWER,  /* ct_model_infer_submit() */
  CT_EVENT_REQUEST, /* ct_server_push() */
  CT_EVENT_APPLY,   /* ct_model_apply_submit() */
  CT_EVENT_RUN      /* ct_network_submit() */
};

typedef struct ct_server ct_server;

/* Whether a request was answered by its deadline; one without a deadline is in time whenever it is
 * answered. CT_MET_UNKNOWN: it was answered, but the device has no clock (emu:). */
enum ct_met { CT_MET_NO, CT_MET_YES, CT_MET_UNKNOWN };

/* What became of something that was submitted. It is one thing with one event, however many jobs it
 * took. Cycles are CT_NO_CYCLE where there is no such time. */
struct ct_event {
  uint64_t tag;
  enum ct_event_kind kind;
  enum ct_queue queue;
  int error;     /* CT_OK, CT_ERR_JOB or CT_ERR_CANCELLED */
  uint32_t code; /* the device's code (0 = success) of the first job that failed; ct_code_text() */
  uint32_t address;   /* that belongs to the code */
  uint32_t version;   /* of the weights that gave the answer, or are published; of a job: its own */
  uint32_t rows;      /* rows of 16 x 16 multiply-accumulates that the array took; of a request: for
                       * its whole batch */
  uint32_t jobs;      /* that it took; 0: a request */
  uint64_t scheduled; /* cycle that it was submitted for, else CT_NO_CYCLE */
  uint64_t arrive, start, end; /* doorbell or push seen; descriptor taken, or the batch's;
                                * completion visible */
  void *user;
  /* Of requests alone. */
  ct_server *server; /* NULL: it is not a request */
  uint32_t batch;    /* requests in its batch; 0: it was in none */
  enum ct_met met;
  uint64_t deadline; /* CT_NO_CYCLE: none, or no clock */
  uintptr_t reserved[4];
};

/* Takes the event of something that has ended: of any, oldest first. CT_ERR_TIMEOUT if none ends in
 * time (at once where none can ever); CT_ERR_NOT_FOUND if nothing is outstanding. A failed
 * job is a success of ct_reap(): see error. Even CT_NO_WAIT lets a simulated device run a little,
 * so polling makes progress. */
int ct_reap(ct_device *dev, struct ct_event *event, int timeout_ms);

/* The same, for one tag; other events stay for later. event may be NULL. CT_ERR_NOT_FOUND if it was
 * reaped before or never submitted. */
int ct_wait(ct_device *dev, uint64_t tag, struct ct_event *event, int timeout_ms);

/* Asks to end it, in whatever state it is: queued or scheduled, it will do nothing when its turn
 * comes; running, it is stopped; finished, nothing happens. Its event still has to be reaped and
 * says CT_ERR_CANCELLED unless it finished first; nothing else is hit. A step of several jobs is
 * cancelled as a whole; if it had begun, the weights may be half changed. A request that waits, in
 * the host or the device, is taken out; one whose batch has been formed is answered, as its mates
 * are. CT_ERR_NOT_FOUND if it was reaped before or never submitted. Returns at once. */
int ct_cancel(ct_device *dev, uint64_t tag);

/* Ends all that the device has heard of in a queue, even what a cancel does not end because the
 * memory does not answer: jobs, and for CT_INFERENCE the requests of all servers. Each still has
 * its event, CT_ERR_CANCELLED with the device's code RESET unless it finished first (DEAD: the
 * memory owed it answers). What a server or model that was freed had left behind comes back. What
 * waits in the host or is scheduled for later goes on, and so do servers, models and the other
 * queue. Blocks until the queue is at rest: 100,000 cycles if the memory does not answer.
 * CT_ERR_DEVICE if it does not come to rest. Answers of a memory that come later are dropped; one
 * that never answers again is beyond this: close the device. */
int ct_reset(ct_device *dev, enum ct_queue queue);

/* A file descriptor for poll() and select(), the same every time, closed by ct_close(). It is
 * readable when ct_reap() with CT_NO_WAIT may have an event: while jobs or
 * requests are outstanding on a simulated device, which advances only in calls; when one has ended
 * (or it is time to look) on hardware. Then reap until CT_ERR_TIMEOUT or CT_ERR_NOT_FOUND. Do not
 * read from it. */
int ct_poll_fd(ct_device *dev);

/* What was submitted to a queue and not reaped (a request counts for CT_INFERENCE, a step is one);
 * 0 without a device. Capacity: at most 1024 jobs of a queue are under way at once (128 with less
 * than 16 MiB of device memory), and 4096 requests, however old the oldest of them is; events wait
 * in host memory. */
size_t ct_outstanding(const ct_device *dev, enum ct_queue queue);

/* A batch of a step: inputs and labels in device memory, and the loss of the last step on it. It is
 * of the size that its model is prepared for when it is created, and remains good for steps when
 * that changes. *batch is NULL on failure. CT_ERR_NO_SPACE, CT_ERR_MEMORY. */
typedef struct ct_batch ct_batch;
int ct_batch_create(ct_model *model, ct_batch **batch);
void ct_batch_free(ct_batch *batch);

/* x and labels as for ct_model_step(), of the batch's rows. CT_ERR_BUSY: a step on it is in flight.
 * CT_ERR_MEMORY. */
int ct_batch_write(ct_batch *batch, const float *x, const uint32_t *labels);

/* The mean loss over the batch before the last step on it. CT_ERR_BUSY: that is in flight; if it
 * failed, its error; CT_ERR_ARG: there was none. */
int ct_batch_loss(ct_batch *batch, float *loss);

/* A step. The structure is copied. */
struct ct_step {
  ct_batch *batch;              /* written, and of this model; several steps may have the same */
  const struct ct_rates *rates; /* NULL: the model's; of a step that updates */
  void *user;                   /* comes back in the event */
  enum ct_gradients gradients;  /* CT_GRADIENTS_NONE: it updates */
  uintptr_t reserved[4];        /* 0 */
};

/* Submits a step and returns at once. It may be several jobs with one event; after a failure its
 * other jobs do not run. CT_ERR_FULL: nothing was submitted. CT_ERR_BUSY: the live weights are
 * being read by requests of the inference queue or by a server, which are to read a version.
 * With gradients: CT_ERR_ARG if the model is not prepared for them, or there are none to add to;
 * CT_ERR_BUSY as for ct_model_apply_submit() alone, for readers are welcome. */
int ct_model_step_submit(ct_model *model, const struct ct_step *step, uint64_t *tag);

/* As ct_model_publish(), but returns at once. Until its event is there, the version cannot be used
 * (CT_ERR_BUSY); if that failed, never. user comes back in the event. *tag may be NULL. */
int ct_model_publish_submit(ct_model *model, void *user, ct_weights **weights, uint64_t *tag);

/* Rows of inputs in device memory, and places for answers. Both are made for a model and good for
 * every model on its device with as many inputs, or classes. count: 1..2^24.
 * *rows and *answers are NULL on failure. CT_ERR_NO_SPACE, CT_ERR_MEMORY. */
typedef struct ct_rows ct_rows;
typedef struct ct_answers ct_answers;
int ct_rows_create(ct_model *model, size_t count, ct_rows **rows);
int ct_answers_create(ct_model *model, size_t count, ct_answers **answers);
void ct_rows_free(ct_rows *rows);
void ct_answers_free(ct_answers *answers);

/* Writes count rows from row number first on: x is count x inputs. CT_ERR_BUSY: a request that
 * reads one of them is in flight. */
int ct_rows_write(ct_rows *rows, size_t first, size_t count, const float *x);

/* Reads count answers from number first on: logits is count x classes. CT_ERR_BUSY: a request that
 * writes one of them is in flight; if it failed, its error; CT_ERR_ARG: there was none. */
int ct_answers_read(ct_answers *answers, size_t first, size_t count, float *logits);

/* A request: rows from number row on, and answers from number answer on. The structure is copied.
 * Several requests may read the same row; an answer is one request's at a time. */
struct ct_request {
  ct_rows *rows;
  ct_answers *answers;
  size_t row, answer;
  uint64_t cycle; /* when it arrives by the device's clock; 0, or past: at once */
  void *user;     /* comes back in the event */
  /* Of ct_model_infer_submit() alone; 0 for a server. */
  ct_weights *weights; /* NULL: live */
  uint32_t count;      /* rows, 1..16; 0: 1 */
  enum ct_queue queue;
  /* Of ct_server_push() alone; 0 for a job. */
  uint32_t deadline;     /* cycles after its arrival; 0: none */
  uintptr_t reserved[4]; /* 0 */
};

/* Submits one job that answers the request. Live weights that steps in flight change can only be
 * read on the training queue, behind them; else CT_ERR_BUSY, as for a version that is not complete.
 * CT_ERR_FULL: nothing was submitted. */
int ct_model_infer_submit(ct_model *model, const struct ct_request *request, uint64_t *tag);

/* ---- Serving ------------------------------------------------------------------------------- */

/* On a device with CT_FEATURE_REQUESTS a model can have a server. A request is one row with a
 * deadline; the device collects the requests of a model into batches of up to 16 by itself, decides
 * when a batch goes, and answers it by one job of the inference queue. An answer is the same to the
 * bit whatever the batch. Up to 8 models are served at once; the earliest deadline goes first. It
 * belongs to its device and follows its thread rule. */
/* (struct ct_server is declared with the events.) */

/* When a batch goes, if the engine is free: at once; when max_batch requests wait or the oldest has
 * waited for max_wait; as late as the deadlines allow by the service times of recent batches, or
 * when max_batch wait. There are no others: the device knows a policy 3, for tests, under which
 * what is not full goes when its deadline is over; ct_server_create() refuses it. */
enum ct_batching { CT_BATCHING_NONE, CT_BATCHING_FIXED, CT_BATCHING_ADAPTIVE };

/* The names that commands and results use, "none", "fixed", "adaptive"; NULL for what is no such
 * value. The value of a name: CT_OK, or CT_ERR_ARG with a sentence that lists them. Any thread. */
const char *ct_batching_name(enum ct_batching batching);
int ct_batching_by_name(const char *name, enum ct_batching *batching);

/* How a model is served; zeros are the defaults. Times are in cycles.
 *
 * margin is what CT_BATCHING_ADAPTIVE takes off a deadline besides the service time of the batch
 * that would go. 0: the library's, which follows what the device does. It holds two batches that
 * may be in front (one runs, one is formed), the longest of all servers'; one of each other server;
 * what this batch may still grow by; what it takes longer when it loads its weights; the batcher
 * and the start of a job; and once training has begun what that can add to a batch
 * (docs/architecture.md). So deadlines hold under CT_PRIORITY as long as requests do not come
 * faster than they can be answered. A batch whose deadline leaves nothing to wait for goes at once.
 *
 * service has the times of a batch of 1, 2 ... requests. What is 0 is filled in between those that
 * are given, never falling; if none is, CT_BATCHING_ADAPTIVE measures at its beginning, by up to
 * three batches of rows of zeros, on a device with a clock. From then on the device measures. */
struct ct_serving {
  enum ct_batching batching;
  uint32_t max_batch;    /* 1..16; 0: 16 */
  uint32_t max_wait;     /* CT_BATCHING_FIXED; also for requests without a deadline */
  uint32_t margin;       /* CT_BATCHING_ADAPTIVE: so much earlier than service times say */
  uint32_t watchdog;     /* that a batch may take; 0: no limit */
  uint32_t service[16];  /* that a batch of 1, 2 ... takes, as far as known */
  uint32_t deadline;     /* the shortest that requests will have; 0: unknown */
  bool stream;           /* do not keep weights in the scratchpad, even if they fit there */
  uintptr_t reserved[4]; /* 0 */
};

/* Begins to serve these weights; NULL: the live ones, which no step may change meanwhile. serving
 * NULL: the defaults. Weights that fit stay in the scratchpad from batch to batch; jobs on the
 * inference queue push them out for a while. *server is NULL on failure: CT_ERR_UNSUPPORTED,
 * CT_ERR_FULL (8 models are served), CT_ERR_NO_SPACE, CT_ERR_MEMORY, CT_ERR_BUSY (the weights are
 * not complete, or in training); CT_ERR_ARG also where the model has a server, or
 * serving->deadline cannot hold because a request alone takes longer; CT_ERR_TIMEOUT: the batches
 * that were to be measured do not end, and what they use stays until they do. */
int ct_server_create(ct_model *model, ct_weights *weights, const struct ct_serving *serving,
                     ct_server **server);

/* Ends serving. Requests that wait leave with CT_ERR_CANCELLED and the device's code UNLOADED, a
 * batch that has begun ends (half a second is waited for it, then it is cancelled, unless a batch
 * of another model may be hit); all records can still be reaped. Other models go on. A batch that
 * does not end even so keeps what it uses, the weights' memory too, until its records have come in
 * (ct_reset() brings them) or the device is closed. Freeing the model does the same, but for the
 * handle. */
void ct_server_free(ct_server *server);

/* What is known of a server. A deadline below least_deadline is missed whatever happens, one below
 * safe_deadline may be when other batches are in front; the log says so at the first request with
 * one, and the request is served all the same. */
struct ct_server_info {
  struct ct_serving serving; /* as it was asked for */
  uint32_t version;          /* of the batches that begin now */
  uint32_t pinned_words;     /* of the scratchpad, for weights that stay; 0: they do not fit */
  size_t waiting;            /* requests without a record */
  uint32_t margin;           /* in use */
  uint32_t service[16];      /* that the device began with, or was given since; 0: unknown */
  uint32_t least_deadline, safe_deadline; /* 0: unknown, for nothing has been measured */
  uint32_t reserved[16];
};

/* Copies what is known to *info. */
int ct_server_info(const ct_server *server, struct ct_server_info *info);

/* Serves these weights (NULL: the live ones) from the next batch on. Returns at once; one write
 * changes over, between two batches, so none sees a mixture; those before may be freed. After
 * CT_ERR_DEVICE the weights before stay, but batches may use the new ones until a later call has
 * reached the device; events say which. CT_ERR_BUSY as for ct_server_create(). */
int ct_server_set_weights(ct_server *server, ct_weights *weights);

/* Pushes a request of one row and returns at once; *tag (may be NULL) names it until it is reaped,
 * and is never 0. It arrives when the device's clock shows request->cycle (at once, if that has
 * passed, or there is no clock). Without ct_info.has_schedule, as on hardware, it waits in
 * the host and arrives with the first call that looks at the device from then on; calls that wait
 * do so by themselves. Requests arrive in the order of the calls, whatever the server. One for
 * which the device has no room waits in the host; that is its time, too. CT_ERR_FULL when 4096
 * requests of the device are under way, whichever of them came first: nothing was pushed. A tag is
 * never used again. */
int ct_server_push(ct_server *server, const struct ct_request *request, uint64_t *tag);

/* ---- Expert calls -------------------------------------------------------------------------- */

/* Memory for own programs: all else has handles. Allocates size bytes of device memory, aligned to
 * 256, until ct_mem_free() or ct_close(). Contents are undefined. CT_ERR_NO_SPACE when no free
 * piece is that large; the sentence says how large the largest is. Capacity: sizes are rounded up
 * to 256 bytes. */
int ct_mem_alloc(ct_device *dev, uint64_t size, uint64_t *addr);

/* Gives back what ct_mem_alloc() gave; 0 is ignored, anything else refused. No job may use it any
 * more. */
int ct_mem_free(ct_device *dev, uint64_t addr);

/* Copies size bytes to or from device memory; size 0 does nothing. The range must lie within the
 * device's memory and, for writing, above what the library keeps for itself there. Not ordered with
 * jobs that run: reap them first. */
int ct_mem_write(ct_device *dev, uint64_t addr, const void *data, size_t size);
int ct_mem_read(ct_device *dev, uint64_t addr, void *data, size_t size);

/* HBFP8 matrices lie in device memory as records of 272 bytes, one for a 16x16 tile: 16 exponents,
 * then 16 rows of 16 mantissas; the tiles of 16 rows are contiguous. Rows and columns are padded
 * with zeros to multiples of 16. FP32 is quantised by rounding to nearest even (docs/numerics.md).
 */
enum ct_sharing {
  CT_ROW,   /* an exponent for each block of 16 elements along a row */
  CT_SQUARE /* one exponent for a tile: it can be read transposed */
};

/* Bytes of a packed matrix of rows x cols; 0 if that does not fit a size_t. Any thread. */
size_t ct_pack_size(size_t rows, size_t cols);

/* Packs x (rows x cols, pitch elements from row to row, pitch >= cols) into out, which has room for
 * ct_pack_size(rows, cols) bytes. CT_ERR_ARG: ct_last_error(NULL) says what. Any thread. */
int ct_pack(const float *x, size_t rows, size_t cols, size_t pitch, enum ct_sharing sharing,
            void *out);

/* As ct_pack() of the transpose: x is cols x rows with that pitch (>= rows). */
int ct_pack_transposed(const float *x, size_t rows, size_t cols, size_t pitch,
                       enum ct_sharing sharing, void *out);

/* The values of a packed matrix to x (rows x cols, pitch >= cols). Any thread. */
int ct_unpack(const void *packed, size_t rows, size_t cols, size_t pitch, float *x);

/* MXINT8 of the OCP Microscaling specification 1.0: 32 neighbours of a row share a scale of
 * 2^(scale - 127), and an element is a number of -127..127 in 64ths. A matrix is rows x cols
 * elements without gaps and rows x ceil(cols / 32) scales; the last block of a row may be shorter.
 * ct_pack_mxint8() makes a packed matrix of it, as CT_ROW, with no bit changed: a block is two of
 * ours with one exponent. CT_ERR_ARG for the element -128, which HBFP8 does not have, for the scale
 * 255, which is NaN, and for the scale 0 unless its block is zero. Any thread. */
int ct_pack_mxint8(const int8_t *elements, const uint8_t *scales, size_t rows, size_t cols,
                   void *out);

/* What becomes of two blocks that no common scale holds. */
enum ct_rounding {
  CT_EXACT,  /* CT_ERR_ARG, and the sentence names them */
  CT_NEAREST /* the scale of the larger exponent; the other's elements to nearest even */
};

/* The MXINT8 of a packed matrix: exact wherever there is a scale under which all elements of a
 * block are whole numbers of -127..127 (the largest that is no larger than the larger exponent of
 * its halves, of those that are not zero). CT_ERR_ARG: a block is NaN, or no scale holds it; then
 * nothing was written. Any thread. */
int ct_unpack_mxint8(const void *packed, size_t rows, size_t cols, enum ct_rounding rounding,
                     int8_t *elements, uint8_t *scales);

/* An input of a request is one row vector: groups of up to 16 blocks, each group 16 exponents and
 * then its blocks. Size in bytes (0 if that does not fit a size_t), and packing of n elements into
 * room for that many. Any thread. */
size_t ct_pack_row_size(size_t n);
int ct_pack_row(const float *x, size_t n, void *out);

/* Where weights lie: an image of the compute weights and biases, ct_weights_info.bytes long; 0
 * without weights. Keep the handle until no program reads there. */
uint64_t ct_weights_address(const ct_weights *weights);

/* A program in device memory (docs/programming.md). */
typedef struct ct_program ct_program;

/* Copies a program (count commands of 32 bytes, 1..512) into device memory. Freeing it cancels jobs
 * of it that are under way, as ct_model_free() does. *program is NULL on failure. CT_ERR_NO_SPACE:
 * 4 MiB are kept for programs (256 KiB with less than 16 MiB of device memory), and no room for it
 * is left in the rest of the device's memory either. */
int ct_program_load(ct_device *dev, const void *commands, size_t count, ct_program **program);
void ct_program_free(ct_program *program);

/* Called with a line of text, without newline, during the call that it was given to. */
typedef void ct_line_fn(void *arg, const char *text);

/* A program as text, illegal commands too: calls line with each of count commands of 32 bytes
 * (0..512), its number in front, loops indented. CT_ERR_ARG: ct_last_error(NULL) says what. Any
 * thread. */
int ct_disassemble(const void *commands, size_t count, ct_line_fn *line, void *arg);

/* Arguments of a job. */
#define CT_MAX_ARGS 24

/* A job of one's own. The structure is copied. */
struct ct_job {
  const ct_program *program;
  uint32_t args[CT_MAX_ARGS]; /* registers r1..r24; addresses count units of 16 bytes */
  uint32_t version;           /* comes back in the result */
  uint32_t watchdog;          /* cycles the job may run; 0: no limit */
  void *user;                 /* comes back in the result */
  uint32_t flags;             /* CT_JOB_OVERLAP, or 0 */
  uintptr_t reserved[3];      /* 0 */
};

/* The job reads nothing from device memory that the job before it in the queue writes. It may then
 * start while the stores of that one are on their way: back to back, small jobs lose less time. */
#define CT_JOB_OVERLAP 1u

/* Submits a job and returns at once; *tag (may be NULL) names it until it is reaped, and is never
 * 0. CT_ERR_FULL when the queue holds as many jobs as it can: nothing was submitted. */
int ct_submit(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t *tag);

/* As ct_submit(), but the device hears of the job when its clock shows cycle (at once, if that has
 * passed, or without ct_info.has_schedule). Jobs of a queue keep their order: one submitted after
 * a scheduled one is not heard of before it. */
int ct_submit_at(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t cycle,
                 uint64_t *tag);

/* As ct_reap(), but also gives up with CT_ERR_TIMEOUT when the device's clock reaches until. With
 * nothing outstanding it waits just for that. */
int ct_reap_until(ct_device *dev, struct ct_event *event, uint64_t until, int timeout_ms);

/* Name and meaning of a result's code. Any thread. */
const char *ct_code_name(uint32_t code);
const char *ct_code_text(uint32_t code);

/* The device's clock. */
int ct_now(ct_device *dev, uint64_t *cycle);

/* Who goes first where both queues want a unit: inference; whoever asked first; each in turn, an
 * operation at a time; one whole job at a time; inference while the time to a request's deadline is
 * short, else each in turn. Time is short when a deadline of a running or waiting request is nearer
 * than the service times and margins up to it, or a model has more waiting than one batch. The
 * register FLOOR, training's share under CT_PRIORITY, counts under CT_SLACK while time is short;
 * what training is owed by it is forgotten whenever it is not. */
enum ct_policy { CT_PRIORITY, CT_FCFS, CT_ROUND_ROBIN, CT_WHOLE_JOB, CT_SLACK };

/* The names that commands and results use, "priority", "fcfs", "round-robin", "job", "slack"; NULL
 * for what is no policy. The policy of a name: CT_OK, or CT_ERR_ARG with a sentence that lists
 * them. Any thread. */
const char *ct_policy_name(enum ct_policy policy);
int ct_policy_by_name(const char *name, enum ct_policy *policy);

/* CT_PRIORITY at first. Takes effect at the next grant and changes no result. CT_ERR_UNSUPPORTED:
 * CT_SLACK on a device without CT_FEATURE_REQUESTS. */
int ct_set_policy(ct_device *dev, enum ct_policy policy);

#define CT_MAX_COUNTERS 32 /* of a queue; some may be without a name */

/* Reads the first count (at most CT_MAX_COUNTERS) counters of a queue; returns how many there are.
 * Their names are ct_counter_name(0..), NULL beyond the last, and ct_counter_text() says what they
 * count. */
int ct_counters(ct_device *dev, enum ct_queue queue, uint64_t *values, size_t count);
const char *ct_counter_name(size_t index);
const char *ct_counter_text(size_t index);

#ifdef __cplusplus
}
#endif

#endif
