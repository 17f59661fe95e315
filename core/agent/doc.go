// Package agent is what an agent is to those who give it tasks.
//
// An [Agent] is one agent behind a connection of its own: a child process that speaks some
// dialect, or a remote. A host gives it a [Turn] for each task: package host where the hub is in
// the same process, the client end of a dialect where it is not.
//
// [Tasks] runs the tasks that the client end of a dialect gets: a bounded number at once, each
// cancelled by its id. [Leave] lets them end before the agent leaves.
package agent
