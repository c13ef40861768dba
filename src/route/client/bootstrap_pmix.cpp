// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "base/try.hpp"
#include "route/client/bootstrap_parts.hpp"
#include "route/client/environment.hpp"
#include "route/client/meeting.hpp"
#include "route/client/pmix_client.hpp"

namespace wherry::route {
namespace {

class PmixBootstrap final : public Bootstrap {
 public:
  explicit PmixBootstrap(pmix::Client& client) : client_(client) {}

  [[nodiscard]] Rank rank() const noexcept override { return client_.rank(); }
  [[nodiscard]] Rank ranks() const noexcept override { return client_.ranks(); }
  [[nodiscard]] std::uint32_t node() const noexcept override { return meeting_.node; }
  [[nodiscard]] std::uint64_t job() const noexcept override { return meeting_.job; }
  [[nodiscard]] bool ranks_read_profile() const noexcept override { return true; }
  [[nodiscard]] Status health() noexcept override { return pmix::Client::health(); }

  Status join(std::uint32_t ranks_per_node, const Deadline& deadline) {
    WHERRY_ASSIGN(meeting_, meet(*this, ranks_per_node, deadline));
    return {};
  }
  Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline& deadline) override {
    return client_.exchange(mine, deadline);
  }

 private:
  pmix::Client& client_;
  Meeting meeting_;
};

}  // namespace

bool find_pmix_server() { return variable("PMIX_NAMESPACE") && variable("PMIX_RANK"); }

Result<std::unique_ptr<Bootstrap>> join_pmix(std::optional<std::uint32_t> others, const Deadline& deadline) {
  WHERRY_ASSIGN(const std::uint32_t per_node, ranks_per_node());
  WHERRY_ASSIGN(pmix::Client* const client, pmix::Client::get(deadline));
  const Rank ranks = client->ranks();
  const bool of_another_launcher = others.value_or(1) > 1 && *others != ranks;
  // Not by an abort of the job: that kills the other launcher before it has passed on what this process says.
  if (ranks == 1 || of_another_launcher) client->leave(deadline);
  if (of_another_launcher) {
    return Status(
        ranks == 1 ? StatusCode::kNotFound : StatusCode::kInvalidArgument,
        fmt::format("the PMIx server has started {} ranks, and PMI_SIZE is {}: one launcher was started by the "
                    "other one. Say which one's ranks these are: WHERRY_BOOTSTRAP=pmix or WHERRY_BOOTSTRAP=mpi",
                    ranks, *others));
  }
  if (ranks == 1) return std::unique_ptr<Bootstrap>();
  auto bootstrap = std::make_unique<PmixBootstrap>(*client);
  WHERRY_TRY(bootstrap->join(per_node, deadline));
  return std::unique_ptr<Bootstrap>(std::move(bootstrap));
}

}  // namespace wherry::route
