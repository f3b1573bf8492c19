/* SPDX-License-Identifier: Apache-2.0 */
/* The charts of the page of `experiment batching`. */
#ifndef BATCHING_PAGE_H
#define BATCHING_PAGE_H

#include "batching.h"
#include "ct_chart.h"
#include "ct_page.h"

/* Single requests and batches at one bound; one of them has tries. */
struct batching_pair {
  const struct batching_row *row[BATCHING_SIZES];
};

/* Context: any row of the network, whose costs are known. */
ct_page_draw batching_chart_cost;

/* Context: a struct batching_pair. */
ct_page_draw batching_chart_search;

#endif
