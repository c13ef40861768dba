// SPDX-License-Identifier: Apache-2.0
// For tests: how a test controls the library that replaces
// libibverbs.so.1 (fake_verbs.cpp), in addition to its API.
#pragma once

extern "C" {
/// Restores the state after loading, with `devices` devices.
void wherry_fake_verbs_reset(int devices);
/// Flips a bit in the last byte of the `number`-th request from now on (1: the next).
void wherry_fake_verbs_flip(unsigned number);
/// Lets the `number`-th request from now on fail with "transport retry counter exceeded".
void wherry_fake_verbs_fail(unsigned number);
/// Number of objects that were not released.
unsigned wherry_fake_verbs_held();
/// The calls that broke the API's rules, one a line. Empty if there are none.
const char* wherry_fake_verbs_misuse();
unsigned wherry_fake_verbs_sleeps();
}
