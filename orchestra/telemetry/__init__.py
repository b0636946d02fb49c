"""Telemetry: what runs do, told to people's own tools. Nothing here can fail or hold up a run.

Two sinks take notices on the loop's thread and hand them to a thread of their own:

- `sink.TelemetrySink` makes OpenTelemetry spans and metrics, written as OTLP lines under
  `outputs/<run>/telemetry/` and, where a collector is named, sent to it;
- `journal.JournalSink` writes `outputs/<run>/events.jsonl`, a line for every turn.

The OpenTelemetry libraries are loaded only when something is sent: they cost more than a short run.
"""
