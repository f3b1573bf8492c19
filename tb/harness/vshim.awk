# SPDX-License-Identifier: Apache-2.0
#
# Makes a plain C interface to a Verilated model out of the model's header.
#
#   awk -v name=ct_fifo -v prefix=Vct_fifo -v dir=build/dut/ct_fifo -v trace=0 -f vshim.awk Vct_fifo.h
#
# writes dir/NAME_dut.h, all a test bench needs, and dir/NAME_dut.cpp, the only C++ of the bench. The ports are read from
# lines such as VL_IN8(&clk_i,0,0); or VL_OUTW(&x_o,511,0,16); which Verilator 5.006 to 5.032 write alike. Plain POSIX awk.

function fail(message) {
  print "vshim.awk: " FILENAME ": " message > "/dev/stderr"
  failed = 1
  exit 1
}

$1 ~ /^VL_(IN|OUT|INOUT)(8|16|64|W)?\(/ {
  line = $0
  gsub(/^[ \t]*|[ \t&;)]/, "", line)
  split(line, kind_args, "(")
  fields = split(kind_args[2], arg, ",")
  if (fields < 3) fail("cannot read port: " $0)
  kind = kind_args[1]
  sub(/^VL_(INOUT|IN|OUT)/, "", kind)
  n++
  port[n] = arg[1]
  bits[n] = arg[2] - arg[3] + 1
  wide[n] = kind == "W"
  type[n] = kind == "8" ? "uint8_t" : kind == "16" ? "uint16_t" : kind == "64" ? "uint64_t" : "uint32_t"
  input[n] = kind_args[1] !~ /OUT/
  has[arg[1]] = 1
}

END {
  if (failed) exit 1
  if (!n) fail("no ports found")
  write_header(dir "/" name "_dut.h")
  write_source(dir "/" name "_dut.cpp")
}

function write_header(h,    i) {
  print "/* Generated from " prefix ".h by vshim.awk. */" > h
  print "#ifndef CT_DUT_" name > h
  print "#define CT_DUT_" name > h
  print "#include <stdbool.h>\n#include <stdint.h>" > h
  print "#ifdef __cplusplus\nextern \"C\" {\n#endif" > h
  print "\n/* The ports, by pointers into the model; unused high bits must stay zero. */" > h
  print "typedef struct {\n  void *impl;" > h
  for (i = 1; i <= n; i++) {
    printf "  %s *%s; /* %s, %d bits%s */\n", type[i], port[i], input[i] ? "in" : "out", bits[i], \
      wide[i] ? ", least significant word first" : "" > h
  }
  print "} " name "_dut;\n" > h
  print "enum {" > h
  for (i = 1; i <= n; i++) printf "  %s_%s_bits = %d,\n", name, port[i], bits[i] > h
  print "};\n" > h
  print "/* trace_file: NULL, or a file to write waves to (FST; needs a build with TRACE=1). */" > h
  print name "_dut *" name "_new(const char *trace_file);" > h
  print "/* Accepts NULL. */" > h
  print "void " name "_free(" name "_dut *dut);" > h
  print "/* Settles the outputs after a change of the inputs (with a port sample_i: after its rise); no clock edge, no time. */" > h
  print "void " name "_eval(" name "_dut *dut);" > h
  if (has["clk_i"]) {
    print "/* One cycle: low half with the inputs as set (sample_i, if there is one, rises with it), then the rising edge; the outputs are those" > h
    print "   after it. */" > h
    print "void " name "_tick(" name "_dut *dut);" > h
  }
  if (has["clk_i"] && has["rst_ni"]) {
    print "/* Holds rst_ni low for that many cycles and releases it. */" > h
    print "void " name "_reset(" name "_dut *dut, unsigned cycles);" > h
  }
  print "/* Time in half cycles. */" > h
  print "uint64_t " name "_time(const " name "_dut *dut);" > h
  print "/* A failed assertion aborts the program, unless the bench says that it expects one. */" > h
  print "void " name "_expect_errors(" name "_dut *dut, bool expect);" > h
  print "/* Whether an assertion has failed since the last call (only after expect_errors). */" > h
  print "bool " name "_take_error(" name "_dut *dut);" > h
  print "\n#ifdef __cplusplus\n}\n#endif\n#endif" > h
  close(h)
}

