/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders of files that are a data set. The kind is seen from what is in the files, not from their
 * names: where files begin as IDX or .npy files do, the folder is of that kind (and must not hold
 * both); else the files named *.bin (or *.bin.gz) are batches of CIFAR, of the kind whose records
 * they are whole numbers of. Which file is which (images or labels, training or test) is seen from
 * the names (ct_dataset.h).
 */
#ifndef CT_FOLDER_H
#define CT_FOLDER_H

#include "ct_dataset.h"
#include "ct_fault.h"

/* Reads a folder (f->file) into *ds, which is all zero at first: everything but the shuffling, in
 * the order of the files. If there is no test part (test.count 0) the caller splits. 0, or -1 with
 * a sentence; *ds is to be freed by ct_dataset_free() in both cases. */
int ct_folder_read(struct ct_dataset *ds, const struct ct_fault *f);

/* The same for a folder that is known to be of a kind. classes: how many there must be, 0 to see
 * from the training labels. */
int ct_idx_read(struct ct_dataset *ds, const struct ct_fault *f, uint32_t classes);
int ct_npyset_read(struct ct_dataset *ds, const struct ct_fault *f);
/* The same arrays in an .npz archive, which is the fault's file. */
int ct_npzset_read(struct ct_dataset *ds, const struct ct_fault *f);

/* names: the batches, count of them, in the order in which they are put together. */
int ct_cifar_read(struct ct_dataset *ds, const struct ct_fault *f, char *const *names,
                  size_t count);

/* The sides of an image, and its channels, are at most this. */
enum { CT_FOLDER_SIDE = 1024 };

#endif
