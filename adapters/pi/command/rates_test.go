package command

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNamesThatNoSessionCanHaveTakeNoMemory(t *testing.T) {
	r := newRates(Rates{Client: -1, Server: -1}.withDefaults())
	for i := range 2 * maxBuckets {
		c := Command{Kind: "get_state", Session: strings.Repeat("x", MaxID) + strconv.Itoa(i), Spec: Table["get_state"]}
		if _, text := r.take(Namespace{}, c); (text != "") != (i >= r.limits.Session) {
			t.Fatalf("command %d for a session that cannot be: got %q", i, text)
		}
	}
	if r.buckets.Len() != 1 {
		t.Errorf("got %d buckets, want one for all of them", r.buckets.Len())
	}
}

func TestRatesForgetWhatIsOldAndRememberNoMoreThanTheirBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRates(Rates{Session: 2, Server: 2, Answers: 2})
		of := func(session string) Command {
			c, err := Decode(fmt.Appendf(nil, `{"type":"get_state","sessionId":%q}`, session), 1000)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		for i := range maxBuckets + 100 {
			r.take(Namespace{}, of(fmt.Sprint(i)))
		}
		if got := r.buckets.Len(); got != maxBuckets {
			t.Errorf("buckets: got %d, want %d", got, maxBuckets)
		}
		time.Sleep(rateWindow)
		r.take(Namespace{}, of("s"))
		if got := r.buckets.Len(); got != 1 {
			t.Errorf("buckets after a minute: got %d, want 1", got)
		}
	})
}
