package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// asking is a side whose answers are whole and take as long as wait.
func asking(wait func(context.Context) error) *side {
	return &side{ask: func(ctx context.Context, _, chunks int) (int, error) { return chunks * chunkBytes, wait(ctx) }}
}

// A closed loop would time two slow answers, one for each worker; 10 questions were due meanwhile.
func TestAStallDelaysEveryQuestionThatWasDueInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := asking(func(ctx context.Context) error { // it stands still from 500 to 600 ms
			at := time.Since(began)
			if at >= 500*time.Millisecond && at < 600*time.Millisecond {
				return pause(ctx, 600*time.Millisecond-at)
			}
			return nil
		})
		got, err := s.openTurn(t.Context(), time.Second, load{atOnce: 2, chunks: 1, rate: 100}, time.Sleep)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got.took.values); n != 100 {
			t.Fatalf("answers: got %d, want 100", n)
		}
		for i, took := range got.took.values {
			if want := max(0, time.Duration(i-89)*10*time.Millisecond); took != want {
				t.Errorf("time %d from the shortest: got %s, want %s", i, took, want)
			}
		}
	})
}

func TestASideThatDoesNotKeepUpEndsTheBench(t *testing.T) {
	for name, tt := range map[string]struct {
		wait func(context.Context) error
		want string
	}{
		"never answers": {
			func(ctx context.Context) error { return pause(ctx, time.Hour) },
			"overloaded: 100 questions were due at 100 a second; 5s later 98 of them were not sent and 2 not answered",
		},
		"answers slowly": { // 5 pairs in 6 s
			func(ctx context.Context) error { return pause(ctx, 1100*time.Millisecond) },
			"overloaded: 100 questions were due at 100 a second; 5s later 88 of them were not sent and 2 not answered",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := asking(tt.wait).openTurn(t.Context(), time.Second, load{atOnce: 2, chunks: 1, rate: 100}, time.Sleep)
				if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
			})
		})
	}
}

// The clock of a test cannot show how late nap is, but that it ends the wait before a question, not sooner.
func TestNoQuestionIsAskedBeforeItIsDue(t *testing.T) {
	began, first := time.Now(), true
	s := asking(func(context.Context) error {
		if at := time.Since(began); !first && at < 5*time.Millisecond {
			t.Errorf("the second question: got it %s after the first, want 5ms or more", at)
		}
		first = false
		return nil
	})
	if _, err := s.turn(t.Context(), 10*time.Millisecond, load{atOnce: 1, chunks: 1, rate: 200}); err != nil {
		t.Fatal(err)
	}
}
