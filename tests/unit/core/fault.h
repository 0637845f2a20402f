#pragma once

// Deliberate faults in the stand-in for Consul, in the simulation alone (tests/sim/faults.py).

#ifdef LICTOR_FAULTS
#include "fault_list.h"
#else
#define FAULT(name) false
#endif
