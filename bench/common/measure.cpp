// SPDX-License-Identifier: Apache-2.0
#include "common/measure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>

namespace wherry::bench {

namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

void catch_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

void check_interrupted() {
  if (interrupted != 0) throw Interrupted();
}

void require(const Status& status, std::string_view what) {
  if (!status) throw std::runtime_error(fmt::format("{}: {}", what, status.to_string()));
}

Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const double middle = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {middle, values.front(), values.back(), values[std::min(n - 1, n * 99 / 100)]};
}

double median(std::vector<double> values) { return summarize(std::move(values)).median; }

}  // namespace wherry::bench
