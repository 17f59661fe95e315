package nats

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzSpendings holds that a message of spendings is refused, or reads the same once
// it is written again.
func FuzzSpendings(f *testing.F) {
	for _, text := range []string{
		"", "\n", `{"t":"t","n":1,"at":5,"a":"a","r":"r","u":[1,2,3,4,5]}`, `{"u":[1]}`, `{"u":[1,2,3,4,5,6]}`, `{"n":-1}`, `{"at":9223372036854775807}`,
		`{"t":"t"}` + "\n" + `{"t":"u","th":"x"}` + "\n", "{}{}", "null", "\xff", `{"a":"\ud800"}`,
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
			again.Write(append(line, '\n'))
		}
		back, err := decodeSpendings(again.Bytes())
		if d := cmp.Diff(got, back); err != nil || d != "" {
			t.Errorf("got %v and (-want +got):\n%s", err, d)
		}
	})
}
