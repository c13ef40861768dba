// SPDX-License-Identifier: Apache-2.0
// The part of the PMIx standard's C interface that ranks use to find each other. libpmix.so.2 is loaded at run time, so
// that neither the build nor the wheel needs PMIx. Layouts and numbers are equal in OpenPMIx 3.1 to 6.1.
// pmix_abi_test.cpp compares them with the installed PMIx header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::route::pmix {

inline constexpr int kOldestMajor = 3, kNewestMajor = 6;

using Code = int;  ///< pmix_status_t
inline constexpr Code kSuccess = 0;
inline constexpr Code kTimeout = -24;
/// The server has gone. The second code is from version 3.
inline constexpr Code kLostConnection = -61, kLostServer = -101;
inline constexpr Code kActionComplete = -334;

inline constexpr std::uint32_t kAllRanks = UINT32_MAX - 1;

struct Process {
  char name_space[256];
  std::uint32_t rank;
};

enum class Type : std::uint16_t { kBool = 1, kUint32 = 14, kBytes = 27 };

struct ByteObject {
  char* bytes;
  std::size_t size;
};
struct Variable {  ///< an environment variable: the largest of a value's alternatives
  char* name;
  char* value;
  char separator;
};
struct Value {
  Type type;
  union {
    bool flag;
    std::uint32_t uint32;
    ByteObject bytes;
    Variable variable;
  };
};
struct Info {
  char key[512];
  std::uint32_t flags;
  Value value;
};

inline constexpr const char* kCollectData = "pmix.collect";
inline constexpr const char* kJobSize = "pmix.job.size";
inline constexpr std::uint8_t kGlobal = 3;  ///< a scope: for processes of this node and of others

using EventDone = void (*)(Code, Info*, std::size_t, void (*)(Code, void*), void*, void*);
using EventHandler = void (*)(std::size_t, Code, const Process*, Info*, std::size_t, Info*, std::size_t, EventDone,
                              void*);

/// The functions of libpmix.
struct Library {
  const char* (*get_version)() = nullptr;
  const char* (*error_string)(Code) = nullptr;
  int (*initialized)() = nullptr;
  Code (*init)(Process*, Info*, std::size_t) = nullptr;
  Code (*finalize)(const Info*, std::size_t) = nullptr;
  Code (*abort)(int, const char*, Process*, std::size_t) = nullptr;
  Code (*put)(std::uint8_t, const char*, Value*) = nullptr;
  Code (*commit)() = nullptr;
  Code (*fence)(const Process*, std::size_t, const Info*, std::size_t) = nullptr;
  Code (*get)(const Process*, const char*, const Info*, std::size_t, Value**) = nullptr;
  /// In version 3, this function returns void.
  void (*register_event_handler)(Code*, std::size_t, Info*, std::size_t, EventHandler,
                                 void (*)(Code, std::size_t, void*), void*) = nullptr;
};

}  // namespace wherry::route::pmix