function write_source(c,    i) {
  print "// Generated from " prefix ".h by vshim.awk." > c
  print "#include <cstdio>\n#include <memory>" > c
  print "#include \"" prefix ".h\"\n#include \"verilated.h\"" > c
  if (trace) print "#include \"verilated_fst_c.h\"" > c
  print "#include \"" name "_dut.h\"\n" > c
  print "namespace {" > c
  print "struct Impl {" > c
  print "  std::unique_ptr<VerilatedContext> context{new VerilatedContext};" > c
  if (trace) print "  std::unique_ptr<VerilatedFstC> waves;" > c
  print "  std::unique_ptr<" prefix "> model;" > c
  print "};\n" > c
  print "Impl *impl(const " name "_dut *dut) { return static_cast<Impl *>(dut->impl); }\n" > c
  print "void eval(Impl *p) {" > c
  print "  Verilated::threadContextp(p->context.get());" > c
  print "  p->model->eval();" > c
  print "}\n" > c
  print "[[maybe_unused]] void advance(Impl *p) {" > c
  if (trace) print "  if (p->waves) p->waves->dump(p->context->time());" > c
  print "  p->context->timeInc(1);" > c
  print "}" > c
  print "}  // namespace\n" > c
  print name "_dut *" name "_new(const char *trace_file) {" > c
  print "  Impl *p = new Impl;" > c
  if (trace) print "  p->context->traceEverOn(trace_file != nullptr);" > c
  print "  p->model.reset(new " prefix "{p->context.get(), \"" name "\"});" > c
  if (trace) {
    print "  if (trace_file) {" > c
    print "    p->waves.reset(new VerilatedFstC);" > c
    print "    p->model->trace(p->waves.get(), 99);" > c
    print "    p->waves->open(trace_file);" > c
    print "  }" > c
  } else {
    print "  if (trace_file) std::fprintf(stderr, \"%s: no waves: built without TRACE=1\\n\", trace_file);" > c
  }
  print "  " name "_dut *dut = new " name "_dut;" > c
  print "  dut->impl = p;" > c
  for (i = 1; i <= n; i++) {
    print "  dut->" port[i] " = " (wide[i] ? "p->model->" port[i] ".data();" : "&p->model->" port[i] ";") > c
  }
  print "  return dut;\n}\n" > c
  print "void " name "_free(" name "_dut *dut) {" > c
  print "  if (!dut) return;" > c
  print "  Impl *p = impl(dut);" > c
  print "  Verilated::threadContextp(p->context.get());" > c
  print "  p->model->final();" > c
  if (trace) print "  if (p->waves) p->waves->close();" > c
  print "  p->model.reset();" > c
  print "  delete p;\n  delete dut;\n}\n" > c
  print "void " name "_eval(" name "_dut *dut) { eval(impl(dut)); }\n" > c
  if (has["clk_i"]) {
    print "void " name "_tick(" name "_dut *dut) {" > c
    print "  Impl *p = impl(dut);" > c
    print "  p->model->clk_i = 0;" > c
    if (has["sample_i"]) print "  p->model->sample_i = 1;" > c
    print "  eval(p);\n  advance(p);\n  p->model->clk_i = 1;" > c
    if (has["sample_i"]) print "  p->model->sample_i = 0;" > c
    print "  eval(p);\n  advance(p);\n}\n" > c
  }
  if (has["clk_i"] && has["rst_ni"]) {
    print "void " name "_reset(" name "_dut *dut, unsigned cycles) {" > c
    print "  *dut->rst_ni = 0;" > c
    print "  for (unsigned i = 0; i < cycles; ++i) " name "_tick(dut);" > c
    print "  *dut->rst_ni = 1;" > c
    if (has["sample_i"]) print "  *dut->sample_i = 1;\n  eval(impl(dut));\n  *dut->sample_i = 0;" > c
    print "  eval(impl(dut));\n}\n" > c
  }
  print "uint64_t " name "_time(const " name "_dut *dut) { return impl(dut)->context->time(); }\n" > c
  print "void " name "_expect_errors(" name "_dut *dut, bool expect) {" > c
  print "  impl(dut)->context->fatalOnError(!expect);\n}\n" > c
  print "bool " name "_take_error(" name "_dut *dut) {" > c
  print "  VerilatedContext *context = impl(dut)->context.get();" > c
  print "  const bool error = context->gotError();" > c
  print "  context->gotError(false);\n  context->gotFinish(false);\n  return error;\n}" > c
  close(c)
}
