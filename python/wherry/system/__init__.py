# SPDX-License-Identifier: Apache-2.0
"""The machine: paths, processes, ports, namespaces, private files, errors. Other packages use only the names exported
here."""

from wherry import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wherry.system.machine import Machine as Machine
    from wherry.system.machine import this_machine as this_machine
    from wherry.system.netns import Mesh as Mesh
    from wherry.system.netns import Namespace as Namespace
    from wherry.system.netns import Network as Network
    from wherry.system.netns import set_network as set_network
    from wherry.system.os_errors import RESOURCES as RESOURCES
    from wherry.system.os_errors import doing as doing
    from wherry.system.os_errors import system_error as system_error
    from wherry.system.os_errors import system_error_at as system_error_at
    from wherry.system.paths import PACKAGE as PACKAGE
    from wherry.system.paths import application as application
    from wherry.system.paths import built as built
    from wherry.system.paths import peer_program as peer_program
    from wherry.system.paths import prefix as prefix
    from wherry.system.paths import repository as repository
    from wherry.system.paths import runtime_directory as runtime_directory
    from wherry.system.paths import wherry_bypass as wherry_bypass
    from wherry.system.paths import wherry_kv as wherry_kv
    from wherry.system.paths import wherry_probe as wherry_probe
    from wherry.system.paths import wherryd as wherryd
    from wherry.system.ports import free_ports as free_ports
    from wherry.system.processes import ENDING as ENDING
    from wherry.system.processes import Lines as Lines
    from wherry.system.processes import Process as Process
    from wherry.system.processes import Workspace as Workspace
    from wherry.system.processes import ask_to_end as ask_to_end
    from wherry.system.processes import ending_held as ending_held
    from wherry.system.processes import ends_with_us as ends_with_us
    from wherry.system.processes import exit_status as exit_status
    from wherry.system.processes import how_it_ended as how_it_ended
    from wherry.system.processes import inherited as inherited
    from wherry.system.processes import run_to_end as run_to_end
    from wherry.system.processes import scratch_directory as scratch_directory
    from wherry.system.processes import spawn as spawn
    from wherry.system.processes import wait_for_end as wait_for_end
    from wherry.system.profile import Advice as Advice
    from wherry.system.profile import Profile as Profile
    from wherry.system.profile import default_profile_file as default_profile_file
    from wherry.system.profile import find_profile as find_profile
    from wherry.system.profile import load_profile as load_profile
    from wherry.system.profile import machine_key as machine_key
    from wherry.system.profile import write_profile as write_profile
    from wherry.system.secure import check_private as check_private
    from wherry.system.secure import open_directory as open_directory
    from wherry.system.secure import open_own as open_own
    from wherry.system.secure import replace_own as replace_own
    from wherry.system.secure import replacing as replacing
    from wherry.system.secure import secure_directory as secure_directory

if not TYPE_CHECKING:  # hides __getattr__ from type checkers, so that they report unknown names
    __getattr__ = lazy.names(
        __name__,
        {
            "wherry.system.paths": (
                "PACKAGE",
                "application",
                "built",
                "peer_program",
                "prefix",
                "repository",
                "runtime_directory",
                "wherry_bypass",
                "wherry_kv",
                "wherry_probe",
                "wherryd",
            ),
            "wherry.system.secure": (
                "check_private",
                "open_directory",
                "open_own",
                "replace_own",
                "replacing",
                "secure_directory",
            ),
            "wherry.system.processes": (
                "ENDING",
                "Lines",
                "Process",
                "Workspace",
                "ask_to_end",
                "ending_held",
                "ends_with_us",
                "exit_status",
                "how_it_ended",
                "inherited",
                "run_to_end",
                "scratch_directory",
                "spawn",
                "wait_for_end",
            ),
            "wherry.system.ports": ("free_ports",),
            "wherry.system.profile": (
                "Advice",
                "Profile",
                "default_profile_file",
                "find_profile",
                "load_profile",
                "machine_key",
                "write_profile",
            ),
            "wherry.system.netns": (
                "Mesh",
                "Namespace",
                "Network",
                "set_network",
            ),
            "wherry.system.os_errors": (
                "RESOURCES",
                "doing",
                "system_error",
                "system_error_at",
            ),
            "wherry.system.machine": (
                "Machine",
                "this_machine",
            ),
        },
    )
