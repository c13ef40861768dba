// SPDX-License-Identifier: Apache-2.0
#include "move/service/flight_server.hpp"

#include <arrow/buffer.h>
#include <arrow/flight/server.h>
#include <arrow/flight/server_middleware.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/cpu.hpp"
#include "base/guarded.hpp"
#include "base/secret.hpp"
#include "move/arrow_schema.hpp"
#include "move/arrow_status.hpp"
#include "move/operate/arena_pool.hpp"
#include "move/operate/query.hpp"
#include "move/service/flight_stream.hpp"
#include "move/service/frame_arrow.hpp"
#include "move/service/stream_json.hpp"

namespace wherry::move {
namespace {

namespace flight = arrow::flight;

arrow::Status not_found(const std::string& name) {
  return arrow::Status::KeyError("no stream \"", name, "\" on this agent: list the flights to see what there is");
}

/// Remembers the connections whose calls carried the token.
class Proven {
 public:
  /// `peer` is in gRPC's format: "ipv4:127.0.0.1:4711" or "ipv6:%5B::1%5D:4711".
  void add(const std::string& peer) {
    std::string name = peer.substr(peer.find(':') + 1);
    for (const std::string_view bracket : {"%5B", "%5D", "[", "]"}) {
      if (const auto at = name.find(bracket); at != std::string::npos) name.erase(at, bracket.size());
    }
    const std::lock_guard lock(mutex_);
    peers_[std::move(name)] = false;
  }
  /// Do not remove a peer that connected after `connected` was collected.
  std::set<std::string> keep(const std::set<std::string>& connected) {
    const std::lock_guard lock(mutex_);
    std::erase_if(peers_, [&](const auto& one) { return one.second && !connected.contains(one.first); });
    std::set<std::string> all;
    for (auto& [name, known] : peers_) {
      known = true;
      all.insert(name);
    }
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, bool> peers_;  ///< whether keep() knew of it already
};

class TokenCheck final : public flight::ServerMiddlewareFactory {
 public:
  TokenCheck(const std::string& token, std::shared_ptr<Proven> proven)
      : expected_("Bearer " + token), proven_(std::move(proven)) {}

  arrow::Status StartCall(const flight::CallInfo& /*info*/, const flight::ServerCallContext& context,
                          std::shared_ptr<flight::ServerMiddleware>* /*middleware*/) override {
    const auto [first, last] = context.incoming_headers().equal_range("authorization");
    if (first == last) {
      return flight::MakeFlightError(flight::FlightStatusCode::Unauthenticated,
                                     "no token: send the header \"authorization: Bearer <token of the session file>\"");
    }
    if (std::next(first) != last || !equal_secrets(first->second, expected_)) {
      return flight::MakeFlightError(
          flight::FlightStatusCode::Unauthenticated,
          "wrong token: it is the one in the agent's session file, sent as \"authorization: Bearer <token>\"");
    }
    proven_->add(context.peer());
    return arrow::Status::OK();
  }

 private:
  const std::string expected_;
  const std::shared_ptr<Proven> proven_;
};

class Server final : public flight::FlightServerBase {
 public:
  Server(Catalogue& catalogue, std::shared_ptr<Arena> arena, std::uint64_t max_message_bytes)
      : catalogue_(catalogue), pool_(pool_for(catalogue, std::move(arena))), max_message_bytes_(max_message_bytes) {}

  void end_followers() { stopping_ = true; }

  arrow::Status ListFlights(const flight::ServerCallContext& /*context*/, const flight::Criteria* criteria,
                            std::unique_ptr<flight::FlightListing>* listings) override {
    std::vector<flight::FlightInfo> infos;
    for (const StreamStatus& stream : catalogue_.list()) {
      if (criteria != nullptr && !stream.info->name.starts_with(criteria->expression)) continue;
      ARROW_ASSIGN_OR_RAISE(auto info, info_of(stream));
      infos.push_back(std::move(info));
    }
    *listings = std::make_unique<flight::SimpleFlightListing>(std::move(infos));
    return arrow::Status::OK();
  }

