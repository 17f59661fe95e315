package schemas_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/schemas"
)

func BenchmarkValidateAFrame(b *testing.B) {
	data, s := schemas.Frame(b), schemas.Parallax("task_result")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefuseAFrame(b *testing.B) {
	data, s := []byte(`{"type":"task_result","payload":{"status":"completed"}}`), schemas.Parallax("task_result")
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(data); err == nil {
			b.Fatal("got no error")
		}
	}
}

func BenchmarkValidateAMegabyte(b *testing.B) {
	data, s := []byte(`{"type":"task_result","payload":{"taskId":"t","result":"`+strings.Repeat(`All that is gold does not glitter.\n`, 27_000)+`"}}`), schemas.Parallax("task_result")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(data); err != nil {
			b.Fatal(err)
		}
	}
}
