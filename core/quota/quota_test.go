package quota_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/quota"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func person(id string) core.Principal { return core.Principal{ID: id, Authenticated: true} }

func ask(p core.Principal) core.Call {
	return core.Call{Principal: p, Command: &core.Open{Request: &core.Request{}}}
}

func wantRefused(t *testing.T, what string, err error, code core.Code, texts ...string) {
	t.Helper()
	f := core.AsFault(err)
	if f == nil || f.Code != code || !f.Retryable || f.RetryAfter <= 0 {
		t.Fatalf("%s: got %#v, want it refused as %s, retryable, with when to come again", what, f, code)
	}
	for _, text := range texts {
		if !strings.Contains(f.Message, text) {
			t.Errorf("%s: got %q, want it to say %q", what, f.Message, text)
		}
	}
}

func TestEachPrincipalHasItsOwnTasks(t *testing.T) {
	b := quota.NewBook(quota.Limits{Tasks: 2})
	begin := func(p core.Principal) *quota.Work {
		w, err := b.Begin(p, 10)
		if err != nil {
			t.Fatalf("a task of %s: got %v, want it counted", p.ID, err)
		}
		return w
	}
	first := begin(person("alice"))
	begin(person("alice"))
	_, err := b.Begin(person("alice"), 10)
	wantRefused(t, "a third task", err, core.CodeOverloaded, "alice has 2 tasks", "quotas.tasks", "again")
	begin(person("bob"))
	first.End()
	first.End()
	begin(person("alice"))
	_, err = b.Begin(person("alice"), 10)
	wantRefused(t, "a third task again", err, core.CodeOverloaded)
	if got := b.Refused(quota.Tasks); got != 2 {
		t.Errorf("got %d refusals counted, want 2", got)
	}
}

func TestBytesOfRunningTasksCountUntilTheyEnd(t *testing.T) {
	b := quota.NewBook(quota.Limits{Bytes: 100_000})
	w, err := b.Begin(person("alice"), 10_000)
	if err != nil {
		t.Fatal(err)
	}
	w.Add(89_000) // what runs goes on
	_, err = b.Begin(person("alice"), 10_000)
	wantRefused(t, "a request beyond the bytes", err, core.CodeOverloaded, "quotas.bytes", "100000", "10000")
	w.End()
	w.Add(1 << 20) // late
	if _, err = b.Begin(person("alice"), 100_000); err != nil {
		t.Errorf("a request once the task has ended: got %v, want it counted", err)
	}
}

// To come again would not help.
func TestARequestThatCanNeverFitIsTooLarge(t *testing.T) {
	b := quota.NewBook(quota.Limits{Bytes: 100_000, Tasks: 1})
	for _, what := range []string{"alone", "beside as many tasks as are allowed"} {
		_, err := b.Begin(person("alice"), 100_001)
		f := core.AsFault(err)
		if err == nil || f.Code != core.CodeTooLarge || f.Retryable || f.RetryAfter != 0 || !strings.Contains(f.Message, "quotas.bytes") || !strings.Contains(f.Message, "100000") {
			t.Errorf("%s: got %+v, want too_large, not retryable, with the quota and what it is", what, f)
		}
		if what == "alone" {
			if _, err := b.Begin(person("alice"), 100_000); err != nil {
				t.Errorf("a request that just fits: got %v, want it counted", err)
			}
		}
	}
	if got := b.Refused(quota.Bytes); got != 2 {
		t.Errorf("got %d refusals counted, want 2", got)
	}
}

func TestCallsBeyondTheRateSayWhenToComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quota.NewBook(quota.Limits{Rate: 4})
		for range 4 {
			if err := b.Admit(ask(person("alice"))); err != nil {
				t.Fatalf("one of four calls: got %v, want it admitted", err)
			}
		}
		err := b.Admit(ask(person("alice")))
		wantRefused(t, "a fifth call", err, core.CodeRateLimited, "alice", "4 calls a second", "quotas.rate", "in 250ms")
		for _, c := range []core.Command{core.Cancel{}, core.Decide{}, core.Reply{}, core.List{}} {
			if err := b.Admit(core.Call{Principal: person("alice"), Command: c}); err != nil {
				t.Errorf("%s: got %v, want it never limited", c.Act(), err)
			}
		}
		if err := b.Admit(ask(person("bob"))); err != nil {
			t.Errorf("a call of another: got %v, want it admitted", err)
		}
		time.Sleep(time.Duration(core.AsFault(err).RetryAfter))
		if err := b.Admit(ask(person("alice"))); err != nil {
			t.Errorf("a call when it was told to come: got %v, want it admitted", err)
		}
	})
}

