package web_test

import (
	"net/http"
	"testing"

	"github.com/dragoman-hub/dragoman/transports/web"
)

// A HEAD gets what a GET does but its body, also where that would not end, unless its path has none.
func TestHeadIsAGetWithoutBody(t *testing.T) {
	ended := make(chan error, 1)
	_, addr := serve(t, web.Options{NoHead: []string{"/mine", "/below/"}}, func(s *web.Server) {
		s.Router().Get("/text", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("text")) })
		s.Router().Get("/stream", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			_, _ = w.Write([]byte("more"))
			ended <- r.Context().Err()
		})
		s.Router().Get("/mine", func(http.ResponseWriter, *http.Request) { t.Error("got a GET, want the HEAD refused") })
		s.Router().Get("/below/x", func(http.ResponseWriter, *http.Request) { t.Error("got a GET, want the HEAD refused") })
	})
	for path, want := range map[string]struct {
		status        int
		length, media string
		allow         string
	}{
		"/text":    {200, "4", "text/plain; charset=utf-8", ""},
		"/stream":  {200, "", "text/event-stream", ""},
		"/mine":    {405, "", "", "GET, OPTIONS"},
		"/below/x": {405, "", "", "GET, OPTIONS"},
	} {
		resp, body := do(t, request(t, http.MethodHead, "http://"+addr+path, nil))
		h := resp.Header
		if resp.StatusCode != want.status || body != "" || h.Get("Allow") != want.allow ||
			want.status == 200 && (h.Get("Content-Length") != want.length || h.Get("Content-Type") != want.media) {
			t.Errorf("HEAD %s: got %s, %q and %v, want %+v", path, resp.Status, body, h, want)
		}
	}
	if err := <-ended; err == nil {
		t.Error("got no end of the stream, want it to end with the answer")
	}
}
