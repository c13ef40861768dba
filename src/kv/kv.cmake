# SPDX-License-Identifier: Apache-2.0
# The replicated key-value store: base < ports < {node, client, keeper} < process. No UCX, no Arrow.

# The key-value store. Nodes and clients know neither UCX nor Arrow.
add_library(wherry_kv_frame STATIC kv/frame_io.cpp)
target_link_libraries(wherry_kv_frame PUBLIC wherry_base)
add_library(wherry_kv STATIC kv/node/table.cpp kv/node/notes.cpp kv/node/node.cpp kv/node/leader.cpp kv/node/follower.cpp
            kv/node/epoch.cpp kv/node/sync.cpp kv/node/node_registers.cpp)
target_link_libraries(wherry_kv PUBLIC wherry_kv_frame)
add_library(wherry_kv_udp STATIC kv/udp_port.cpp)
target_link_libraries(wherry_kv_udp PUBLIC wherry_base)
add_library(wherry_kv_xdp STATIC kv/neighbour.cpp kv/neighbour_table.cpp kv/bpf.cpp kv/xdp_program.cpp kv/xdp_socket.cpp
            kv/xdp_port.cpp kv/xdp_ports.cpp kv/xdp_switch.cpp)
target_link_libraries(wherry_kv_xdp PUBLIC wherry_kv_frame)
# What keepers, nodes and clients say to each other beside the frames, and the file that names them all.
add_library(wherry_kv_control STATIC kv/keeper/configuration.cpp kv/keeper/control.cpp kv/keeper/line_connection.cpp kv/cluster_file.cpp)
target_link_libraries(wherry_kv_control PUBLIC wherry_base PRIVATE nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus)
# A client of the key-value store: its half of the protocol, then its sockets and interfaces.
add_library(wherry_kv_client STATIC kv/client/core.cpp kv/client/core_lanes.cpp kv/client/core_nodes.cpp kv/client/core_replies.cpp
            kv/client/outcome.cpp kv/client/options.cpp kv/client/lane_session.cpp kv/client/udp_client.cpp kv/client/client_port.cpp
            kv/client/c_api.cpp)
target_link_libraries(wherry_kv_client PUBLIC wherry_base PRIVATE wherry_kv_udp wherry_kv_xdp wherry_kv_control)

# Membership of the key-value store's nodes.
add_library(wherry_kv_keeper STATIC kv/keeper/keeper.cpp kv/keeper/keeper_decide.cpp
            kv/keeper/keeper_recover.cpp kv/keeper/keeper_status.cpp kv/keeper/keeper_lanes.cpp kv/keeper/keeper_admit.cpp kv/keeper/lane_grants.cpp
            kv/keeper/store_thread.cpp
            kv/keeper/driver.cpp kv/keeper/driver_core.cpp kv/keeper/keeper_server.cpp kv/keeper/file_store.cpp
            kv/keeper/driver_client.cpp kv/keeper/etcd.cpp kv/keeper/served_node.cpp kv/keeper/static_roll.cpp)
target_link_libraries(wherry_kv_keeper PUBLIC wherry_kv_control PRIVATE nlohmann_json::nlohmann_json PkgConfig::HTTPLIB)

# One program for a node and for the keeper.
add_library(wherry_kv_process STATIC kv/process/node_process.cpp kv/process/keeper_process.cpp)
target_link_libraries(wherry_kv_process PUBLIC wherry_kv wherry_kv_udp wherry_kv_xdp wherry_kv_keeper)
add_executable(wherry-kv kv/process/main.cpp kv/process/switch_process.cpp)
target_link_libraries(wherry-kv PRIVATE wherry_kv_process CLI11::CLI11)
wherry_sanitizer_shim(wherry-kv)

# Tests only: whole kv clusters in virtual time.
add_library(wherry_kv_sim STATIC EXCLUDE_FROM_ALL kv/sim/network.cpp kv/sim/wire.cpp kv/sim/pcap.cpp kv/sim/history.cpp kv/sim/workload.cpp)
target_link_libraries(wherry_kv_sim PUBLIC wherry_base)
add_library(wherry_kv_cluster STATIC EXCLUDE_FROM_ALL kv/sim/machine.cpp kv/sim/software_machine.cpp kv/sim/store_client.cpp kv/sim/keeper_seat.cpp kv/sim/lane_seat.cpp kv/sim/cluster.cpp
            kv/sim/broken_return.cpp kv/sim/trouble.cpp kv/sim/failover_testing.cpp kv/sim/cluster_program.cpp)
