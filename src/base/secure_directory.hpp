// SPDX-License-Identifier: Apache-2.0
// Opens directories and files that other users of the machine cannot replace. Whoever can change a directory of a path
// can replace a file opened by that path. So files are opened relative to a checked, open directory.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <string>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry {

/// Opens a directory component by component (O_PATH: usable for openat(2), not for reading). Follows symbolic links
/// that belong to this user, root or `trusted`. kPermissionDenied: a link of another user; kNotFound: no such
/// directory; kInvalidArgument: not a directory, or it cannot be opened. `make_mode`: missing directories are made with
/// this mode; 0: they are an error.
Result<Fd> open_directory(const std::string& path, mode_t make_mode = 0, uid_t trusted = getuid());

/// Checks that only this user, root and `trusted` can create, replace or remove files in the open directory. One of
/// them must own it, and others must not write to it, except if it is sticky like /tmp; then check the files as well.
/// kPermissionDenied: the message has the reason and ends with `remedy`.
Status check_private(const Fd& directory, const std::string& path, const std::string& remedy, uid_t trusted = getuid());

/// Both of the above. Use it for every directory in which this process opens files by known names. The last component
/// must not be a symbolic link.
Result<Fd> secure_directory(const std::string& path, mode_t make_mode, const std::string& remedy);

/// Opens a file for appending, and creates it (mode 0600) if it is missing. Its directory must be secure.
/// kPermissionDenied: the file is a link, has several names, or belongs to another user. Character devices (/dev/null)
/// are accepted.
Result<Fd> open_log_file(const std::string& path);

/// Renames `from` to `to` in the same directory if `to` is free. False with errno EEXIST: `to` exists.
bool rename_to_free_name(const Fd& directory, const std::string& from, const std::string& to) noexcept;

}  // namespace wherry
