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
//	err = c.Claim(ctx, entry)                              // before an agent joins; may wait
//	c.Put(entry)                                           // it has joined, or changed
//	c.SetLoad(card.ID, load)                               // with every task: coalesced
//	c.Unclaim(card.ID, entry.Connection)                   // it has left
//
//	c.HasQuorum()                                          // may new work be taken?
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
// # Which agents there are, and where
//
// Each agent has one entry in the store, at its id: which connection of which life has the id, and its
// card. All hubs watch the entries ([Claims]). An entry is written on the condition of what was there,
// so it is the claim of the id too. The agents of a hub are shown while it is there: they vanish with
// it, in one step. What the store has of a hub and should not have, since an acknowledgement was lost,
// is written again within a second. How much agents have to do is told on the bus, which may lose it:
// changes at once, and page by page all that are not idle.
//
// An agent that comes to another hub takes its entry once the old hub has given it up: it has closed
// its connection and has said so. It has to if both connections are of one authenticated principal;
// else its engine is asked, as it is for two connections of its own ([Callbacks.Release]). The entries
// of a life that is over are free. Whoever takes a life over removes them.
package cluster
