// SPDX-License-Identifier: Apache-2.0
// For programs that say <convey.h>: give the compiler -I .../wherry/compat.
#include "../convey.h"