  arrow::Status GetFlightInfo(const flight::ServerCallContext& /*context*/, const flight::FlightDescriptor& request,
                              std::unique_ptr<flight::FlightInfo>* info) override {
    ARROW_ASSIGN_OR_RAISE(const StreamStatus stream, find(request));
    ARROW_ASSIGN_OR_RAISE(auto made, info_of(stream));
    *info = std::make_unique<flight::FlightInfo>(std::move(made));
    return arrow::Status::OK();
  }

  arrow::Status GetSchema(const flight::ServerCallContext& /*context*/, const flight::FlightDescriptor& request,
                          std::unique_ptr<flight::SchemaResult>* schema) override {
    ARROW_ASSIGN_OR_RAISE(const StreamStatus stream, find(request));
    ARROW_ASSIGN_OR_RAISE(const auto made, schema_of(stream));
    return flight::SchemaResult::Make(*made).Value(schema);
  }

  arrow::Status DoGet(const flight::ServerCallContext& context, const flight::Ticket& request,
                      std::unique_ptr<flight::FlightDataStream>* stream) override {
    auto ticket = parse_ticket(request.ticket);
    if (!ticket) return arrow::Status::Invalid(ticket.status().message());
    const std::optional<StreamStatus> status = catalogue_.find(ticket->stream);
    if (!status) return not_found(ticket->stream);
    if (const std::uint32_t parts = status->info->parts; ticket->part && *ticket->part >= std::max(parts, 1U)) {
      return arrow::Status::Invalid("stream \"", ticket->stream, "\" has ", std::max(parts, 1U), " parts: no part ",
                                    *ticket->part);
    }
    ARROW_ASSIGN_OR_RAISE(auto schema, schema_of(*status));
    std::shared_ptr<const Query> query;
    if (ticket->columns || !ticket->filter.empty()) {
      auto made = guarded([&] {
        return Query::make(schema, ticket->columns,
                           ticket->filter.empty() ? nlohmann::json() : nlohmann::json::parse(ticket->filter));
      });
      if (!made) return arrow::Status::Invalid("ticket for \"", ticket->stream, "\": ", made.status().message());
      query = std::make_shared<const Query>(*std::move(made));
    }
    *stream = std::make_unique<FrameStream>(catalogue_, context, stopping_, *std::move(ticket), *status,
                                            std::move(schema), std::move(query), pool_, max_message_bytes_);
    return arrow::Status::OK();
  }

  arrow::Status ListActions(const flight::ServerCallContext& /*context*/,
                            std::vector<flight::ActionType>* actions) override {
    *actions = {{"streams", "the status of all streams as a JSON array; takes no body"}};
    return arrow::Status::OK();
  }

  arrow::Status DoAction(const flight::ServerCallContext& /*context*/, const flight::Action& action,
                         std::unique_ptr<flight::ResultStream>* result) override {
    if (action.type != "streams") {
      return arrow::Status::NotImplemented("no action \"", action.type, "\": there is only \"streams\"");
    }
    std::vector<flight::Result> results(1);
    results[0].body = arrow::Buffer::FromString(streams_json(catalogue_.list()));
    *result = std::make_unique<flight::SimpleResultStream>(std::move(results));
    return arrow::Status::OK();
  }

 private:
  arrow::Result<StreamStatus> find(const flight::FlightDescriptor& request) const {
    if (request.type != flight::FlightDescriptor::PATH || request.path.size() != 1) {
      return arrow::Status::Invalid("a descriptor is a path of one element, the name of a stream, not ",
                                    request.ToString());
    }
    std::optional<StreamStatus> stream = catalogue_.find(request.path[0]);
    if (!stream) return not_found(request.path[0]);
    return *std::move(stream);
  }

  static arrow::Result<std::shared_ptr<arrow::Schema>> schema_of(const StreamStatus& stream) {
    auto schema = to_arrow(stream.info->schema, stream.info->schema_metadata);
    if (!schema)
      return arrow::Status::UnknownError("schema of \"", stream.info->name, "\": ", schema.status().message());
    return *std::move(schema);
  }

