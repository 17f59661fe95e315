// Package pack holds the packs, which are programs that offer tools, and the calls that wait
// for them.
//
// A [Registry] gives each call to the pack that offers the tool. Every call has exactly one
// result: the answer of the pack, or a Fault when the call is refused, when the pack leaves
// or does not answer in time, or when the hub stops. A later answer goes to the caller's
// [Late], if it has one. A pack is told when nobody waits any more for a call that it took.
//
// The Registries of a cluster tell each other of their packs, see [Word]: each offers the tools of all, and
// gives calls of a pack elsewhere to a [Peer] that passes them on.
//
//	caller ── Call ──▶ Registry ── Execute ──▶ pack
//	caller ◀─ Returned ── Registry ◀── Answer ── pack
//
// A Registry calls its peers with its lock held, and nothing else, so callers may hold locks
// of their own.
//
// A peer may leave while it registers. After Provide or Watch the caller checks
// whether the peer has left, and if so calls [Registry.Leave], which may be called more
// than once. A peer is marked as left before Leave is called for it.
package pack
