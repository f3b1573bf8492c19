# SPDX-License-Identifier: Apache-2.0
#
# The tests of host code, one line each; tb/harness/rules.mk says what the line means. Every one also runs under the sanitizers.

$(call host_test,test_npy,tb/host/test_npy.c host/tools/ct_npy.c)
$(call host_test,test_dataset,tb/host/test_dataset.c host/tools/ct_dataset.c host/tools/ct_digits.c host/tools/ct_rand.c,-lz)
$(call host_test,test_arrivals,tb/host/test_arrivals.c host/tools/ct_arrivals.c host/tools/ct_rand.c)
$(call host_test,test_stats,tb/host/test_stats.c host/tools/ct_stats.c)
$(call host_test,test_progress,tb/host/test_progress.c host/tools/ct_progress.c)
$(call host_test,test_gemm,tb/host/test_gemm.c tb/host/ct_racecheck.c)
