# SPDX-License-Identifier: Apache-2.0
"""Makes the rows of `wherry bench bypass` from program output: our simulated core, the model of the paper's core,
Yosys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wherry.bypass.bench.schema import KNOWN, RTL, known_text
from wherry.errors import BenchError

RTL_SCHEMA = "wherry.bypass_rtl_bench/1"


TOPOLOGIES = {"intel_xeon_4110": "intel", "amd_epyc_7402": "amd"}
"""Names of the PCIe roots in sim/pcie, and the names that figures use."""


def _topology(given: Mapping[str, Any]) -> str:
    name: str = given["topology"]
    return TOPOLOGIES.get(name, name)


def _lost(row: Mapping[str, Any]) -> int:
    found = row["frames"]["in"] - row["frames"]["out"]
    return max(int(found), 0)


def rtl_rows(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows by experiment. Raises BenchError if it is not the output of bypass_rtl_bench."""
    if document.get("schema") != RTL_SCHEMA:
        raise BenchError(f"bypass_rtl_bench wrote schema {document.get('schema')!r}; {RTL_SCHEMA} is expected")
    make = {"rates": _rtl_rate, "latency": _rtl_latency, "curve": _rtl_point, "overload": _rtl_overload}
    names = {group: name for name, group in RTL.items()}
    found: dict[str, list[dict[str, Any]]] = {}
    for row in document["rows"]:
        if row["group"] in make:
            found.setdefault(names[row["group"]], []).append(make[row["group"]](row))
        elif row["group"] == "cycles":
            found["rtl_cycles"] = _rtl_cycles(row)
    found["rtl_core"] = [_rtl_core(document["core"])]
    return found


def _rtl_core(core: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "clock_mhz": core["clock_mhz"], "queue_pairs": core["queue_pairs"], "slots": core["rx_entries"],
        "tx_descriptors": core["tx_entries"], "pack_bytes": core["pack_bytes"],
    }  # fmt: skip


def _rtl_rate(row: Mapping[str, Any]) -> dict[str, Any]:
    given, rate, packet = row["given"], row["rate"], row["per_packet"]
    return {
        "name": row["name"], "mbits": given["mbits"], "size": given["bytes"], "way": given["way"], "nic": given["nic"],
        "card_link": given["card_link"], "mpps": rate["packets_per_s"] / 1e6, "share_of_line": rate["share_of_line"],
        "bound_mpps": rate["link_packets_per_s"] / 1e6, "share_of_link": rate["share_of_link"], "lost": _lost(row),
        "tails_per_packet": packet["tails"], "bytes_in": packet["link_bytes_in"],
        "bytes_out": packet["link_bytes_out"], "flow_control_bytes": packet["flow_control_bytes"],
    }  # fmt: skip


def _rtl_latency(row: Mapping[str, Any]) -> dict[str, Any]:
    given, latency, packet = row["given"], row["latency_us"], row["per_packet"]
    paper = {
        "switch": "7.99 us, no loss, 2 tails a packet", "intel": "almost 400 us, 9.90 or 15.79 % lost",
        "amd": "no loss",
    }  # fmt: skip
    topology = _topology(given)
    return {
        "topology": topology, "way": given["way"], "mean_us": latency["mean"], "p99_us": latency["p99"],
        "std_us": latency["std"], "loss": _lost(row) / max(row["frames"]["in"], 1),
        "tails_per_packet": packet["tails"], "requests_per_packet": packet["requests"],
        "published": paper.get(topology, ""),
    }  # fmt: skip


def _rtl_point(row: Mapping[str, Any]) -> dict[str, Any]:
    given = row["given"]
    bytes_ = given["wire_bytes"]
    return {
        "topology": _topology(given), "rate_gbps": given["load"] * given["mbits"] / 1000 * bytes_ / (bytes_ + 20),
        "latency_us": row["latency_us"]["mean"], "loss_percent": 100 * _lost(row) / max(row["frames"]["in"], 1),
        "tails_per_packet": row["per_packet"]["tails"],
    }  # fmt: skip


def _rtl_overload(row: Mapping[str, Any]) -> dict[str, Any]:
    given, frames = row["given"], row["frames"]
    return {
        "name": row["name"], "topology": _topology(given), "way": given["way"],
        "limited_by": row["rate"]["limited_by"], "share_of_limit": row["rate"]["share_of_limit"],
        "dropped_by_nic": sum(frames["nic_rx_dropped"].values()) + sum(frames["nic_tx_dropped"].values()),
        "reordered": frames["reordered"], "lost_uncounted": abs(frames["lost_uncounted"]),
        "mean_us": row["latency_us"]["mean"],
    }  # fmt: skip


