// SPDX-License-Identifier: Apache-2.0
// Figure 4: the effect of both sides' allocators, and of reusing destinations. Raw gets: nothing else is measured.
#include <fmt/core.h>

#include "sources.hpp"

namespace wherry::bench {

void run_buffers(Bench& bench) {
  const auto sizes = bench.sizes({64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB}, {64 * kKiB, kMiB, 16 * kMiB});
  for (const std::size_t size : sizes) {
    bench.progress(fmt::format("buffers: {}", size_text(size)));
    const Source aligned(bench, 1, size, Memory::kMemalign);
    const Source shifted(bench, 1, size, Memory::kMalloc);
    struct Case {
      const char* client;
      const char* server;
      bool cache;
      WorkRequest request;
      std::vector<double> ns;
    };
    std::vector<Case> cases;
    for (const bool cache : {true, false}) {
      for (const Alignment server : {Alignment::kPage, Alignment::kMalloc}) {
        for (const Source* client : {&aligned, &shifted}) {
          const auto name = [](bool page) { return page ? "memalign" : "malloc"; };
          WorkRequest request;
          request.work = cache ? Work::kGet : Work::kGetUncached;
          request.alignment = server;
          request.repeat = size <= kMiB ? 8 : 2;
          request.segments = client->segments();
          cases.push_back({name(client == &aligned), name(server == Alignment::kPage), cache, std::move(request), {}});
        }
      }
    }
    for (Case& c : cases) bench.remote.run(c.request);
    for (int round = 0; round < bench.rounds(); ++round) {
      for (Case& c : cases) {
        check_interrupted();
        c.ns.push_back(median(bench.remote.run(c.request)));
      }
    }
    for (const Case& c : cases) {
      bench.report.row("buffers", {{"size", size},
                                   {"client_alloc", c.client},
                                   {"server_alloc", c.server},
                                   {"cache", c.cache},
                                   {"gbps", gbps(size, median(c.ns))}});
    }
  }
}

}  // namespace wherry::bench
