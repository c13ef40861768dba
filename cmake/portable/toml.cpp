// SPDX-License-Identifier: Apache-2.0
// toml++ as a static library, built from the headers of the installed toml++.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
