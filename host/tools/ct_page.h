/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports for people: HTML pages without scripts or anything from elsewhere, light or dark by the
 * reader's system, for desktops and telephones.
 *
 *   FILE *page = ct_page_open(path, "Coltrain: what it is about");
 *   fputs("<h1>What it is about</h1>\n", page);
 *   ct_page_figure(page, draw_latency, results);
 *   return ct_page_close(page, path);
 *
 * Texts are HTML, except where it says that they are escaped. Every chart is there twice, for a
 * wide and for a narrow screen; the style sheet shows one of them.
 *
 * Classes of the style sheet. Of text: lead, soft, note (what has to be known first), good (what to
 * look for), between (an interval below its value in a table); tables stand in a <div> of class
 * scroll. Of lines, dots and boxes in charts: serve, train, alone, raw, known, swap, idle,
 * target, whisker (beside the one of its line), and one for each policy: priority, fcfs,
 * round-robin, job; never, beside such a one, is an arrow at the top edge.
 */
#ifndef CT_PAGE_H
#define CT_PAGE_H

#include <stdio.h>

/* A new page, up to the beginning of its content; NULL after a sentence. The title is escaped. */
FILE *ct_page_open(const char *path, const char *title);

/* Ends it and closes the file; 0, or 1 after a sentence. */
int ct_page_close(FILE *to, const char *path);

/* Cards stand in a row of their own: open, card, card ..., close. */
void ct_page_cards_open(FILE *to);
void ct_page_card(FILE *to, const char *title, const char *big, const char *text);
void ct_page_cards_close(FILE *to);

/* A chart as wide as the text (ct_chart.h), drawn once for each kind of screen in that many pixels;
 * it may choose its height itself. */
typedef void ct_page_draw(void *context, FILE *to, double w, double h);
void ct_page_figure(FILE *to, ct_page_draw *draw, void *context);

/* Pixels below which a chart is one for a telephone. */
enum { CT_PAGE_NARROW = 500 };

/* What the lines and boxes of a chart mean: open, key, key ..., close. */
void ct_page_keys_open(FILE *to);
void ct_page_key(FILE *to, const char *class, const char *text);
void ct_page_key_box(FILE *to, const char *class, const char *text);
void ct_page_keys_close(FILE *to);

/* Targets: open, target, target ..., close. held: 1, 0, or -1 where what it speaks of was not
 * measured. Text (what has to hold) and figure (what was measured) are escaped. */
void ct_page_targets_open(FILE *to);
void ct_page_target(FILE *to, int held, const char *text, const char *figure);
void ct_page_targets_close(FILE *to);

/* How it was made: open, row, row ..., close. Values are escaped. */
void ct_page_run_open(FILE *to);
void ct_page_run(FILE *to, const char *name, const char *value);
void ct_page_run_close(FILE *to);

/* The style sheet (ct_page_style.c). */
const char *ct_page_style(void);

#endif
