// Package remote makes the tasks of other hubs of a cluster those of this one: its readers read them, its clients
// command them, and its agents get them.
//
// The hub that has an agent's connection owns the agent's tasks. Of the tasks of others this hub has copies
// ([task.Task.IsRemote]), which get what their owners have stored. A task of which nothing was said yet may be
// transferred: its owner hands a copy to another hub, and stores one record that names it (transfer.go). That hub
// stores the copy, and runs the task once the record is stored (accept.go). The tasks of a hub that is gone end, or go
// on here, in the hands of the one that has taken it over (takeover.go); copies get from the journal what became of
// them (settle.go, find.go).
//
// [Hubs] implements [hub.Remote], which is all that the engine knows of this, and [rpc.Peers]; the frames between hubs
// are [Links]. What Hubs know is guarded by the lock of the engine, but for which hubs there are.
package remote
