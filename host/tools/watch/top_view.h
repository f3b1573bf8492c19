/* SPDX-License-Identifier: Apache-2.0 */
/* What `coltrain top` shows of a line of live.h: a screen, or one line. */
#ifndef TOP_VIEW_H
#define TOP_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* A screen of width columns (at least 40 are used); every line ends with what clears the rest of
 * it. color: bars in blue (inference) and orange (training), else letters. */
void top_screen(FILE *to, json_t *line, unsigned width, bool color);

/* A line for a log. */
void top_line(FILE *to, json_t *line);

#endif
