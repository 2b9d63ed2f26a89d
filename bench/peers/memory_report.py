"""Makes the tables of `memory`: the cost of the models in each engine. Each figure is the smallest of an engine's
samples. MB are 10^6 bytes."""

from report import table

MAPPED = 0.01  # share of the growth from which memory mapped from the model's files is mentioned


def parts(memory):
    """Returns the bytes that belong to the model, without pages of the engine's libraries that the model touches
    first."""
    return memory["anonymous"] + memory["mapped"]


def ready_s(sample):
    return sample["load_s"] + sample["first_s"]


def figures(record):
    """Returns the figures, in bytes and seconds, of the engines in a record that took part."""
    out = {}
    for engine, said in record["engines"].items():
        if samples := said.get("samples"):
            smallest = min(samples, key=lambda one: parts(one["grown"]))
            grown = smallest["grown"]
            held = min(parts(one["held"]) for one in samples)
            out[engine] = dict(
                grown=parts(grown),
                mapped=grown["mapped"],
                first_batch=parts(grown) - parts(smallest["loaded"]),
                held=held,
                peak=min(one["peak"] for one in samples),
                ready_s=min(map(ready_s, samples)),
                per_node=parts(grown) / record["nodes"],
                held_per_node=held / record["nodes"],
            )
    return out


def per_node_text(one):
    return f"{one['per_node']:.1f} / {one['held_per_node']:.1f}"


def grown_text(one):
    mapped = f" ({one['mapped'] / 1e6:.2f} mapped)" if one["mapped"] > MAPPED * one["grown"] else ""
    return f"{one['grown'] / 1e6:.2f}{mapped}"


def milliseconds(seconds):
    return f"{seconds * 1e3:.1f}" if seconds < 0.1 else f"{seconds * 1e3:.0f}"


def engines_table(records, text):
    engines = list(dict.fromkeys(engine for record in records for engine in figures(record)))
    body = []
    for record in records:
        found = figures(record)
        body.append([record["model"]] + [text(found[name]) if name in found else "-" for name in engines])
    return table(["model", *engines], body) + "\n"


def forestvm_row(record):
    """Makes the table of model and program files, and the times from each of them until ready."""
    row = [record["model"], f"{record['nodes']:,}", f"{record['file_bytes'] / 1e6:.2f} ({record['file']})"]
    said, found = record["engines"].get("forestvm", {}), figures(record).get("forestvm")
    if not found:
        return row + ["-"] * 8
    compile_s = min(said["compile_s"])
    return row + [
        f"{said['program_bytes'] / 1e6:.2f}",
        f"{said['program_bytes'] / record['file_bytes']:.2f}",
        f"{said['node_bytes'] / record['nodes']:.1f}",
        f"{found['per_node']:.1f}",
        f"{found['first_batch'] / 1e6:.2f}",
        milliseconds(compile_s),
        milliseconds(found["ready_s"]),
        milliseconds(compile_s + found["ready_s"]),
    ]


def left_out(records):
    reasons = {}
    for record in records:
        for engine, said in record["engines"].items():
            if "left_out" in said:
                reasons.setdefault((engine, said["left_out"]), []).append(record["model"])
    if not reasons:
        return ""
    body = [[engine, reason, ", ".join(names)] for (engine, reason), names in reasons.items()]
    return "## Left out\n\n" + table(["engine", "why", "models"], body) + "\n"


def report(records):
    head = [
        "model",
        "nodes",
        "model file, MB",
        ".fvm, MB",
        ".fvm / model file",
        ".fvm's node bytes / node",
        "grown, bytes / node",
        "of it first batch, MB",
        "compile, ms",
        ".fvm to ready, ms",
        "model file to ready, ms",
    ]
    return (
        "## forestvm: model file, program file, ready to predict\n\n"
        + table(head, map(forestvm_row, records))
        + "\n## Bytes a node: that the process grew by / that are left when free memory went back to the system\n\n"
        + engines_table(records, per_node_text)
        + "## MB that the process grew by, and what of it is mapped from the model's file\n\n"
        + engines_table(records, grown_text)
        + "## MB that are left when free memory went back to the system\n\n"
        + engines_table(records, lambda one: f"{one['held'] / 1e6:.2f}")
        + "## MB at the peak of loading\n\n"
        + engines_table(records, lambda one: f"{one['peak'] / 1e6:.2f}")
        + "## ms from the model's file (forestvm: the .fvm) to the first batch's answers\n\n"
        + engines_table(records, lambda one: milliseconds(one["ready_s"]))
        + left_out(records)
    )
