package mcp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FuzzEvents reads any event stream as a simple implementation does.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"data: a\n\n", "id: 1\r\nretry: 5\r\ndata:a\r\ndata: b\r\n\r\n", ": c\n\ndata\n\ndata: lost"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var want []string
		var data []string
		text := strings.ReplaceAll(string(in), "\r\n", "\n")
		lines := strings.Split(text, "\n")
		for _, line := range lines[:len(lines)-1] { // the last has no end
			if line == "" {
				if data != nil {
					want = append(want, strings.Join(data, "\n"))
				}
				data = nil
				continue
			}
			if name, value, _ := strings.Cut(line, ":"); name == "data" {
				data = append(data, strings.TrimPrefix(value, " "))
			}
		}
		e := wire.NewEvents(bytes.NewReader(in), 1<<20)
		var got []string
		for {
			one, err := e.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(one))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", in, diff)
		}
	})
}

// FuzzHeader sends any text as the value of a header: it comes back as it was, and the value is
// one that HTTP takes.
func FuzzHeader(f *testing.F) {
	for _, seed := range []string{"get_weather", " a ", "ö", "a\r\nb: c", "=?base64?YQ==?=", "=?base64??=", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := wire.EncodeHeader(text)
		if got := wire.DecodeHeader(value); got != text {
			t.Errorf("got %q back, want %q", got, text)
		}
		if value != textproto.TrimString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("got %q, want the value of a header", value)
		}
		_ = wire.DecodeHeader(text)
	})
}

// FuzzFile sends any file as a content block: its bytes come back, or its text.
func FuzzFile(f *testing.F) {
	for _, media := range []string{"image/png", "audio/mpeg", "text/plain", "application/json", "application/octet-stream", "image/", ""} {
		f.Add("a b.bin", media, []byte("hi"))
	}
	f.Add("", "text/plain; charset=utf-8", []byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, name, media string, data []byte) {
		if !json.Valid(strictjson.Encode(name + media)) {
			return
		}
		block, err := strictjson.Parse(strictjson.Encode(wire.ContentOf("x:", core.File{Name: name, MediaType: media, Data: data})), strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := block.Get("resource", "text").Text(); ok {
			if text != string(data) {
				t.Errorf("got the text %q, want %q", text, data)
			}
			return
		}
		got, ok := wire.FileOf(block, 1)
		var back []byte
		if err := json.Unmarshal(got.Data, &back); !ok || err != nil || !bytes.Equal(back, data) {
			t.Errorf("got %q, %v and %v of %s, want %q", back, ok, err, block.Raw(), data)
		}
	})
}

// FuzzElicitResult reads any answer of a user: an action that is accepted is one of the three.
func FuzzElicitResult(f *testing.F) {
	for _, seed := range []string{`{"action":"accept","content":{"a":1}}`, `{"action":"cancel"}`, `{"action":"Accept"}`, `{"action":"decline","content":null}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := strictjson.Parse(in, strictjson.Limits{})
		if err != nil {
			return
		}
		action, content, err := question.ReadAnswer(v)
		if err != nil {
			return
		}
		written := strictjson.Encode(question.Answer{Action: action, Content: content.Raw()})
		again, more, err := question.ReadAnswer(strictjson.ParseValid(written))
		if again != action || string(more.Raw()) != string(content.Raw()) || err != nil {
			t.Errorf("%s became %s, which reads as %q, %s and %v", in, written, again, more.Raw(), err)
		}
	})
}
