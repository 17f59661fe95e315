package audit

import (
	"encoding/json"
	"testing"
	"time"
)

func TestALineIsWrittenAsEncodingJSONDoes(t *testing.T) {
	yes := true
	for _, l := range []Line{
		{},
		{Seq: 7, At: time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC), Principal: "ana", Act: "open", Object: "shout", Task: "t", For: "zoe", Outcome: OK, Prev: "00"},
		{Principal: "<&>\"\\\x00\x7f\u2028é\xff", Object: "line\nfeed", Approved: &yes, Call: "c", Count: 3, Outcome: "x"},
	} {
		want, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.text(); string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := string(Line{At: time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)}.text()); !json.Valid([]byte(got)) {
		t.Errorf("got %s, want JSON", got)
	}
}
