#pragma once

// Deliberate faults of what stands in Consul's place, in the simulation alone
// (tests/sim/faults.py).

#ifdef LICTOR_FAULTS
#include "fault_list.h"
#else
#define FAULT(name) false
#endif