func TestACallForAnotherCountsForThatOne(t *testing.T) {
	b := quota.NewBook(quota.Limits{Rate: 1})
	server := core.Principal{ID: "pi-server", Operator: true, Component: true}
	open := func(who string) error {
		return b.Admit(core.Call{Principal: server, Command: &core.Open{Request: &core.Request{}, For: person(who)}})
	}
	if open("alice") != nil || open("bob") != nil {
		t.Error("got a first call refused, want it admitted")
	}
	wantRefused(t, "a second call for alice", open("alice"), core.CodeRateLimited, "alice")
	for range 3 {
		if err := b.Admit(core.Call{Principal: server, Command: core.Read{}}); err != nil {
			t.Errorf("a call of the hub itself: got %v, want it admitted", err)
		}
	}
}

func TestAConnectionCountsUntilItLeaves(t *testing.T) {
	b := quota.NewBook(quota.Limits{Connections: 1})
	leave, err := b.Connect(person("alice"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Connect(person("alice"))
	wantRefused(t, "a second connection", err, core.CodeOverloaded, "alice has 1 connections", "quotas.connections")
	leave()
	if _, err = b.Connect(person("alice")); err != nil {
		t.Errorf("once the first has left: got %v, want it counted", err)
	}
	for range 3 {
		if _, err := b.Connect(core.Principal{ID: "anybody"}); err != nil {
			t.Errorf("a connection without a credential: got %v, want it not counted", err)
		}
	}
}

func TestAllWithoutACredentialShareOneAccount(t *testing.T) {
	b := quota.NewBook(quota.Limits{Tasks: 2})
	for i := range 2 {
		if _, err := b.Begin(core.Principal{ID: fmt.Sprint("name-", i)}, 1); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.Begin(core.Principal{ID: "another-name"}, 1)
	wantRefused(t, "a third task under a third name", err, core.CodeOverloaded, "no credential")
	if _, err := b.Begin(person("name-0"), 1); err != nil {
		t.Errorf("a task of one who proved the name: got %v, want it counted apart", err)
	}
}

func TestAccountsThatAreNotUsedAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quota.NewBook(quota.Limits{Rate: 1, Tasks: 1})
		if _, err := b.Begin(person("busy"), 1); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			for i := range 2000 {
				b.Admit(ask(person(fmt.Sprint("p-", time.Now().UnixNano(), "-", i))))
			}
			time.Sleep(2 * time.Second)
		}
		if got := quota.Accounts(b); got > 6000 {
			t.Errorf("got %d accounts of 20,000 principals that have left, want few", got)
		}
		_, err := b.Begin(person("busy"), 1)
		wantRefused(t, "a second task of one that has one", err, core.CodeOverloaded)
	})
}

func TestANilBookLimitsNothing(t *testing.T) {
	b := quota.NewBook(quota.Limits{})
	if b != nil {
		t.Fatal("got a Book, want nil without limits")
	}
	w, err := b.Begin(person("alice"), 1<<40)
	w.Add(1)
	w.End()
	leave, unconnected := b.Connect(person("alice"))
	leave()
	if err != nil || unconnected != nil || b.Admit(ask(person("alice"))) != nil || b.Refused(quota.Rate) != 0 {
		t.Errorf("got %v and %v, want nothing refused", err, unconnected)
	}
}

func BenchmarkQuestion(b *testing.B) {
	book, alice := quota.NewBook(quota.Limits{Tasks: 100, Bytes: 1 << 30, Rate: 1e9}), person("alice")
	call := ask(alice)
	b.ReportAllocs()
	for b.Loop() {
		if err := book.Admit(call); err != nil {
			b.Fatal(err)
		}
		w, err := book.Begin(alice, 400)
		if err != nil {
			b.Fatal(err)
		}
		for range 4 {
			w.Add(200)
		}
		w.End()
	}
}