def _rtl_cycles(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    paper = {"rx": "7 + bytes / 8", "tx": "2 + bytes / 8"}
    return [
        {"path": path, "least": of["min"], "most": of["max"], "samples": of["samples"],
         "published": paper.get(path, "")}
        for path, of in row["cycles"].items()
    ]  # fmt: skip


def model_rows(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of host_bypassing_bench, with the paper's values beside them."""
    make = {"latency": _latency, "overload": _overload, "tcp": _tcp, "batching": _batching}
    found: dict[str, list[dict[str, Any]]] = {}
    for name in ("latency", "latency_over_time", "rates", "overload", "overload_over_time", "tcp", "batching",
                 "constants"):  # fmt: skip
        if name in document:
            found[name] = [make[name](row) if name in make else dict(row) for row in document[name]]
    return found


def _latency(row: Mapping[str, Any]) -> dict[str, Any]:
    of = {"software": "hb_s1_latency_mostly", "both": "hb_s3_latency_avg", "receive": "hb_s4_rx_latency_avg",
          "transmit": "hb_s4_tx_latency_avg"}[row["scenario"]]  # fmt: skip
    exact = row["scenario"] != "software"
    fitted = row["scenario"] in ("receive", "transmit")
    return dict(row) | {
        "published_us": known_text(of),
        "error_percent": 100 * abs(row["mean_us"] / KNOWN[of]["value"] - 1) if exact else None,
        "mark": "fitted" if fitted else "predicted" if exact else "bound",
    }


def _overload(row: Mapping[str, Any]) -> dict[str, Any]:
    intel = row["topology"] == "intel"
    of = "hb_loss_writeback" if row["writeback"] else "hb_loss_no_writeback"
    # One loss follows from the fitted rate: 8.42 Gbit/s of 9.38. The other depends on the NIC's number of reads in
    # flight, which was chosen after the published value was seen (docs/design/nic-model.md).
    mark = "fitted" if intel else "predicted"
    return dict(row) | {"published_loss_percent": KNOWN[of]["value"] if intel else 0.0, "mark": mark}


def _tcp(row: Mapping[str, Any]) -> dict[str, Any]:
    of = {name: KNOWN[f"hb_t1_{row['topology']}_{name}"]["value"] for name in ("goodput", "latency", "loss")}
    return dict(row) | {
        "published_goodput_gbps": of["goodput"], "published_latency_us": of["latency"],
        "published_loss_percent": of["loss"], "mark": "not modelled" if row["topology"] == "intel" else "predicted",
    }  # fmt: skip


def _batching(row: Mapping[str, Any]) -> dict[str, Any]:
    of = {name: KNOWN[f"hb_t2_b{row['batch']}_{name}"]["value"] for name in ("latency", "std", "out", "in")}
    # The reading one_fetch was chosen after the published latencies of batches were seen
    # (docs/reference/bench-bypass.md, docs/status.md).
    mark = "chosen" if row["reading"] == "one_fetch" and row["batch"] > 1 else "predicted"
    return dict(row) | {
        "published_latency_us": of["latency"], "published_deviation_ns": of["std"], "published_outgoing": of["out"],
        "published_ingoing": of["in"], "mark": mark,
    }  # fmt: skip


def resource_rows(table: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of hdl/resources.json that belong to bypass."""
    return [
        {
            "name": row["name"],
            "parameters": ", ".join(f"{name} = {value}" for name, value in row["parameters"].items()),
            **{key: row[key] for key in ("lut", "lutram", "ff", "uram")},
            "bram36": row["bram36"] + row["bram18"] / 2,
            "levels": row["depth"],
        }
        for row in table
        if row["name"].startswith("bypass_")
    ]


def qemu_row(document: Mapping[str, Any]) -> dict[str, Any]:
    """The row of one run of bypass_qemu."""
    calm: Sequence[Mapping[str, Any]] = [phase for phase in document["phases"] if not phase["may_lose"]]
    return {
        "nic": document["nic"], "qemu": document["qemu"], "frames": sum(phase["sent"] for phase in calm),
        "wrong": document["frames_wrong"], "lost": document["frames_lost"],
        "tx_writebacks": document["tx_writebacks"], "messages_per_frame": document["messages_per_frame"],
        "tails_per_frame": document["tails_per_frame"], "good": document["good"],
    }  # fmt: skip


def guest_row(document: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a file that tools/guest/run.py --json wrote."""
    return {
        "setup_s": document["guest_setup_s"], "frames_while_stopped": document["guest_frames_while_stopped"],
        "frames_wrong": document["guest_frames_wrong"] + (0 if document["good"] else 1),
    }  # fmt: skip


def kv_row(document: Mapping[str, Any]) -> dict[str, Any]:
    """The row of kv behind bypass. docs/reference/bench-bypass.md describes the input."""
    return {name: document[name] for name in ("runs", "linearizable", "read_us", "kv_read_us")}
