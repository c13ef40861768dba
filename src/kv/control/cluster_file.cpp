// SPDX-License-Identifier: Apache-2.0
#include "kv/control/cluster_file.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <toml++/toml.h>
#include <algorithm>
#include <limits>
#include <set>

#include "base/socket.hpp"
#include "base/text_file.hpp"
#include "base/try.hpp"
#include "kv/net/address.hpp"
#include "kv/net/xdp_interface.hpp"

namespace wherry::kv {
namespace {

/// Reads a table's keys. After the first error, status() gives the key, the line and the reason.
class Table {
 public:
  Table(const toml::table& table, std::string section, const std::string& origin)
      : table_(table), section_(std::move(section)), origin_(origin) {}

  void number(const char* key, std::uint32_t& value, std::int64_t min, std::int64_t max, bool required = false) {
    const toml::node* node = find(key, required);
    if (node == nullptr) return;
    const auto* integer = node->as_integer();
    if (integer == nullptr || integer->get() < min || integer->get() > max)
      fail(node, fmt::format("'{}.{}': want a whole number from {} to {}", section_, key, min, max));
    else
      value = static_cast<std::uint32_t>(integer->get());
  }
  /// Reads a text. Returns its node, for fail(), or nullptr if the key is absent.
  const toml::node* text(const char* key, std::string& value, bool required = false) {
    const toml::node* node = find(key, required);
    if (node == nullptr) return nullptr;
    const auto* string = node->as_string();
    if (string == nullptr || string->get().empty())
      fail(node, fmt::format("'{}.{}': want a text in quotes", section_, key));
    else
      value = string->get();
    return string == nullptr ? nullptr : node;
  }
  /// Reads one text, or a list of texts in brackets.
  const toml::node* texts(const char* key, std::vector<std::string>& values) {
    const toml::node* node = find(key, false);
    if (node == nullptr) return nullptr;
    values.clear();
    if (const auto* string = node->as_string()) values.push_back(string->get());
    if (const auto* array = node->as_array())
      for (const toml::node& entry : *array) values.push_back(entry.value_or(std::string()));
    if (values.empty() || std::ranges::find(values, std::string()) != values.end())
      fail(node, fmt::format("'{}.{}': want a text in quotes, or several in brackets", section_, key));
    return node;
  }
  void addresses(const char* key, std::vector<std::string>& values) {
    const toml::node* node = texts(key, values);
    for (const std::string& value : values)
      if (node != nullptr && status_ && !parse_host_port(value))
        fail(node, fmt::format("'{}.{}': want host:port, not '{}'", section_, key, value));
  }
  void address(const char* key, std::string& value) {
    const toml::node* node = text(key, value);
    if (node != nullptr && status_ && !parse_host_port(value))
      fail(node, fmt::format("'{}.{}': want host:port", section_, key));
  }
  void finish() {
    for (const auto& [name, node] : table_) {
      if (known_.contains(std::string(name.str())) || !status_) continue;
      std::string all;
      for (const std::string& key : known_) all += (all.empty() ? "" : ", ") + key;
      fail(&node, fmt::format("unknown key '{}.{}'; there are {}", section_, std::string(name.str()), all));
    }
  }
  void fail(const toml::node* where, const std::string& what) {
    if (!status_) return;
    const toml::node& node = where != nullptr ? *where : table_;
    status_ = {StatusCode::kInvalidArgument,
               fmt::format("{}, line {}: {}", origin_, static_cast<unsigned>(node.source().begin.line), what)};
  }
  [[nodiscard]] const wherry::Status& status() const noexcept { return status_; }
  [[nodiscard]] const toml::node* where(const char* key) const { return table_.get(key); }

 private:
  const toml::node* find(const char* key, bool required) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr && required) fail(nullptr, fmt::format("'{}.{}' is missing", section_, key));
    return node;
  }
  const toml::table& table_;
  std::string section_;
  const std::string& origin_;
  std::set<std::string> known_;
  wherry::Status status_;
};

/// Parses a numeric IPv4 address and a port. Names are not possible, because nodes store addresses in registers.
bool parse_udp(const std::string& text, Endpoint& endpoint) {
  const auto parsed = parse_host_port(text);
  in_addr address{};
  if (!parsed || parsed->port == 0 || inet_pton(AF_INET, parsed->host.c_str(), &address) != 1) return false;
  endpoint.ip = ntohl(address.s_addr);
  endpoint.port = parsed->port;
  return endpoint.ip != 0;
}

