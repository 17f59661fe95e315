// Package client makes an agent of the hub out of a program that speaks the Agent Client
// Protocol of editors (agentclientprotocol.com, version 1), such as Gemini CLI, Claude Code,
// Codex or Goose. It opens no process and no socket: [Options.Dial] does.
//
// An [Agent] runs one connection at a time. A thread of the hub is a session of the agent, a
// task is a prompt in it. The reader loop of the connection hands everything that belongs to a
// turn to the queue of the turn, in the order in which it came: updates, permission requests and
// at last the answer to the prompt. The goroutine of the task reports from the queue, so that
// neither a slow hub nor another task delays the reader, and the end overtakes nothing.
//
//	stdout ─▶ reader ─┬─▶ queue of a turn ─▶ Work ─▶ Turn.Report
//	                  └─▶ queue of another turn …
//	stdin  ◀─ link ◀── prompts, cancels, decisions
//
// What the hub has no words for is told as foreign: see package wire.
package client
