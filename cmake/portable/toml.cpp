// SPDX-License-Identifier: Apache-2.0
// toml++ as a static library, of the headers of the installed one.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