target_link_libraries(wherry_kv_cluster PUBLIC wherry_kv_sim wherry_kv wherry_kv_client wherry_kv_keeper PRIVATE CLI11::CLI11)

# ---------------------------------------------------------------- tests, beside what they test
wherry_test(kv_frame_test SOURCES kv/frame_test.cpp kv/frame_io_test.cpp LIBS wherry_kv)
wherry_test(kv_node_test SOURCES kv/node/node_test.cpp kv/node/node_epoch_test.cpp kv/node/node_version_test.cpp
            kv/node/node_candidates_test.cpp kv/node/node_backoff_test.cpp LIBS wherry_kv)
wherry_test(kv_random_test SOURCES kv/node/node_random_test.cpp kv/node/random_testing.cpp LIBS wherry_kv)
wherry_test(kv_udp_port_test SOURCES kv/udp_port_test.cpp LIBS wherry_kv_udp)
wherry_test(kv_xdp_test SOURCES kv/neighbour_test.cpp kv/xdp_program_test.cpp kv/xdp_port_test.cpp kv/xdp_ports_test.cpp
            LIBS wherry_kv_xdp wherry_kv_udp)
wherry_test(kv_xdp_switch_test SOURCES kv/xdp_switch_test.cpp LIBS wherry_kv_xdp)
wherry_test(kv_receive_test SOURCES kv/process/receive_test.cpp LIBS wherry_kv wherry_kv_udp)
wherry_test(kv_process_test SOURCES kv/process/process_test.cpp LIBS wherry_kv_process)
wherry_test(kv_client_core_test SOURCES kv/client/core_test.cpp kv/client/core_retry_test.cpp
            kv/client/core_network_test.cpp kv/client/core_lanes_test.cpp LIBS wherry_kv_client)
wherry_test(kv_lane_session_test SOURCES kv/client/lane_session_test.cpp LIBS wherry_kv_client wherry_kv_keeper wherry_kv_control)
wherry_test(kv_udp_client_test SOURCES kv/client/udp_client_test.cpp LIBS wherry_kv_client THREADS)
if(TARGET kv_udp_client_test)  # the C half of the test is C99 with warnings of its own: those of the house are for C++
  add_library(kv_c_api_test_c OBJECT kv/client/c_api_test.c)
  set_target_properties(kv_c_api_test_c PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(kv_c_api_test_c PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_include_directories(kv_c_api_test_c PRIVATE "${CMAKE_SOURCE_DIR}/include")
  target_sources(kv_udp_client_test PRIVATE $<TARGET_OBJECTS:kv_c_api_test_c>)
endif()
wherry_test(kv_sim_test SOURCES kv/sim/network_test.cpp kv/sim/wire_test.cpp kv/sim/history_test.cpp kv/sim/reference_test.cpp
            kv/sim/reference_testing.cpp LIBS wherry_kv_sim nlohmann_json::nlohmann_json)
wherry_test(kv_cluster_test SOURCES kv/sim/cluster_test.cpp LIBS wherry_kv_cluster)
wherry_test(kv_keeper_test SOURCES kv/keeper/configuration_test.cpp kv/keeper/control_test.cpp kv/keeper/driver_test.cpp
            kv/keeper/keeper_server_test.cpp kv/keeper/static_roll_test.cpp kv/keeper/file_store_test.cpp kv/cluster_file_test.cpp LIBS wherry_kv_keeper nlohmann_json::nlohmann_json)
wherry_test(kv_keeper_simulation_test SOURCES kv/keeper/keeper_simulation_test.cpp LIBS wherry_kv_keeper TIMEOUT 300)
wherry_test(kv_etcd_test SOURCES kv/keeper/etcd_test.cpp
            LIBS wherry_kv_keeper nlohmann_json::nlohmann_json PkgConfig::HTTPLIB OpenSSL::SSL OpenSSL::Crypto)
wherry_fuzz(frame_io_fuzz SOURCES kv/frame_io_fuzz.cpp kv/frame_io.cpp LIBS wherry_base)
wherry_fuzz(client_fuzz SOURCES kv/client/client_fuzz.cpp LIBS wherry_kv_client)
wherry_fuzz(kv_control_fuzz SOURCES kv/keeper/control_fuzz.cpp kv/keeper/control.cpp kv/keeper/configuration.cpp
            LIBS wherry_base nlohmann_json::nlohmann_json)
wherry_fuzz(kv_cluster_file_fuzz SOURCES kv/cluster_file_fuzz.cpp kv/cluster_file.cpp kv/keeper/configuration.cpp
            LIBS wherry_base tomlplusplus::tomlplusplus)
