package nats

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Wait says which hubs of its cluster a hub waits for before it can store anything.
type Wait struct {
	// Here is how many hubs are here, this one included, Of how many there are, and Needed how many are
	// needed.
	Here, Of, Needed int
	// First says that this hub has stored nothing yet: then the cluster starts for the first time, and
	// needs all its hubs.
	First bool
	// Absent says which hubs are not heard, or why, as far as that is known: "it has not heard b, c".
	Absent string
}

// String returns what is waited for, without Absent: "waiting for a majority: 1 of 3 hubs is here, 2 are
// needed". Once enough are here, their servers elect a leader.
func (w Wait) String() string {
	if w.Here >= w.Needed {
		return fmt.Sprintf("waiting for an election, which takes up to 10 s: %d of %d hubs are here", w.Here, w.Of)
	}
	what, are := "a majority", "are"
	if w.First {
		what = "the first start of a cluster"
	}
	if w.Here == 1 {
		are = "is"
	}
	return fmt.Sprintf("waiting for %s: %d of %d hubs %s here, %d are needed", what, w.Here, w.Of, are, w.Needed)
}

// Full returns String and Absent.
func (w Wait) Full() string {
	if w.Absent == "" {
		return w.String()
	}
	return w.String() + "; " + w.Absent
}

// waiting tells what a hub waits for while it opens its journal. Only the goroutine of [Open] uses it.
type waiting struct {
	begin, told time.Time
	last        Wait
	look, greet time.Time // when to look for the hubs again, and to greet those of the settings
	tell        func(Wait)
	cluster     *Cluster
	dir         string
	// silent are the addresses at which nobody answered the last greeting, and mistake is what it found
	// that has to be changed: a hub with another secret, or of another cluster.
	silent  []string
	mistake string
}

const (
	// waitLook is the time between two looks at who is here.
	waitLook = 250 * time.Millisecond
	// waitGreet is the time between two greetings of all.
	waitGreet = 5 * time.Second
	// waitWarn is after how long a wait is one to warn of: hubs that are started together wait for each
	// other for a moment.
	waitWarn = 3 * time.Second
	// waitTold is the time between two lines of the log about the same wait.
	waitTold = 30 * time.Second
)

// tellWait says what the hub waits for, whenever that changes and from time to time.
func (j *Journal) tellWait() {
	w, now := j.waiting, time.Now()
	if w == nil || now.Before(w.look) {
		return
	}
	w.look = now.Add(waitLook)
	is, known := j.wait()
	if !known {
		return
	}
	w.meet(is, now)
	is.Absent = cmp.Or(w.mistake, is.Absent, w.unheard())
	if is != w.last && w.tell != nil {
		w.tell(is)
	}
	waited := now.Sub(w.begin)
	warn := waited >= waitWarn && (w.told.Sub(w.begin) < waitWarn || now.Sub(w.told) >= waitTold)
	level := slog.LevelInfo
	switch {
	case is != w.last && w.mistake != "":
		level = slog.LevelError
	case warn:
		level = slog.LevelWarn
	case is == w.last:
		return
	}
	w.last, w.told = is, now
	j.log.Log(context.Background(), level, is.Full()+"; until then nothing can be stored, and everybody is refused", "waited", waited.Round(time.Second).String())
}

// wait returns which hubs are here, once the server knows how many there are.
func (j *Journal) wait() (w Wait, known bool) {
	here := j.here()
	s, err := j.server.Jsz(nil)
	if err != nil || s.Meta == nil {
		return w, false
	}
	w.Here, w.Of, w.Needed = len(here), max(s.Meta.Size, len(here)), s.Meta.QuorumNeeded
	if w.First = j.storedNothing(); w.First {
		w.Needed = w.Of
	}
	w.Absent = j.waiting.absent(s.Meta.Replicas, here, j.server.Name())
	return w, true
}

// storedNothing reports whether the server has no part in the log of the servers yet. Votes of such servers
// make no majority, only all votes do.
func (j *Journal) storedNothing() bool {
	status := j.server.Raftz(&server.RaftzOptions{AccountFilter: server.DEFAULT_SYSTEM_ACCOUNT})
	if status == nil {
		return false
	}
	for _, g := range (*status)[server.DEFAULT_SYSTEM_ACCOUNT] {
		if g.PIndex > 0 {
			return false
		}
	}
	return true
}

// meet greets the hubs of the settings if others are here than at the last time, or that was a while ago.
func (w *waiting) meet(is Wait, now time.Time) {
	if is.Here == w.last.Here && now.Before(w.greet) {
		return
	}
	w.greet = now.Add(waitGreet)
	others := slices.DeleteFunc(slices.Clone(w.cluster.Peers), func(p string) bool { return p == w.cluster.own() })
	greeted, err := w.cluster.greet(context.Background(), others)
	if err != nil {
		return // the server could not have started
	}
	w.silent, w.mistake = nil, ""
	for _, g := range greeted {
		mistake := g.mistake(w.cluster)
		if w.mistake = cmp.Or(w.mistake, mistake); g.err != nil && mistake == "" {
			w.silent = append(w.silent, g.at)
		}
	}
}

// unheard says at which addresses nobody answers.
func (w *waiting) unheard() string {
	if len(w.silent) == 0 {
		return ""
	}
	return "it has heard nobody at " + strings.Join(w.silent, ", ")
}

// absent says which servers are not here, by the names of their hubs as far as they are known.
func (w *waiting) absent(replicas []*server.PeerInfo, here map[string]bool, own string) string {
	known := namesStored(streamsIn(filepath.Join(w.dir, storeDir)))
	var names []string
	for _, r := range replicas {
		name := known[r.Peer]
		if peerID(r.Name) == r.Peer {
			name = r.Name
		}
		if name != "" && !here[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "it has not heard " + strings.Join(names, ", ")
}

// namesStored returns the hubs whose tasks are in a directory of streams, by the ids of their servers.
func namesStored(streams string) map[string]string {
	entries, _ := os.ReadDir(streams) // there is none before the first start
	names := map[string]string{}
	for _, e := range entries {
		if hub, is := strings.CutSuffix(e.Name(), tasksSuffix); is {
			names[peerID(hub)] = hub
		}
	}
	return names
}

// waitForCluster waits until the servers of the cluster have a leader: a majority of them is
// connected.
func (j *Journal) waitForCluster(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if s, err := j.server.Jsz(nil); err == nil && s.Meta != nil && s.Meta.Leader != "" {
			return nil
		}
		j.tellWait()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for a majority of the cluster: %w", context.Cause(ctx))
		}
	}
}

// CannotStore reports whether too few embedded servers of the cluster are here to store anything, so that
// this hub could only wait for others to be started.
func (j *Journal) CannotStore() bool {
	if j.server == nil || !j.clustered {
		return false
	}
	s, err := j.server.Jsz(nil)
	return err == nil && s.Meta != nil && len(j.here()) < s.Meta.QuorumNeeded
}

// here returns the names of the servers that are here, with the own one.
func (j *Journal) here() map[string]bool {
	here := map[string]bool{j.server.Name(): true}
	if routes, err := j.server.Routez(nil); err == nil {
		for _, r := range routes.Routes {
			if r.RemoteName != "" {
				here[r.RemoteName] = true
			}
		}
	}
	return here
}
