package a2a_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
)

// BenchmarkRead reads items as they come in streams: parsed before, as the envelope around them is.
func BenchmarkRead(b *testing.B) {
	for name, text := range map[string]string{
		"chunk":    items[2],
		"status":   items[5],
		"artifact": items[3],
		"task":     items[0],
	} {
		b.Run(name, func(b *testing.B) {
			v, err := wire.Parse([]byte(text))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := new(wire.ItemReader).Read(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
