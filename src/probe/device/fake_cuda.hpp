// SPDX-License-Identifier: Apache-2.0
// For tests: how a test controls the library that replaces
// libcuda.so.1 (fake_cuda.cpp), in addition to CUDA's API.
#pragma once

#include <cstdint>

extern "C" {
/// Restores the state after loading, with `devices` GPUs.
void wherry_fake_reset(int devices);
/// Flips a bit in the last byte of the `number`-th asynchronous copy or kernel from now on (1: the next).
void wherry_fake_flip(unsigned number);
/// Lets the `number`-th call of the API from now on return `error` (1: the next).
void wherry_fake_fail(unsigned number, int error);
/// Number of memories, streams, events, modules and contexts that were not released.
unsigned wherry_fake_held();
/// The calls that broke the API's rules, in words, one a line. Empty if there are none.
const char* wherry_fake_misuse();
/// Number of asynchronous operations done, and of queries about an event that had not happened.
std::uint64_t wherry_fake_work();
std::uint64_t wherry_fake_not_ready();
/// Number of calls of cuEventSynchronize that slept (blocking events).
std::uint64_t wherry_fake_sleeps();
}
