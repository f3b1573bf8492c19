/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of co-location: its charts (experiment_charts.c) and its text (experiment_report.c).
 */
#ifndef EXPERIMENT_PAGE_H
#define EXPERIMENT_PAGE_H

#include "ct_chart.h"
#include "ct_page.h"
#include "experiment.h"

/* Servers and policies of the core grid. */
enum { EXP_PAGE_SERVERS = 2, EXP_PAGE_POLICIES = 4, EXP_PAGE_LOADS = 16 };

/* What a chart is about. */
struct exp_drawing {
  const struct exp_summary *summary;
  const struct exp_server *server;
};

/* Contexts are struct exp_drawing. */
ct_page_draw exp_chart_p99, exp_chart_stretch, exp_chart_share, exp_chart_batches;

/* The loads of a server's core cells, ascending; returns how many. */
size_t exp_page_loads(const struct exp_drawing *d, uint32_t permille[EXP_PAGE_LOADS]);

/* A cell of the core grid; NULL: not there. */
const struct exp_cell *exp_page_cell(const struct exp_drawing *d, enum ct_policy policy,
                                     uint32_t permille);

/* The class of a policy's lines in the style sheet. */
const char *exp_page_class(enum ct_policy policy);

#endif
