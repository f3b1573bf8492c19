# SPDX-License-Identifier: Apache-2.0
#
# The tests of the Python package: one run of pytest.
PYTHON_STEPS      += scripts/python-tests
PYTHON_STEP_FILES += $(BUILD)/lib/libcoltrain.so $(BUILD)/lib/libcoltrain-data.so $(BUILD)/lib/coltrain/sim.so $(BUILD)/bin/coltrain $(PYTHON_PROGRAMS)
