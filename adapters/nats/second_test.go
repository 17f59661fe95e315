package nats_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// refused expects that a hub cannot start, since one of its name runs at a place.
func refused(t *testing.T, o nats.Options, where string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	j, err := nats.Open(ctx, o)
	if err == nil {
		_ = j.Close()
		t.Fatal("a second hub of the name: got it started, want it refused")
	}
	for _, want := range []string{"another hub named a is running", where, "--hub-name"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

func TestASecondHubOfANameIsRefusedByTheEmbeddedCluster(t *testing.T) {
	tier.Full(t, "it runs three servers")
	at := ""
	hubs := formed(t, func(o *nats.Options) { at = o.Cluster.Listen })
	free := addresses(t, 1)[0]
	second := nats.Options{Dir: t.TempDir(), Name: "a", Cluster: &nats.Cluster{Name: "test", Listen: free, Peers: []string{at}, Secret: "open sesame"}}
	refused(t, second, at)
	if err := hubs["a"].Append(t.Context(), taskRecords("after")...); err != nil {
		t.Errorf("the first one: got %v, want that it goes on", err)
	}
}

func TestASecondHubOfANameIsRefusedAtAnExternalServer(t *testing.T) {
	o := nats.Options{URL: externalCluster(t), Name: "a", Replicas: 3, Cluster: &nats.Cluster{Name: "test"}}
	first := opened(t, o)
	c, err := cluster.New(cluster.Settings{Life: first.Life(), Bus: first.Bus(), Claims: first.Claims(), External: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for !c.HasQuorum() {
		time.Sleep(10 * time.Millisecond) // until it hears itself at that server
	}
	refused(t, o, "a/1, host ")
	if err := first.Append(t.Context(), taskRecords("after")...); err != nil {
		t.Errorf("the first one: got %v, want that it goes on", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	began := time.Now()
	if next := opened(t, o).Life(); next.Hub != "a" || next.Epoch < 2 { // the epoch is higher if the start had to be repeated
		t.Errorf("once the first one does not answer: got the life %s, want one of a after a/1", next)
	}
	t.Logf("started after %s", time.Since(began))
}
