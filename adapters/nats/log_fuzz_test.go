package nats

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzSplitRecords holds that a message of a log is refused, or reads the same once
// it is written again.
func FuzzSplitRecords(f *testing.F) {
	for _, text := range []string{"", "\x00", "\x01a", "\x01a\x02bc", "\x05a", "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", "\x80\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := splitRecords(data)
		if err != nil {
			return
		}
		var again []byte
		for _, r := range got {
			again = append(binary.AppendUvarint(again, uint64(len(r))), r...)
		}
		back, err := splitRecords(again)
		if err != nil || len(back) != len(got) {
			t.Fatalf("got %d records and %v, want %d", len(back), err, len(got))
		}
		for i := range got {
			if !bytes.Equal(got[i], back[i]) {
				t.Errorf("record %d: got %q, want %q", i, back[i], got[i])
			}
		}
	})
}
