package schemas

import (
	"os"
	"strings"
	"testing"
)

func sampleFrame(b *testing.B) []byte {
	data, err := os.ReadFile("parallax/samples/task_result.json")
	if err != nil {
		b.Fatal(err)
	}
	return []byte(strings.NewReplacer("\n", "", "  ", "").Replace(string(data)))
}

func BenchmarkValidateAFrame(b *testing.B) {
	data, s := sampleFrame(b), Parallax("task_result")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTheLibraryOnAFrame is what the same verdict costs by decoding the
// frame and asking the JSON Schema library.
func BenchmarkTheLibraryOnAFrame(b *testing.B) {
	data, s := sampleFrame(b), Parallax("task_result").compile().library
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := validateByLibrary(s, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefuseAFrame(b *testing.B) {
	data, s := []byte(`{"type":"task_result","payload":{"status":"completed"}}`), Parallax("task_result")
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(data); err == nil {
			b.Fatal("got no error")
		}
	}
}

func BenchmarkValidateAMegabyte(b *testing.B) {
	data, s := []byte(`{"type":"task_result","payload":{"taskId":"t","result":"`+strings.Repeat(`All that is gold does not glitter.\n`, 27_000)+`"}}`), Parallax("task_result")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompileEverySchema is what the first use of every type of message
// costs together.
func BenchmarkCompileEverySchema(b *testing.B) {
	all := everySchema()
	for b.Loop() {
		c := newCompiler()
		for file := range all {
			s, err := c.Compile(base + file)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := newNode(s, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
}
