// Package demo has the agents of the demo: one of each dialect, and clients of the dialects that
// only ask. Each can ask every other, once or for as long as somebody watches.
package demo
