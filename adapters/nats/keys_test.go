package nats_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

func TestKeysAreWrittenOnceAtARevision(t *testing.T) {
	checkKeys(t, together(t, external(t), "a", "b", "c"))
}

func TestKeysOfAnExternalClusterAreWrittenOnceAtARevision(t *testing.T) {
	at := externalCluster(t)
	var hubs []*nats.Journal
	for _, name := range []string{"a", "b", "c"} {
		hubs = append(hubs, opened(t, nats.Options{URL: at, Name: name, Replicas: 3, Cluster: &nats.Cluster{Name: "test"}}))
	}
	checkKeys(t, hubs)
}

// A write that was stored and not acknowledged is repeated. The second try finds the entry and writes nothing; the caller reads whose
// it is.
func TestAKeyWhoseAcknowledgementIsLostIsWrittenOnce(t *testing.T) {
	const said, instead = "$KV.test-keys.k _INBOX.", "$KV.test-keys.k _LOSTX."
	url, proxy := lossyTo(t, external(t), said, instead)
	keys := opened(t, nats.Options{URL: url, Name: "a", Cluster: &nats.Cluster{Name: "test"}}).Keys()
	proxy.armed.Store(true)
	if next, err := keys.Write(t.Context(), "k", "mine", 0); next != 0 || err != nil || !proxy.lost.Load() {
		t.Errorf("got the revision %d and %v, want 0 for what is written already", next, err)
	}
	text, revision, err := keys.Read(t.Context(), "k")
	if text != "mine" || revision == 0 || err != nil {
		t.Errorf("read: got %q, %d and %v, want what was written", text, revision, err)
	}
	if next, err := keys.Write(t.Context(), "k", "mine, too", revision); next != revision+1 || err != nil {
		t.Errorf("the next: got the revision %d and %v, want %d", next, err, revision+1)
	}
}

func checkKeys(t *testing.T, hubs []*nats.Journal) {
	t.Helper()
	var stores []remote.KeyStore
	for _, j := range hubs {
		stores = append(stores, j.Keys())
	}
	coretest.KeyStore(t, stores...)
}