wherry::Status read_node(const toml::table& entry, ClusterFile& file, const std::string& origin) {
  Table table(entry, "node", origin);
  std::uint32_t number = 0;
  ClusterNode node;
  node.configured = true;
  table.number("number", number, 0, kMaxNodes - 1, true);
  table.text("name", node.name);
  std::string text;
  const toml::node* udp = table.text("udp", text, true);
  if (udp != nullptr && table.status() && !parse_udp(text, node.endpoint))
    table.fail(udp, "'node.udp': want a numeric IPv4 address and a port, as 10.0.0.1:19286");
  text.clear();
  const toml::node* mac = table.text("mac", text);
  if (mac != nullptr && table.status()) {
    const auto parsed = parse_mac(text);
    if (!parsed) table.fail(mac, "'node.mac': want six bytes, as 02:00:00:00:00:01");
    node.endpoint.mac = parsed.value_or(0);
  }
  table.address("control", node.control);
  const toml::node* xdp = table.text("xdp", node.xdp);
  if (xdp != nullptr && table.status()) {
    const auto interfaces = XdpInterface::parse_all(node.xdp);
    if (!interfaces)
      table.fail(xdp, fmt::format("'node.xdp': {}", XdpInterface::kWanted));
    else if (interfaces->size() > 1 && mac != nullptr)
      table.fail(mac, "'node.mac' is of one interface, and 'node.xdp' names several: leave it out, and others ask");
  }
  table.finish();
  WHERRY_TRY(table.status());
  if (node.name.empty()) node.name = fmt::format("node{}", number);
  for (std::uint32_t other = 0; other < kMaxNodes; ++other) {
    const ClusterNode& o = file.nodes[other];
    if (!o.configured) continue;
    if (other == number)
      table.fail(table.where("number"), fmt::format("'node.number': there are two nodes {}", number));
    if (o.name == node.name)
      table.fail(table.where("name"), fmt::format("'node.name': two nodes are named '{}'", o.name));
    if (o.endpoint.ip == node.endpoint.ip && o.endpoint.port == node.endpoint.port)
      table.fail(udp, fmt::format("'node.udp': node {} has this address already", other));
  }
  WHERRY_TRY(table.status());
  file.nodes[number] = std::move(node);
  return wherry::ok_status();
}

wherry::Status read_cluster(const toml::table& entry, ClusterFile& file, const std::string& origin) {
  Table table(entry, "cluster", origin);
  table.text("name", file.name, true);
  table.number("bucket_bits", file.bucket_bits, 8, kMaxBucketBits);
  table.number("lanes", file.lanes, 1, kMaxLanes);
  file.static_lanes = file.lanes / 4;
  table.number("static_lanes", file.static_lanes, 0, file.lanes);
  std::string mode = "static";
  const toml::node* where = table.text("mode", mode);
  if (mode == "static")
    file.mode = ClusterMode::fixed;
  else if (mode == "keeper")
    file.mode = ClusterMode::keeper;
  else if (mode == "etcd")
    file.mode = ClusterMode::etcd;
  else
    table.fail(where, "'cluster.mode': want static, keeper or etcd");
  table.addresses("keeper", file.keepers);
  if (!file.keepers.empty()) file.keeper = file.keepers.front();
  const toml::node* etcd = table.texts("etcd", file.etcd);
  for (const std::string& url : file.etcd)
    if (!url.starts_with("http://") && !url.starts_with("https://"))
      table.fail(etcd, "'cluster.etcd': want http://host:port or https://host:port");
  table.text("etcd_ca", file.etcd_ca);
  table.text("etcd_cert", file.etcd_cert);
  table.text("etcd_key", file.etcd_key);
  if (file.etcd_cert.empty() != file.etcd_key.empty())
    table.fail(nullptr, "'cluster.etcd_cert' and 'cluster.etcd_key' belong together");
  std::string policy = "store";
  const toml::node* where_policy = table.text("policy", policy);
  if (policy == "accept")
    file.policy = AckPolicy::accept;
  else if (policy == "mixed")
    file.policy = AckPolicy::mixed;
  else if (policy != "store")
    table.fail(where_policy, "'cluster.policy': want store, accept or mixed");
  std::vector<std::string> clients;
  const toml::node* where_clients = table.texts("clients", clients);
  for (const std::string& text : clients) {
    const auto subnet = Subnet::parse(text);
    if (!subnet)
      table.fail(where_clients,
                 fmt::format("'cluster.clients': want IPv4 addresses or subnets, as 10.0.0.0/24, not '{}'", text));
    else
      file.clients.push_back(*subnet);
  }
  table.text("etcd_prefix", file.etcd_prefix);
  table.finish();
  if (file.lanes != 0 && (file.lanes & (file.lanes - 1)) != 0)
    table.fail(table.where("lanes"), "'cluster.lanes': want a power of two");
  if (file.mode == ClusterMode::fixed) file.static_lanes = file.lanes;  // nobody grants any
  if (file.mode == ClusterMode::keeper && file.keepers.size() > 1)
    table.fail(table.where("keeper"), "mode 'keeper' has one keeper; several elect one in mode 'etcd'");
  if (file.mode == ClusterMode::keeper && file.keeper.empty())
    table.fail(nullptr, "mode 'keeper' wants 'cluster.keeper', host:port");
  if (file.mode == ClusterMode::etcd && (file.etcd.empty() || file.keeper.empty()))
    table.fail(nullptr, "mode 'etcd' wants 'cluster.etcd', http://host:port, and 'cluster.keeper', host:port");
  if (file.etcd_prefix.empty()) file.etcd_prefix = "/wherry/kv/" + file.name;
  return table.status();
}

