"""Names that the list of ``ctl metrics`` had before it took those of the exposition.

The list has both for one release; then this module goes.
"""

from collections.abc import Mapping
from typing import Final

OLD_NAMES: Final[Mapping[str, str]] = {
    "spectrod_subscriptions": "subscribers",
    "spectrod_unsendable_messages_total": "unsendable",
    "spectrod_history_bytes": "history",
    "spectrod_requested_recordings": "recordings",
    "spectrod_refused_connections_total": "refused_connections",
    "spectrod_connections": "connections",
    "spectrod_connections_max": "connections_max",
    "spectrod_connection_closings_total": "listen_closings",
    "spectrod_control_requests_total": "control",
    "spectrod_source_up": "up",
    "spectrod_source_sample_rate_hertz": "sample_rate",
    "spectrod_source_samples_total": "samples",
    "spectrod_source_analysed_samples_total": "analysed_samples",
    "spectrod_source_rows_total": "frames",
    "spectrod_source_messages_total": "messages",
    "spectrod_source_heartbeats_total": "heartbeats",
    "spectrod_source_overflows_total": "overflows",
    "spectrod_source_overruns_total": "overruns",
    "spectrod_source_dropped_rows_total": "dropped_frames",
    "spectrod_source_gaps_total": "gaps",
    "spectrod_source_gap_samples_total": "gap_samples",
    "spectrod_source_clipped_samples_total": "clipped_samples",
    "spectrod_source_ring_peak_ratio": "ring_peak",
    "spectrod_source_engine_failures_total": "engine_failures",
    "spectrod_source_capture_restarts_total": "capture_restarts",
    "spectrod_source_capture_attempts_total": "capture_attempts",
    "spectrod_source_suspected_losses_total": "suspected_losses",
    "spectrod_source_suspected_samples_total": "suspected_samples",
    "spectrod_source_left_out_files_total": "left_out_files",
    "spectrod_source_capture_jitter_seconds": "capture_jitter",
    "spectrod_recording_up": "recorder_up",
    "spectrod_recording_rows_total": "recorded_rows",
    "spectrod_recording_samples_total": "recorded_samples",
    "spectrod_recording_lost_rows_total": "recorder_lost_rows",
    "spectrod_recording_lost_samples_total": "recorder_lost_samples",
    "spectrod_recording_written_bytes_total": "recorder_written",
    "spectrod_recording_kept_files": "recorder_kept_files",
    "spectrod_recording_kept_bytes": "recorder_kept",
    "spectrod_recording_disk_free_bytes": "recorder_free",
    "spectrod_recording_triggers_total": "recorder_triggers",
}
