// SPDX-License-Identifier: Apache-2.0
// For programs that include <convey_codec.h>.
#include "../convey.h"
