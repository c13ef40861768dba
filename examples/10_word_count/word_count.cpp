// SPDX-License-Identifier: Apache-2.0
// Counts the words of a text. The ranks read its lines in turn and send each word to the rank that counts it. Then each
// rank sends its most frequent words to rank 0. The messages are strings, and vectors of strings and numbers.
//   wherry run --nodes 2 --ranks-per-node 2 -- word_count FILE
#include <wherry/route_codec.hpp>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

int main(int argc, char** argv) {
  std::ifstream text(argc > 1 ? argv[1] : "");
  if (!text) return std::cerr << "usage: word_count FILE\n", 2;
  auto runtime = wherry::route::Runtime::start();
  if (!runtime) return std::cerr << runtime.status().message() << "\n", 1;

  std::map<std::string, std::uint64_t> mine;
  Counts all;
  const auto count = runtime->on<std::string>([&](std::string&& word) { ++mine[std::move(word)]; });
  const auto gather = runtime->on<Counts>([&](Counts&& some) { all.insert(all.end(), some.begin(), some.end()); });

  std::string line, word;
  for (wherry::route::Rank turn = 0; std::getline(text, line); turn = (turn + 1) % runtime->ranks()) {
    if (turn != runtime->rank()) continue;
    for (const char c : line + "\n") {
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (!word.empty()) {
        const auto owner = static_cast<wherry::route::Rank>(std::hash<std::string>{}(word) % runtime->ranks());
        if (runtime->send(owner, count, word) != wherry::StatusCode::kOk)
          return std::cerr << runtime->status().message() << "\n", 1;
        word.clear();
      }
    }
  }
  if (const wherry::Status done = runtime->quiesce(); !done) return std::cerr << done.message() << "\n", 1;

  const auto more_often = [](const auto& a, const auto& b) { return a.second > b.second; };
  Counts top(mine.begin(), mine.end());
  std::stable_sort(top.begin(), top.end(), more_often);
  top.resize(std::min<std::size_t>(top.size(), 10));
  if (runtime->send(0, gather, top) != wherry::StatusCode::kOk)
    return std::cerr << runtime->status().message() << "\n", 1;
  if (const wherry::Status done = runtime->quiesce(); !done) return std::cerr << done.message() << "\n", 1;
  if (runtime->rank() != 0) return 0;
  std::stable_sort(all.begin(), all.end(), more_often);
  for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 10); ++i)
    std::cout << all[i].second << " " << all[i].first << "\n";
}
