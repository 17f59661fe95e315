package nats_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// addresses returns addresses of this machine that are free until the test ends.
func addresses(t testing.TB, n int) (all []string) {
	t.Helper()
	for range n {
		all = append(all, coretest.Address(t))
	}
	return all
}

// member is how a hub of a cluster keeps its journal.
func member(dir, name, secret string, at []string, n int) nats.Options {
	return nats.Options{Dir: dir, Name: name, Cluster: &nats.Cluster{Name: "test", Listen: at[n], Peers: at, Secret: secret}}
}

// formed starts the hubs a, b and c of a cluster. change, if it is not nil, changes the options of
// a.
func formed(t testing.TB, change func(*nats.Options)) map[string]*nats.Journal {
	t.Helper()
	tier.Full(t, "it runs three servers")
	at, names := addresses(t, 3), []string{"a", "b", "c"}
	type started struct {
		name string
		*nats.Journal
		error
	}
	all := make(chan started)
	for n, name := range names {
		o := member(t.TempDir(), name, "open sesame", at, n)
		if name == "a" && change != nil {
			change(&o)
		}
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), watchdog)
			defer cancel()
			j, err := nats.Open(ctx, o)
			all <- started{name, j, err}
		}()
	}
	hubs := map[string]*nats.Journal{}
	for range names {
		s := <-all
		if s.error != nil {
			t.Errorf("hub %s: got %v, want it to start", s.name, s.error)
			continue
		}
		hubs[s.name] = s.Journal
		t.Cleanup(func() { _ = s.Close() })
	}
	if t.Failed() {
		t.FailNow()
	}
	return hubs
}

func TestEmbeddedServersFormACluster(t *testing.T) {
	hubs := formed(t, nil)
	for name, j := range hubs {
		task := core.TaskID(core.NewID())
		// A stream whose leader moves meanwhile takes nothing for a moment: the recorder writes again, too.
		insist(t, func(ctx context.Context) error { return j.Append(ctx, taskRecords(task, 10)...) })
		for other, k := range hubs {
			if events, err := k.ReadOf(t.Context(), name, task, 0, 0); err != nil || len(events) != 3 {
				t.Errorf("hub %s reads that of %s: got %d events and %v, want 3", other, name, len(events), err)
			}
		}
	}
	subscribed(t, hubs["c"].Bus(), "hub.c.ping")
	for got := error(nil); ; {
		if _, got = hubs["a"].Bus().Request(t.Context(), "hub.c.ping", []byte("x")); got == nil {
			break // what c subscribed to takes a moment to be known
		}
	}
	if holder, err := hubs["b"].Claims().Claim(t.Context(), "agent.x", "b", nil); err != nil || holder != "b" {
		t.Errorf("got the holder %q and %v, want b", holder, err)
	}
	if err := hubs["a"].Close(); err != nil {
		t.Errorf("stopping a: got %v, want no error", err)
	}
	begin := time.Now()
	estate := takenOver(t, hubs["b"], journal.Life{Hub: "a", Epoch: 1})
	// Streams that a has led may not have a leader yet.
	insist(t, func(ctx context.Context) error { return estate.Append(ctx, taskRecords("left")...) })
	for _, name := range []string{"b", "c"} {
		insist(t, func(ctx context.Context) error { return hubs[name].Append(ctx, taskRecords("next")...) })
	}
	t.Logf("taken over and written after %s", time.Since(begin))
}

