/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_page.h"

#include <errno.h>
#include <string.h>

#include "cli.h"
#include "ct_chart.h"

FILE *ct_page_open(const char *path, const char *title) {
  FILE *const to = fopen(path, "w");
  if (!to) {
    cli_fail("%s: cannot be created: %s", path, strerror(errno));
    return NULL;
  }
  fputs(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
      to);
  ct_escape(to, title);
  fprintf(to, "</title>\n<style>\n%s</style>\n</head>\n<body><main>\n", ct_page_style());
  return to;
}

int ct_page_close(FILE *to, const char *path) {
  fputs("</main></body>\n</html>\n", to);
  const bool bad = ferror(to);
  if (fclose(to) || bad) return cli_fail("%s: cannot be written: %s", path, strerror(errno));
  return 0;
}

/* ---- Cards ---- */

void ct_page_cards_open(FILE *to) {
  fputs("<div class=\"cards\">\n", to);
}

void ct_page_card(FILE *to, const char *title, const char *big, const char *text) {
  fprintf(to, "<div class=\"card\"><h3>%s</h3><p class=\"big\">%s</p><p>%s</p></div>\n", title, big,
          text);
}

void ct_page_cards_close(FILE *to) {
  fputs("</div>\n", to);
}

/* ---- Charts ---- */

void ct_page_figure(FILE *to, ct_page_draw *draw, void *context) {
  fputs("<div class=\"wide\">\n", to);
  draw(context, to, 800, 340);
  fputs("</div><div class=\"narrow\">\n", to);
  draw(context, to, 350, 300);
  fputs("</div>\n", to);
}

void ct_page_keys_open(FILE *to) {
  fputs("<ul class=\"key\">", to);
}

void ct_page_key(FILE *to, const char *class, const char *text) {
  fprintf(to,
          "<li><svg width=\"34\" height=\"12\" viewBox=\"0 0 34 12\" aria-hidden=\"true\"><path "
          "class=\"line %s\" d=\"M1 6H33\"/></svg>%s</li>\n",
          class, text);
}

void ct_page_key_box(FILE *to, const char *class, const char *text) {
  fprintf(to,
          "<li><svg width=\"16\" height=\"14\" viewBox=\"0 0 16 14\" aria-hidden=\"true\"><rect "
          "class=\"%s\" width=\"16\" height=\"14\"/></svg>%s</li>\n",
          class, text);
}

void ct_page_keys_close(FILE *to) {
  fputs("</ul>\n", to);
}

/* ---- Targets ---- */

void ct_page_targets_open(FILE *to) {
  fputs("<ul class=\"targets\">\n", to);
}

void ct_page_target(FILE *to, int held, const char *text, const char *figure) {
  const char *const class = held < 0 ? "unknown" : held ? "held" : "missed";
  const char *const word = held < 0 ? "missing" : held ? "held" : "not held";
  fprintf(to, "<li><b class=\"%s\">%s</b><span>", class, word);
  ct_escape(to, text);
  fputs("<span class=\"soft\">: ", to);
  ct_escape(to, figure);
  fputs("</span></span></li>\n", to);
}

void ct_page_targets_close(FILE *to) {
  fputs("</ul>\n", to);
}

/* ---- How it was made ---- */

void ct_page_run_open(FILE *to) {
  fputs("<div class=\"scroll\"><table class=\"run\">\n", to);
}

void ct_page_run(FILE *to, const char *name, const char *value) {
  fprintf(to, "<tr><td>%s<td>", name);
  ct_escape(to, value);
  fputs("</tr>\n", to);
}

void ct_page_run_close(FILE *to) {
  fputs("</table></div>\n", to);
}
