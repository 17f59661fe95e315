package config_test

import "testing"

func TestAJournalInMemoryKeeps128MiBUnlessItIsSet(t *testing.T) {
	for _, tt := range []struct {
		args []string
		yaml string
		want int64
	}{
		{want: 128 << 20},
		{args: []string{"--data-dir", "d"}, want: 1 << 30},
		{args: []string{"--nats-url", "nats://127.0.0.1:1"}, want: 1 << 30},
		{yaml: "journal: {bytes: 1073741824}", want: 1 << 30},
		{yaml: "journal: {bytes: 5e6}\ndata_dir: d", want: 5e6},
	} {
		c, err := configOf(t, tt.yaml, nil, tt.args...)
		if err != nil || c.Journal.Bytes != tt.want {
			t.Errorf("%v %q: got %d bytes and %v, want %d", tt.args, tt.yaml, c.Journal.Bytes, err, tt.want)
		}
	}
}
