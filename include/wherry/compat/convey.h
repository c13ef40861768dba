// SPDX-License-Identifier: Apache-2.0
// For programs that include <convey.h>: compile them with -I .../wherry/compat.
#include "../convey.h"
