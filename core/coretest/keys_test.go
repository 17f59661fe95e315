package coretest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

func TestKeysInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := coretest.NewKeys(coretest.NewClaims(nil), time.Minute)
		coretest.KeyStore(t, keys.Of("a"), keys.Of("b"), keys.Of("c"))
		read := keys.Of("a")
		time.Sleep(time.Minute)
		if text, revision, err := read.Read(t.Context(), "k"); text != "" || revision != 0 || err != nil {
			t.Errorf("after its time: got %q, revision %d, %v; want nothing", text, revision, err)
		}
		if next, err := read.Write(t.Context(), "k", "anew", 0); next == 0 || err != nil {
			t.Errorf("writing it after its time: got revision %d, %v; want a new one", next, err)
		}
	})
}

var _ remote.KeyStore = coretest.NewKeys(nil, 0).Of("a")
