// Package cluster knows the hubs of a cluster: which are alive, which agents each has, and who
// has taken over whom.
//
// A [Cluster] is the view of one hub. The engine gives it [Settings] and a [Bus], runs it, and
// tells it of its own agents; the Cluster tells the engine of those of other hubs:
//
//	index, err := cluster.TakeIndex(ctx, claims, "a", false) // for good, before the first start
//	c, err := cluster.New(cluster.Settings{Life: journal.Life(), Index: index, Bus: bus, Claims: claims, Callbacks: ...})
//	go c.Run(ctx)                                          // until ctx ends: then it has left
//
//	err = c.Claim(ctx, card.ID, connection, principal)     // before an agent joins; may wait
//	c.Put(entry)                                           // it has joined, or changed
//	c.SetLoad(card.ID, load)                               // with every task: coalesced
//	c.Remove(card.ID); c.Unclaim(card.ID, connection, principal)
//
//	c.HasQuorum()                                          // may new work be taken?
//	c.Owner(index)                                         // who has the tasks of that index now?
//	c.Doubt(name)                                          // a request found nobody there
//
// All methods but Claim and Forget return at once and may be called with the engine's locks held.
// [Callbacks] are called one at a time, from a goroutine of the Cluster that holds no lock. The
// engine is told the difference between what it knows and what there is: a slow engine misses
// states in between, and delays nothing but itself.
//
// # Who is alive
//
// Each hub sends a beat every 250 ms: what it is, which hubs it hears, and the latest beat of each. A
// hub is suspected after 600 ms of silence, or at once if a request finds no responder, and is asked.
// A process that has ended has closed its connections: the hub is gone if two requests find no
// responder. One that is busy, or stands still, is silent and costs nothing but time: the hub is gone
// after 3.5 s of silence. In both cases it must be silent for one other hub, too: a broken
// connection between two of them is no death. What this process did not listen to, since it stood
// still itself, is no silence of others. A life that stands in the journal, but that no hub has heard
// yet, is given 8 s; one that reads a long journal says so meanwhile ([Cluster.Announce]).
//
// A hub has a quorum while a majority of the known hubs, itself included, has heard a beat of it that
// is younger than 3.3 s, and answers: so it has none when it is taken over for its silence, also if
// old beats of others reach it late. Without a quorum its view is stale, and it judges no other hub.
// The cluster is formed once three hubs have met, or if the journal knows so many; on an external bus
// a hub that hears itself through it has a quorum.
//
// A hub that is gone is taken over by [Callbacks.TakeOver]. The hubs try in turns; the store
// decides who wins. Who has taken over whom stands in the beats, so that all learn it, and a hub
// whose own life was taken over is told so ([Callbacks.Deposed]).
//
// # Which agents there are
//
// Each hub numbers the changes of its part of the roster and sends them as deltas; its beats have
// the version and a digest. A hub that misses one, finds another digest, or is new asks for the
// whole, page by page. The agents of a hub vanish with it, in one step.
//
// # Whose an agent's id is
//
// The claim of an id names the life and the connection that have it. It is free once that life is
// over and a majority knows it. An agent that comes to another hub while the old one still believes
// in it takes the claim along if both connections are of one authenticated principal; otherwise the
// engine of the old hub is asked, as it is for two connections of its own ([Callbacks.Release]).
// The agent has left the old hub before Claim returns; until then the claim names the old holder
// too, so that whoever takes it next asks that one as well.
package cluster