  static arrow::Result<flight::FlightInfo> info_of(const StreamStatus& stream) {
    ARROW_ASSIGN_OR_RAISE(const auto schema, schema_of(stream));
    const std::uint32_t parts = stream.info->parts;
    std::vector<flight::FlightEndpoint> endpoints(std::max(parts, 1U));
    for (std::uint32_t part = 0; part < endpoints.size(); ++part) {
      nlohmann::json ticket{{"stream", stream.info->name}};
      if (parts != 0) {  // the same steps of each
        ticket["part"] = part;
        ticket["from"] = stream.first;
        ticket["until"] = stream.next;
      }
      endpoints[part].ticket.ticket = ticket.dump();
    }
    return flight::FlightInfo::Make(*schema, flight::FlightDescriptor::Path({stream.info->name}), endpoints,
                                    static_cast<std::int64_t>(stream.held_rows),
                                    static_cast<std::int64_t>(stream.held_bytes),
                                    /*ordered=*/parts == 0, nlohmann::json{{"generation", stream.generation}}.dump());
  }

  /// Results may outlive the catalogue, but are allocated while it exists.
  static std::shared_ptr<arrow::MemoryPool> pool_for(Catalogue& catalogue, std::shared_ptr<Arena> arena) {
    const std::shared_ptr<Loans> loans = catalogue.shared_loans();
    return ArenaPool::make(std::move(arena), {.take = [loans](std::uint64_t bytes) { return loans->take_bytes(bytes); },
                                              .give_back = [loans](std::uint64_t bytes) { loans->return_bytes(bytes); },
                                              .make_room = [&catalogue] { return catalogue.evict_for_reader(); }});
  }

  Catalogue& catalogue_;
  const std::shared_ptr<arrow::MemoryPool> pool_;  ///< of answers to queries
  const std::uint64_t max_message_bytes_;
  std::atomic<bool> stopping_{false};
};

/// Pins the calling thread meanwhile: threads that it starts inherit its affinity.
class OnCores {
 public:
  explicit OnCores(const std::vector<int>& cores) {
    if (cores.empty()) return;
    before_ = allowed_cores();
    moved_ = pin_thread(cores).ok();
  }
  ~OnCores() {
    if (moved_) (void)pin_thread(before_);
  }
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;

 private:
  std::vector<int> before_;
  bool moved_ = false;
};

}  // namespace

struct FlightService::Impl {
  Impl(Catalogue& catalogue, std::shared_ptr<Arena> arena, std::uint64_t max_message_bytes)
      : server(catalogue, std::move(arena), max_message_bytes) {}
  Server server;
  std::shared_ptr<Proven> proven = std::make_shared<Proven>();
  std::once_flag stopped;
};

FlightService::FlightService(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
FlightService::~FlightService() { stop(); }

Result<std::unique_ptr<FlightService>> FlightService::start(Catalogue& catalogue, std::shared_ptr<Arena> arena,
                                                            const std::string& host, int port, const std::string& token,
                                                            std::vector<int> cores, std::uint64_t max_message_bytes) {
  const std::string where = "Arrow Flight on " + host + ":" + std::to_string(port);
  if (token.empty()) return Status(StatusCode::kInvalidArgument, where + ": the token must not be empty");
  const std::string in_uri = host.find(':') == std::string::npos ? host : "[" + host + "]";  // an IPv6 address
  auto location = flight::Location::ForGrpcTcp(in_uri, port);
  if (!location.ok()) return from_arrow(location.status(), where);
  flight::FlightServerOptions options(*location);
  auto impl = std::make_unique<Impl>(catalogue, std::move(arena), max_message_bytes);
  options.middleware.emplace_back("wherry-token", std::make_shared<TokenCheck>(token, impl->proven));
  {
    const OnCores pinned(cores);
    if (const arrow::Status status = impl->server.Init(options); !status.ok()) {
      return Status(StatusCode::kUnavailable, where + ": " + status.message() + " (is the port in use?)");
    }
  }
  return std::unique_ptr<FlightService>(new FlightService(std::move(impl)));
}

std::set<std::string> FlightService::proven(const std::set<std::string>& connected) {
  return impl_->proven->keep(connected);
}

int FlightService::port() const noexcept { return impl_->server.port(); }

void FlightService::stop() {
  std::call_once(impl_->stopped, [this] {
    impl_->server.end_followers();
    const auto deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(500);
    (void)impl_->server.Shutdown(&deadline);  // calls that are still running then are cancelled
    (void)impl_->server.Wait();
  });
}

}  // namespace wherry::move
