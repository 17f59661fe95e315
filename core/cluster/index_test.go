package cluster_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestAHubLearnsFromTheJournalWhichLivesWereTakenOverAndForgotten(t *testing.T) {
	claims := coretest.NewClaims(nil).Of("a")
	for i, name := range []string{"a", "b", "c", "d"} {
		if got, err := cluster.TakeIndex(t.Context(), claims, name, name == "a"); err != nil || got != i {
			t.Fatalf("the index of %s: got %d and %v, want %d", name, got, err, i)
		}
	}
	for name, epoch := range map[string]string{"a": "6", "b": "2"} { // a has come back since
		if _, err := claims.Claim(t.Context(), "forgotten."+name, epoch, nil); err != nil {
			t.Fatal(err)
		}
	}
	by := journal.Life{Hub: "a", Epoch: 7}
	unreadable := errors.New("no leader")
	known, err := cluster.Known(t.Context(), claims, func(_ context.Context, hub string) (life, taken journal.Life, err error) {
		switch hub {
		case "a":
			return by, journal.Life{}, nil
		case "b":
			return journal.Life{Hub: "b", Epoch: 2}, by, nil
		case "c":
			return life, taken, unreadable
		}
		return life, taken, nil // it has no life yet
	})
	want := []cluster.Hub{{Name: "a", Index: 0, Epoch: 7}, {Name: "b", Index: 1, Epoch: 2, TakenBy: &by, Forgotten: true}}
	if d := cmp.Diff(want, known); d != "" || !errors.Is(err, unreadable) {
		t.Errorf("got the error %v, want %v, and (-want +got):\n%s", err, unreadable, d)
	}
}
