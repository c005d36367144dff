"""All scenarios, in the order in which `run` takes them."""
import full_size
import moving_deaths
import network
import outages
import overload
import readiness
import replica_faults
import rude_clients
import scale
import silence
import starts
import views
import workers

ALL = {scenario.__name__: scenario for scenario in (
    replica_faults.healthy, replica_faults.slow, replica_faults.stopped, replica_faults.throttled,
    replica_faults.stalled, replica_faults.half_open, replica_faults.resets, replica_faults.errors,
    replica_faults.flipped, replica_faults.liar, outages.killed, outages.alone, silence.swallowed,
    silence.swallowed_alone, silence.silenced, network.cut, network.cut_alone, overload.overload,
    workers.workers, workers.worker_stopped, workers.worker_flipped, readiness.worker_unready,
    rude_clients.half_sent, rude_clients.crowd, rude_clients.too_many,
    scale.scale_file, scale.scale_dns, views.views_differ, views.dns_lies, moving_deaths.killed_moving,
    moving_deaths.killed_taker, full_size.full_size, starts.first_start, starts.rolling, starts.impatient)}
