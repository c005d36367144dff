"""How large a scenario is."""
import dataclasses

import cluster


@dataclasses.dataclass(frozen=True)
class Size:
    rate: int  # gathers a second
    deadline_ms: int
    fault_seconds: float  # how long a fault lasts: longer than a deadline
    calm_seconds: float  # and the time after it
    quiet_seconds: int  # without a failure are a recovery
    tail_seconds: int  # how long latencies are measured, healthy and not; 0: they are not
    kills: int
    rude_clients: int  # one after another, in small groups
    rude_crowds: int  # how often 10,000 come at once
    callers: int  # at once
    many_servers: int  # of V4.1's true layout
    preset: tuple  # of `engramctl make-checkpoint`; empty: a golden checkpoint
    scale_preset: tuple = ()  # likewise, of clusters that grow and shrink; empty: the same checkpoint
    scale_flags: tuple = ()  # their servers', with values

    def make_checkpoint(self, directory):
        if not self.preset:
            return cluster.copy_golden_checkpoint("tiny", directory)
        cluster.engramctl("make-checkpoint", *self.preset, "--out", directory / "checkpoint", seconds=600)
        return directory / "checkpoint"

    def make_scale_checkpoint(self, directory, checkpoint):
        if not self.scale_preset:
            return checkpoint
        target = directory / "scale"
        cluster.engramctl("make-checkpoint", *self.scale_preset, "--out", target, "--no-manifest", seconds=600)
        cluster.engramctl("manifest", target, "--partition-rows", 2048, seconds=600)
        return target


# A few seconds each, for ctest on a machine that does other things too.
SHORT = Size(rate=150, deadline_ms=1000, fault_seconds=1.5, calm_seconds=0.2, quiet_seconds=1, tail_seconds=0,
             kills=10, rude_clients=10000, rude_crowds=0, callers=50, many_servers=4, preset=())
QUICK = Size(rate=1000, deadline_ms=2000, fault_seconds=5, calm_seconds=3, quiet_seconds=3, tail_seconds=20,
             kills=10, rude_clients=10000, rude_crowds=3, callers=200, many_servers=16,
             preset=("--preset", "v41-mini", "--vocab-size", 4000, "--seed", 1),
             # 1 GB in 1,880 partitions. Servers and load share a machine, perhaps of two cores, on which every 2 MiB
             # page that the kernel clears holds gathers up: what moves is spread over some time.
             scale_preset=("--preset", "v41-mini", "--vocab-size", 80000, "--seed", 1),
             scale_flags=(("--load-threads", 1), ("--move-mb-per-second", 12)))
# At least 100,000 samples of each latency.
FULL = dataclasses.replace(QUICK, fault_seconds=20, tail_seconds=110, rude_clients=100000)
