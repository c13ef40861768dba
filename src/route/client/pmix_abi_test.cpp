// SPDX-License-Identifier: Apache-2.0
// Compares the library's declarations of libpmix with the header of the installed PMIx. Most checks run when this is
// compiled.
#include <pmix.h>
// Include after pmix.h: this PMIx header needs it.
#include <gtest/gtest.h>
#include <pmix_common.h>

#include <string_view>
#include <type_traits>

#include "route/client/pmix_abi.hpp"
#include "route/client/pmix_library.hpp"

namespace wherry::route::pmix {
namespace {

static_assert(sizeof(Code) == sizeof(pmix_status_t) && sizeof(Type) == sizeof(pmix_data_type_t));
static_assert(std::is_same_v<pmix_scope_t, std::uint8_t> && std::is_same_v<pmix_rank_t, std::uint32_t>);
static_assert(kSuccess == PMIX_SUCCESS && kTimeout == PMIX_ERR_TIMEOUT &&
              kActionComplete == PMIX_EVENT_ACTION_COMPLETE);
static_assert(kLostConnection == PMIX_ERR_LOST_CONNECTION);
static_assert(kAllRanks == PMIX_RANK_WILDCARD && kGlobal == PMIX_GLOBAL);
static_assert(static_cast<int>(Type::kBool) == PMIX_BOOL && static_cast<int>(Type::kUint32) == PMIX_UINT32 &&
              static_cast<int>(Type::kBytes) == PMIX_BYTE_OBJECT);
static_assert(std::string_view(kCollectData) == PMIX_COLLECT_DATA && std::string_view(kJobSize) == PMIX_JOB_SIZE);

static_assert(sizeof(Process) == sizeof(pmix_proc_t) && offsetof(Process, rank) == offsetof(pmix_proc_t, rank));
static_assert(sizeof(ByteObject) == sizeof(pmix_byte_object_t) &&
              offsetof(ByteObject, size) == offsetof(pmix_byte_object_t, size));
static_assert(sizeof(Value) == sizeof(pmix_value_t) && offsetof(Value, type) == offsetof(pmix_value_t, type) &&
              offsetof(Value, bytes) == offsetof(pmix_value_t, data));
static_assert(sizeof(Info) == sizeof(pmix_info_t) && offsetof(Info, flags) == offsetof(pmix_info_t, flags) &&
              offsetof(Info, value) == offsetof(pmix_info_t, value));

/// Whether two functions have equally many arguments of equal sizes, and results of equal size.
template <typename A, typename B>
struct AreAlike : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
  requires(sizeof...(A) == sizeof...(B))
struct AreAlike<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...) &&
                                std::is_void_v<R> == std::is_void_v<S> && std::is_pointer_v<R> == std::is_pointer_v<S>;
};
template <auto Ours, typename Theirs>
constexpr bool kAlike = AreAlike<std::remove_cvref_t<decltype(std::declval<Library>().*Ours)>, Theirs*>::value;
static_assert(kAlike<&Library::get_version, decltype(PMIx_Get_version)>);
static_assert(kAlike<&Library::error_string, decltype(PMIx_Error_string)>);
static_assert(kAlike<&Library::initialized, decltype(PMIx_Initialized)>);
static_assert(kAlike<&Library::init, decltype(PMIx_Init)>);
static_assert(kAlike<&Library::finalize, decltype(PMIx_Finalize)>);
static_assert(kAlike<&Library::abort, decltype(PMIx_Abort)>);
static_assert(kAlike<&Library::put, decltype(PMIx_Put)>);
static_assert(kAlike<&Library::commit, decltype(PMIx_Commit)>);
static_assert(kAlike<&Library::fence, decltype(PMIx_Fence)>);
static_assert(kAlike<&Library::get, decltype(PMIx_Get)>);
static_assert(AreAlike<EventDone, pmix_event_notification_cbfunc_fn_t>::value);
static_assert(AreAlike<EventHandler, pmix_notification_fn_t>::value);

TEST(PmixVersion, TextsOfSeveralReleases_ExpectTheirMajorVersions) {
  EXPECT_EQ(major_version("OpenPMIx 4.2.2rc2 (PMIx Standard: 4.2, Stable ABI: 0.0, Provisional ABI: 0.0)"), 4);
  EXPECT_EQ(major_version("PMIx 3.2.3, repo rev: v3.2.3"), 3);
  EXPECT_EQ(major_version("OpenPMIx 12.0"), 12);
  for (const char* text : {"", "PMIx", "PMIx v", "PMIx 4", "99999999999999999999.1"}) EXPECT_EQ(major_version(text), 0);
}

TEST(PmixVersion, TheInstalledLibrary_ExpectTheVersionOfItsHeader) {
  const auto library = load_library();
  ASSERT_TRUE(library) << library.status().message();
  EXPECT_EQ(major_version(library->get_version()), PMIX_VERSION_MAJOR) << library->get_version();
  EXPECT_EQ(library->initialized(), 0);
}

}  // namespace
}  // namespace wherry::route::pmix
