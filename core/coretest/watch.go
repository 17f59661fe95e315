package coretest

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
)

// CheckWatch holds the watch of claims against what [cluster.Claims] says: one hub reads what another
// writes.
func CheckWatch(t *testing.T, writer, reader cluster.Claims) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	claim := func(name, value string) {
		t.Helper()
		if holder, err := writer.Claim(ctx, name, value, func(string) bool { return true }); err != nil || holder != value {
			t.Errorf("claiming %s: got the holder %q and %v, want %s", name, holder, err, value)
		}
	}
	release := func(name, value string) {
		t.Helper()
		if err := writer.Release(ctx, name, value); err != nil {
			t.Errorf("releasing %s: got %v, want no error", name, err)
		}
	}
	claim("watched.Zoë =1", "1")
	claim("watched.gone", "1")
	claim("other.x", "1")
	release("watched.gone", "1")
	type news struct {
		all          map[string]string
		name, holder string
	}
	told, ended := make(chan news, 100), make(chan error, 1)
	go func() {
		ended <- reader.Watch(ctx, "watched.", func(all map[string]string) { told <- news{all: maps.Clone(all)} }, func(name, holder string) { told <- news{name: name, holder: holder} })
	}()
	seen := (<-told).all
	until := func(want map[string]string) {
		t.Helper()
		for !maps.Equal(seen, want) {
			select {
			case n := <-told:
				if seen[n.name] = n.holder; n.holder == "" {
					delete(seen, n.name)
				}
			case <-ctx.Done():
				t.Fatalf("got %q, want %q", seen, want)
			}
		}
	}
	until(map[string]string{"watched.Zoë =1": "1"}) // a replica may be behind at first
	claim("watched.Zoë =1", "2")
	claim("watched.b", "1")
	claim("other.x", "2")
	until(map[string]string{"watched.Zoë =1": "2", "watched.b": "1"})
	release("watched.Zoë =1", "2")
	claim("watched.b", "3")
	until(map[string]string{"watched.b": "3"})
	release("watched.b", "3")
	claim("watched.b", "4")
	until(map[string]string{"watched.b": "4"})
	cancel()
	if err := <-ended; err == nil {
		t.Error("the watch has ended without an error, want why")
	}
}
