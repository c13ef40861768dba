// SPDX-License-Identifier: Apache-2.0
#include "probe/host/paths.hpp"

namespace wherry::probe {

Paths host_paths() {
  Paths paths;
  paths.push_back(make_memcpy());
  paths.push_back(make_stream());
  paths.push_back(make_movsb());
  paths.push_back(make_numa());
  paths.push_back(make_chase());
  paths.push_back(make_shm());
  paths.push_back(make_cma_get());
  paths.push_back(make_cma_put());
  paths.push_back(make_splice());
  paths.push_back(make_pipe());
  paths.push_back(make_unix());
  paths.push_back(make_tcp());
  for (const Transport transport : {Transport::kShm, Transport::kTcp, Transport::kRdma})
    for (const Verb verb : {Verb::kGet, Verb::kPut, Verb::kMessage}) paths.push_back(make_ucx(verb, transport));
  for (const Waiting waiting :
       {Waiting::kSpin, Waiting::kYield, Waiting::kFutex, Waiting::kEventfd, Waiting::kEpoll, Waiting::kNap})
    paths.push_back(make_wake(waiting));
  return paths;
}

}  // namespace wherry::probe
