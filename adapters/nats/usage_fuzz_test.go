package nats

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
)

// FuzzSpendings holds that a message of spendings is refused, or reads the same once
// it is written again.
func FuzzSpendings(f *testing.F) {
	for _, text := range []string{
		"", "\n", `{"t":"t","n":1,"at":5,"a":"a","r":"r","u":[1,2,3,4,5]}`, `{"u":[1]}`, `{"u":[1,2,3,4,5,6]}`, `{"n":-1}`, `{"at":9223372036854775807}`,
		`{"t":"t"}` + "\n" + `{"t":"u","th":"x"}` + "\n", "{}{}", "null", "\xff", `{"a":"\ud800"}`,
		`{"t":"t","n":4,"at":1767323045000,"a":"agent","r":"somebody","th":"thread","u":[1,22,0,3,4]}` + "\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeSpendings(data)
		if err != nil {
			return
		}
		var again bytes.Buffer
		for _, s := range got {
			line, err := json.Marshal(spent(s))
			if err != nil {
				t.Fatal(err)
			}
			scanned, ok := scanSpending(line)
			if d := cmp.Diff(spent(s), scanned); ok && d != "" {
				t.Errorf("%s is scanned as (-want +got):\n%s", line, d)
			}
			again.Write(append(line, '\n'))
		}
		back, err := decodeSpendings(again.Bytes())
		if d := cmp.Diff(got, back); err != nil || d != "" {
			t.Errorf("got %v and (-want +got):\n%s", err, d)
		}
	})
}

func TestASpendingIsScannedAsItIsWritten(t *testing.T) {
	for _, thread := range []core.ThreadID{"", "thread"} {
		want := spending{"task", 4, 1767323045000, "agent", "somebody", thread, [5]int64{1500, 22, 0, 3, 4}}
		line, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := scanSpending(append(line, '\n')); !ok || got != want {
			t.Errorf("got %+v and %t, want %+v", got, ok, want)
		}
	}
}
