// SPDX-License-Identifier: Apache-2.0
// For tests: the interface between a test and the library that replaces libcuda.so.1 (fake_cuda.cpp), beyond CUDA's
// API.
#pragma once

#include <cstdint>

extern "C" {
/// Everything is as after loading; `devices` GPUs.
void wherry_fake_reset(int devices);
/// From now on, the asynchronous copy or kernel with number `number` (1: the next) has one bit of its last byte wrong.
void wherry_fake_flip(unsigned number);
/// Call number `number` of the API from now on returns `error`.
void wherry_fake_fail(unsigned number, int error);
/// Memory, streams, events, modules and contexts that are held.
unsigned wherry_fake_held();
/// The calls that broke the rules, in words, one on each line. Empty: none.
const char* wherry_fake_misuse();
/// Asynchronous work that was done, and how often an event was asked and had not happened.
std::uint64_t wherry_fake_work();
std::uint64_t wherry_fake_not_ready();
/// cuEventSynchronize of events that were made to sleep.
std::uint64_t wherry_fake_sleeps();
}
