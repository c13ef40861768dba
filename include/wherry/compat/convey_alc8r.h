// SPDX-License-Identifier: Apache-2.0
// For programs that include <convey_alc8r.h>.
#include "../convey.h"
