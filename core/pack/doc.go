// Package pack holds the packs: programs that offer tools, and the calls that wait for
// them.
//
// A [Registry] knows which tools there are and gives each call to the pack whose tool it
// is. Every call has exactly one result: what the pack answers, or a Fault when the call is
// refused, when the pack leaves or does not answer in time, or when the hub stops. An
// answer that comes after that goes to the caller's [Late], if it has one.
//
//	caller ── Call ──▶ Registry ── Execute ──▶ pack
//	caller ◀─ Returned ── Registry ◀── Answer ── pack
//
// The peers of a Registry are told with its lock held. It calls nothing else while it holds
// it, so callers may hold locks of their own.
//
// A peer may leave while it registers. Whoever calls Provide or Watch for a peer checks
// afterwards whether it has left, and if so calls [Registry.Leave], which may be called
// more than once. A peer is marked as left before Leave is called for it.
package pack
