package nats

import (
	"testing"
	"time"
)

// A request for votes ends an election that is under way.
func TestAGroupIsAskedForVotesAgainOnlyWhenItsElectionHadNoWinner(t *testing.T) {
	asked, now := ballots{}, time.Unix(0, 0)
	for _, step := range []struct {
		what  string
		after time.Duration
		term  uint64
		asks  bool
	}{
		{"a leader is gone", 0, 7, true},
		{"the request has come", electTick, 8, false},
		{"nobody is a candidate yet", electAgain - electTick, 8, false},
		{"a candidate has asked for votes", electTick - 1, 9, false},
		{"it has no majority yet", electAgain - 1, 9, false},
		{"it got none", 1, 9, true},
		{"the request has come", electTick, 10, false},
		{"the request has led to nothing", electAgain, 10, true},
	} {
		now = now.Add(step.after)
		if due := asked.due([]raftGroup{{"c-tasks", step.term}}, now); (len(due) > 0) != step.asks {
			t.Errorf("%s, in term %d: got asked %v, want %v", step.what, step.term, len(due) > 0, step.asks)
		}
	}
}
