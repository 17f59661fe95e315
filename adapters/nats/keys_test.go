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

func checkKeys(t *testing.T, hubs []*nats.Journal) {
	t.Helper()
	var stores []remote.KeyStore
	for _, j := range hubs {
		stores = append(stores, j.Keys())
	}
	coretest.KeyStore(t, stores...)
}
