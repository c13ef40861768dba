// SPDX-License-Identifier: Apache-2.0
// For tests: the interface between a test and the library that replaces libibverbs.so.1 (fake_verbs.cpp), beyond its
// API.
#pragma once

extern "C" {
/// Everything is as after loading; `devices` devices.
void wherry_fake_verbs_reset(int devices);
/// From now on, the request with number `number` (1: the next) leaves one bit of its last byte wrong.
void wherry_fake_verbs_flip(unsigned number);
/// The same: it ends with "transport retry counter exceeded".
void wherry_fake_verbs_fail(unsigned number);
/// Objects that are held.
unsigned wherry_fake_verbs_held();
/// The calls that broke the rules, one on each line. Empty: none.
const char* wherry_fake_verbs_misuse();
unsigned wherry_fake_verbs_sleeps();
}
