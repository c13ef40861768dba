// SPDX-License-Identifier: Apache-2.0 Opens directories and files that other users of the machine cannot replace. A
// program that opens a file by its path trusts every user who can change a directory on that path. A program that opens
// it beneath a checked, open directory does not.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <string>

#include "base/socket.hpp"
#include "wherry/status.hpp"

namespace wherry {

/// Opens a directory component by component (O_PATH: usable for openat(2), not for reading). Symbolic links on the way
/// are followed if they belong to this user, root or `trusted`. kPermissionDenied: a link of another user; kNotFound:
/// no such directory; kInvalidArgument: not a directory, or it cannot be opened. `make_mode`: missing directories are
/// made with this mode; 0: they are an error.
Result<Fd> open_directory(const std::string& path, mode_t make_mode = 0, uid_t trusted = getuid());

/// Whether only this user, root and `trusted` can make, replace or remove files in the open directory: it belongs to
/// one of them, and others may not write to it unless it is sticky, as /tmp is (there the files must be checked as
/// well). kPermissionDenied says why not; `remedy` ends the message.
Status check_private(const Fd& directory, const std::string& path, const std::string& remedy, uid_t trusted = getuid());

/// Both of the above. Every directory in which this process opens files by known names is opened by this function. The
/// last component must not be a symbolic link.
Result<Fd> secure_directory(const std::string& path, mode_t make_mode, const std::string& remedy);

/// Opens a file for appending, and makes it (mode 0600) if it is missing. Its directory must be secure.
/// kPermissionDenied: the file is a link, has several names, or belongs to another user. Character devices (/dev/null)
/// are files here.
Result<Fd> open_log_file(const std::string& path);

/// Gives the file `from` the name `to`, in the same directory, if `to` is free. False with errno EEXIST: it is not.
bool rename_to_free_name(const Fd& directory, const std::string& from, const std::string& to) noexcept;

}  // namespace wherry
