package service

import (
	"bytes"
	"io"
	"mime"
	"net/http"

	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// framed keeps the frames of requests of a dialect over HTTP, each as those of a connection of its
// own: the body of a request, and that of its answer, or each event of it. A GET only reads: who looks at a
// task adds no frames to it. secrets are the paths of members of requests that are for the hub alone.
func (s *Service) framed(dialect string, handler http.Handler, secrets ...[]string) http.Handler {
	if s.frames == nil {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			handler.ServeHTTP(w, r)
			return
		}
		x := s.frames.Exchange(dialect, func(text []byte) []byte {
			for _, path := range secrets {
				text = withhold(text, path)
			}
			return text
		})
		defer x.End()
		r = r.WithContext(x.With(r.Context()))
		r.Body = requestFrames{r.Body, x}
		handler.ServeHTTP(&answerFrames{w, x}, r)
	})
}

// withheld stands for the value of a member that is shown to nobody.
var withheld = []byte(`"[not shown]"`)

// withhold returns a JSON text without the value at a path.
func withhold(text []byte, path []string) []byte {
	v, err := strictjson.Parse(text, strictjson.Limits{Bytes: len(text) + 1})
	if err != nil || !v.Get(path...).Exists() {
		return text
	}
	value := withheld
	for i := len(path) - 1; i >= 0; i-- {
		value = v.Get(path[:i]...).Set(strictjson.Field{Key: path[i], Value: value})
	}
	return value
}

// requestFrames is the body of a request.
type requestFrames struct {
	io.ReadCloser
	frames *frame.Exchange
}

// Read implements io.Reader.
func (b requestFrames) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.frames.Requested(p[:n])
	return n, err
}

// answerFrames writes the answer to a request.
type answerFrames struct {
	http.ResponseWriter
	frames *frame.Exchange
}

// Unwrap serves http.ResponseController.
func (a *answerFrames) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write implements io.Writer.
func (a *answerFrames) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.frames.Answered(p[:n])
	return n, err
}

// Flush implements http.Flusher.
func (a *answerFrames) Flush() { _ = a.FlushError() }

// FlushError sends what was written. An answer that is flushed before its end is a stream of events.
func (a *answerFrames) FlushError() error {
	media, _, _ := mime.ParseMediaType(a.Header().Get("Content-Type"))
	switch media {
	case "text/event-stream":
		a.frames.Split(serverSentEvents)
	case "application/x-ndjson":
		a.frames.Split(jsonLines)
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// jsonLines cuts lines.
func jsonLines(text []byte) (lines [][]byte, rest []byte) {
	for {
		line, after, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return lines, text
		}
		text = after
		if len(line) > 0 {
			lines = append(lines, line)
		}
	}
}

// serverSentEvents returns the data of events, as the hub writes them.
func serverSentEvents(text []byte) (data [][]byte, rest []byte) {
	for {
		event, after, whole := bytes.Cut(text, []byte("\n\n"))
		if !whole {
			return data, text
		}
		text = after
		var all []byte
		for line := range bytes.SplitSeq(event, []byte("\n")) {
			if value, is := bytes.CutPrefix(line, []byte("data:")); is {
				all = append(all, bytes.TrimPrefix(value, []byte(" "))...)
			}
		}
		if len(all) > 0 {
			data = append(data, all)
		}
	}
}
