package strictjson_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// frame is what most frames look like: some 250 bytes, two levels, few keys.
const frame = `{"type":"task_result","id":"msg_002","timestamp":"2024-01-15T10:30:05.000Z","payload":{"taskId":"task_abc123","executionId":"exec_xyz789","status":"completed","result":{"category":"technology","confidence":0.92},"duration":1500,"metadata":{"tokensUsed":150}}}`

type benchFrame struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Payload   struct {
		TaskID      string          `json:"taskId"`
		ExecutionID string          `json:"executionId"`
		Status      string          `json:"status"`
		Result      json.RawMessage `json:"result"`
		Duration    float64         `json:"duration"`
		Metadata    struct {
			TokensUsed int `json:"tokensUsed"`
		} `json:"metadata"`
	} `json:"payload"`
}

func BenchmarkCheckOfAFrame(b *testing.B) {
	data := []byte(frame)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := strictjson.Check(data, strictjson.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkValidOfAFrame is the standard library's reader of the same frame,
// which finds no duplicates and measures no depth: the yardstick.
func BenchmarkValidOfAFrame(b *testing.B) {
	data := []byte(frame)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if !json.Valid(data) {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkDecodeOfAFrame(b *testing.B) {
	data := []byte(frame)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var f benchFrame
		if err := strictjson.Decode(data, strictjson.Limits{}, &f); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnmarshalOfAFrame is encoding/json alone: what strictness costs is
// the difference to BenchmarkDecodeOfAFrame.
func BenchmarkUnmarshalOfAFrame(b *testing.B) {
	data := []byte(frame)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var f benchFrame
		if err := json.Unmarshal(data, &f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckOfAMegabyte(b *testing.B) {
	for name, unit := range map[string]string{"ascii": "All that is gold does not glitter. ", "cyrillic": "Не всё то золото, что блестит. ", "lines": "not\\nall\\nthat\\nwander\\n"} {
		b.Run(name, func(b *testing.B) {
			data := []byte(`{"payload":{"text":"` + strings.Repeat(unit, 1_000_000/len(unit)) + `"}}`)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := strictjson.Check(data, strictjson.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCheckOfManyKeys is the worst a peer can do to the search for
// duplicates: a megabyte of keys in one object.
func BenchmarkCheckOfManyKeys(b *testing.B) {
	var text strings.Builder
	text.WriteString("{")
	for i := 0; text.Len() < 1_000_000; i++ {
		if i > 0 {
			text.WriteString(",")
		}
		text.WriteString(`"` + strings.Repeat("k", i%7) + string(rune('a'+i%26)) + strings.ToUpper(strconv.Itoa(i)) + `":0`)
	}
	text.WriteString("}")
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := strictjson.Check(data, strictjson.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
