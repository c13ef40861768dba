// SPDX-License-Identifier: Apache-2.0
// The agent's half of route: a list of jobs within a budget.
#pragma once

#include <map>
#include <memory>

#include "route/request.hpp"
#include "route/service/job.hpp"
#include "session/service.hpp"

namespace wherry::route {

struct RouteOptions {
  std::size_t budget = std::size_t{256} << 20;  ///< bytes of inboxes, of all jobs together
  Job::Options job;                             ///< of each
};

class RouteService final : public session::Service {
 public:
  explicit RouteService(RouteOptions options = {});
  ~RouteService() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "route"; }
  Settings settings() override;
  Status start(session::ServiceHost& host) override;
  void on_session_end(session::Client& client) override;
  Result<Bytes> on_request(session::Client& client, std::string_view method, ByteView payload) override;
  bool poll() override;
  void start_draining() override { draining_ = true; }
  bool drained() override { return jobs_.empty(); }
  void metrics(session::MetricsWriter& out) const override;

 private:
  using Jobs = std::map<std::uint64_t, std::unique_ptr<Job>>;
  /// The job with this number, if the client is one of its ranks.
  Jobs::iterator find(std::uint64_t number, const session::Client& client);
  /// The job that a rank's request describes. If it is new, creates it if the budget has room.
  Result<Jobs::iterator> job_for(const JoinRequest& request);
  /// Destroys the job. Returns the next job.
  Jobs::iterator end(Jobs::iterator job);

  RouteOptions options_;
  Jobs jobs_;              ///< by number
  std::size_t used_ = 0;   ///< bytes of jobs_; at most options_.budget
  RouterCounts past_;      ///< of jobs that have ended
  bool draining_ = false;  ///< no job begins any more
};

}  // namespace wherry::route