func TestAHubThatJoinsAClusterUnderAnotherNameIsRefused(t *testing.T) {
	dir := t.TempDir()
	task := core.TaskID(core.NewID())
	j, records := open(t, nats.Options{Dir: dir}), taskRecords(task, 1)
	if err := errors.Join(j.Append(t.Context(), records...), j.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first refusal changes nothing
		_, err := nats.Open(t.Context(), member(dir, "a", "open sesame", addresses(t, 3), 0))
		if want := "that of the hub dragoman: start it with that name (--hub-name dragoman)"; err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	j = open(t, nats.Options{Dir: dir})
	whole(t, j, records)
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestAHubThatJoinsAClusterBringsItsJournalAlong(t *testing.T) {
	tier.Full(t, "it runs three servers")
	logs := map[string]journal.Retention{"notes": {}}
	alone := nats.Options{Dir: t.TempDir(), Name: "a", Logs: logs}
	j := open(t, alone)
	want := map[core.TaskID][]journal.Record{}
	for i := range 30 {
		task := core.TaskID(core.NewID())
		want[task] = taskRecords(task, i*10_000)
		if err := j.Append(t.Context(), want[task]...); err != nil {
			t.Fatal(err)
		}
		if err := j.Log("notes").Append(t.Context(), []byte(task)); err != nil {
			t.Fatal(err)
		}
		if err := j.Usage().Append(t.Context(), usage.Record{Task: task, Seq: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = formed(t, func(o *nats.Options) { o.Dir, o.Logs = alone.Dir, logs })["a"]
	if heads := listed(t, j); len(heads) != len(want) {
		t.Errorf("got %d tasks, want %d", len(heads), len(want))
	}
	for _, records := range want {
		whole(t, j, records)
	}
	notes, spent := 0, 0
	if err := j.Log("notes").Replay(t.Context(), func(time.Time, []byte) bool { notes++; return true }); err != nil || notes != len(want) {
		t.Errorf("got %d notes and %v, want %d", notes, err, len(want))
	}
	if err := j.Usage().Replay(t.Context(), func(usage.Record) bool { spent++; return true }); err != nil || spent != len(want) {
		t.Errorf("got %d usage records and %v, want %d", spent, err, len(want))
	}
	if kept, err := filepath.Glob(filepath.Join(alone.Dir, "nats-before-cluster-*")); err != nil || len(kept) != 1 {
		t.Errorf("got %v and %v, want the former store kept", kept, err)
	}
}

// Each of the two may be the one that is right, and a third with its secret may come.
func TestHubsWithDifferentSecretsWaitAndSayThatTheyDiffer(t *testing.T) {
	at := addresses(t, 3)
	differ := func(n int, secret string) waits {
		return waits{member(t.TempDir(), "hub-"+strconv.Itoa(n), secret, at, n), "this hub and the one at " + at[1-n] + " have different secrets: give all hubs of the cluster the same (cluster.secret_file)"}
	}
	waitUntilTold(t, differ(0, "open sesame"), differ(1, "open barley"))
}

func TestABadClusterIsRefused(t *testing.T) {
	at := addresses(t, 3)
	for what, change := range map[string]func(*nats.Cluster){
		"name":                     func(c *nats.Cluster) { c.Name = "a.b" },
		"secret":                   func(c *nats.Cluster) { c.Secret = "" },
		"the address of the clust": func(c *nats.Cluster) { c.Listen = "somewhere" },
		"the address of a peer":    func(c *nats.Cluster) { c.Peers = []string{"elsewhere"} },
	} {
		o := member(t.TempDir(), "a", "open sesame", at, 0)
		change(o.Cluster)
		if _, err := nats.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want an error about %s", err, what)
		}
	}
}

func TestHubsOnAnExternalClusterShareAJournal(t *testing.T) {
	url := externalCluster(t)
	coretest.SharedJournal(t, func(t *testing.T) func(string) journal.Shared {
		nc, err := client.Connect(url)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		for name := range js.StreamNames(t.Context()).Name() {
			if err := js.DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		return func(hub string) journal.Shared {
			return opened(t, nats.Options{URL: url, Name: hub, Replicas: 3, Cluster: &nats.Cluster{Name: "test"}})
		}
	})
}

func TestClaimsOfAnExternalClusterHaveOneHolder(t *testing.T) {
	at := externalCluster(t)
	var hubs []*nats.Journal
	for _, name := range []string{"a", "b", "c"} {
		hubs = append(hubs, opened(t, nats.Options{URL: at, Name: name, Replicas: 3, Cluster: &nats.Cluster{Name: "test"}}))
	}
	claimsHaveOneHolder(t, hubs)
}

// externalCluster starts three NATS servers that are not embedded and returns their addresses.
func externalCluster(t testing.TB) string {
	t.Helper()
	tier.Full(t, "it runs three servers")
	var routes []*url.URL
	for _, at := range addresses(t, 3) {
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: at})
	}
	var urls []string
	var all []*server.Server
	for i, r := range routes {
		port, err := strconv.Atoi(r.Port())
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.NewServer(&server.Options{
			ServerName: "n" + strconv.Itoa(i), Host: "127.0.0.1", Port: -1, JetStream: true, JetStreamMaxStore: 64 << 30, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
			Cluster: server.ClusterOpts{Name: "external", Host: "127.0.0.1", Port: port, PoolSize: -1}, Routes: routes,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		urls, all = append(urls, s.ClientURL()), append(all, s)
	}
	limit, tick := time.After(watchdog), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for _, s := range all {
		for !s.JetStreamIsCurrent() {
			select {
			case <-tick.C:
			case <-limit:
				t.Fatal("the servers did not form a cluster")
			}
		}
	}
	return strings.Join(urls, ",")
}
