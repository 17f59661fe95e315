// Package otlp exports the spans of tasks to a collector, by OTLP over HTTP.
//
// An [Exporter] is the tracer of a hub. A task that is sampled and has ended goes to a queue by its
// id; one goroutine reads its events, makes its spans and sends them in batches. No task waits for
// any of this: what the queue has no room for, and what the collector does not take, is dropped and
// counted as traces.dropped, in tasks.
package otlp
