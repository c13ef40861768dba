// SPDX-License-Identifier: Apache-2.0
// For tests: how a test speaks to the library that stands in for libibverbs.so.1 (fake_verbs.cpp), beyond its API.
#pragma once

extern "C" {
/// Everything is as after loading; `devices` devices.
void wherry_fake_verbs_reset(int devices);
/// Of the requests from now on, number `number` (1: the next) leaves one bit of its last byte wrong.
void wherry_fake_verbs_flip(unsigned number);
/// The same: it ends with "transport retry counter exceeded".
void wherry_fake_verbs_fail(unsigned number);
/// Objects that are held.
unsigned wherry_fake_verbs_held();
/// What was called against the rules, one a line; empty: nothing.
const char* wherry_fake_verbs_misuse();
unsigned wherry_fake_verbs_sleeps();
}
