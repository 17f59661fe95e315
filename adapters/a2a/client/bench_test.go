package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/question"
)

// BenchmarkChunk measures a chunk of 64 bytes of text from the body of an HTTP response to the
// report of the event, without the socket: as the official SDK writes it, and as a hub does
// with its cursor. A chunk of Coven costs BenchmarkToTheServer of transports/grpcserver, with
// its sockets, and BenchmarkEventOf of adapters/coven/wire.
func BenchmarkChunk(b *testing.B) {
	text := strings.Repeat("x", 64)
	for name, chunk := range map[string]string{
		"sdk": `{"artifactUpdate":{"taskId":"6603f4b6-d92d-4d9e-8ce5-18f868cd4967","contextId":"d8ddf262-d69d-4491-a444-fd872a2d6ee7","artifact":{"artifactId":"a1","parts":[{"text":"` + text + `","metadata":{},"mediaType":"text/plain"}],"metadata":{}},"append":true,"metadata":{}}}`,
		"hub": `{"artifactUpdate":{"taskId":"6603f4b6-d92d-4d9e-8ce5-18f868cd4967","contextId":"d8ddf262-d69d-4491-a444-fd872a2d6ee7","artifact":{"artifactId":"answer","parts":[{"text":"` + text + `"}]},"append":true,"metadata":{"urn:dragoman:a2a:cursor:1":"1.1234"}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			line := "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" + chunk + "}\n\n"
			end := "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" + status("COMPLETED") + "}\n\n"
			end = strings.ReplaceAll(end, `"T"`, `"6603f4b6-d92d-4d9e-8ce5-18f868cd4967"`)
			stream := &repeated{line: []byte(strings.Repeat(line, 100)), end: []byte(end), left: b.N/100 + 1}
			c := client.New(client.Options{URL: "http://far", HTTP: &http.Client{Transport: answersWith{stream}}})
			ctx, stop := context.WithCancel(b.Context())
			ready, over := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(over)
				_ = c.Run(ctx, func(agent.Profile) { close(ready) })
			}()
			<-ready
			b.ReportAllocs()
			b.ResetTimer()
			if err := c.Work(ctx, sink{}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			stop()
			<-over
		})
	}
}

// answersWith answers every request for a card, and all others with a stream.
type answersWith struct{ stream io.Reader }

func (a answersWith) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(a.stream)}
	if strings.HasSuffix(r.URL.Path, ".json") {
		resp.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(streamingCard, "%s", "http://far")))
	}
	return resp, nil
}

// repeated is a line many times, and an end.
type repeated struct {
	line, end, rest []byte
	left            int
}

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		switch {
		case r.left > 0:
			r.left, r.rest = r.left-1, r.line
		case r.end != nil:
			r.rest, r.end = r.end, nil
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// sink is a turn that takes everything.
type sink struct{}

func (sink) Task() core.TaskID                     { return "task" }
func (sink) Request() core.Request                 { return core.Request{Content: "x"} }
func (sink) Delivered()                            {}
func (sink) Hops() int                             { return 0 }
func (sink) Trace() core.Trace                     { return core.Trace{} }
func (sink) Report(core.Body, *core.Foreign) error { return nil }
func (sink) Next(ctx context.Context) (core.Body, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (sink) Ask(context.Context, question.Question) (question.Outcome, error) {
	return question.Outcome{}, core.NewFault(core.CodeUnsupported, "nobody is there")
}

func (sink) CallTool(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, core.NewFault(core.CodeUnsupported, "no tools here")
}

func (sink) From() core.Principal { return core.Principal{} }