wherry::Status read_timing(const toml::table& entry, ClusterFile& file, const std::string& origin) {
  Table table(entry, "timing", origin);
  table.number("ping_ms", file.ping_ms, 1, 60'000);
  table.number("misses", file.misses, 1, 1000);
  table.number("lease_ms", file.lease_ms, 5, 3'600'000);
  table.number("lane_ttl_ms", file.lane_ttl_ms, 100, 3'600'000);
  table.number("retry_cycles", file.retry_cycles, 250, std::numeric_limits<std::uint32_t>::max());
  table.finish();
  return table.status();
}

wherry::Status read_all(const toml::table& root, ClusterFile& file, const std::string& origin) {
  Table top(root, "file", origin);
  if (!root.contains("cluster")) top.fail(nullptr, "there is no section [cluster]");
  for (const auto& [name, node] : root) {
    const std::string section(name.str());
    const toml::table* table = node.as_table();
    wherry::Status s;
    if (section == "cluster" && table != nullptr) {
      s = read_cluster(*table, file, origin);
    } else if (section == "timing" && table != nullptr) {
      s = read_timing(*table, file, origin);
    } else if (section == "node" && node.is_array_of_tables()) {
      for (const toml::node& entry : *node.as_array()) {
        if (s) s = read_node(*entry.as_table(), file, origin);
      }
    } else {
      top.fail(&node, fmt::format("'{}': there are [cluster], [timing] and [[node]]", section));
    }
    if (!s) return s;
  }
  const bool any = std::any_of(file.nodes.begin(), file.nodes.end(), [](const auto& n) { return n.configured; });
  if (!any) top.fail(nullptr, "there is no [[node]]");
  return top.status();
}

}  // namespace

Result<ClusterFile> parse_cluster_file(const std::string& text, const std::string& origin) {
  ClusterFile file;
  try {
    const toml::table root = toml::parse(text, origin);
    WHERRY_TRY(read_all(root, file, origin));
  } catch (const toml::parse_error& error) {
    return wherry::Status(StatusCode::kInvalidArgument,
                          fmt::format("{}, line {}: {}", origin, static_cast<unsigned>(error.source().begin.line),
                                      std::string(error.description())));
  }
  return file;
}

Result<ClusterFile> load_cluster_file(const std::string& path) {
  WHERRY_ASSIGN(auto text, read_text_file(path, "the cluster file"));
  return parse_cluster_file(text, path);
}

Cycles keeper_silence(const ClusterFile& file) noexcept {
  const std::uint64_t ms =
      std::max<std::uint64_t>({1000, 2 * std::uint64_t{file.lease_ms}, 3 * std::uint64_t{file.ping_ms}});
  return ms * kMillisecond;
}

Configuration static_configuration(const ClusterFile& file) {
  Configuration c;
  c.epoch = 1;
  c.bucket_bits = file.bucket_bits;
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (!file.nodes[node].configured) continue;
    c.members |= mask_of(node);
    c.peers[node] = file.nodes[node].endpoint;
  }
  c.serving = c.members;
  c.leaders = first_leaders(c.serving);
  return c;
}

}  // namespace wherry::kv
