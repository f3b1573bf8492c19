/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo terminals for tests. */
#ifndef CT_PTY_H
#define CT_PTY_H

enum { CT_PTY_NAME = 64 };

/* Makes a pseudo terminal and returns its master, which the caller closes; name becomes the file of
 * its other end. Where the system gives none (a chroot without /dev/pts), the running test is
 * skipped: it holds nothing yet that it would have to free. From the thread of the test only. */
int ct_pty_open(char name[CT_PTY_NAME]);

#endif
