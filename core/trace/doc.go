// Package trace makes spans of tasks: it decides at the door in which trace a task is, and makes
// its spans of its events once it has ended. It opens no socket and knows no exporter.
//
//	[caller's span]                      from the traceparent of the call
//	└─ invoke_agent shout                the task, from opened to its end
//	   ├─ execute_tool grep              a tool call that the agent reported
//	   └─ execute_tool agent_ask         a tool of the hub that opens a task
//	      └─ invoke_agent reviewer       that task
//
// The ids are in the event opened, and so in the journal: a task that a kill cut off has its span
// after the restart, and what agents ask in other dialects is in the same tree. Ids of tool calls
// are derived from that of the task and of the call, so that a task below one knows its parent
// before the span is made.
//
// Names follow the conventions of OpenTelemetry for generative AI as of 2026-11-22, which are
// still in development: they are all in names.go.
package trace
