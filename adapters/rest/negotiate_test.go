package rest

import (
	"net/http"
	"testing"
)

func TestTheFormatIsTheOneThatTheClientPrefers(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   string
	}{
		{nil, jsonType},
		{[]string{"*/*"}, jsonType},
		{[]string{"text/html, image/png"}, jsonType},
		{[]string{"text/event-stream"}, eventType},
		{[]string{"Text/Event-Stream; charset=utf-8"}, eventType},
		{[]string{"application/x-ndjson, */*"}, lineType},
		{[]string{"application/json, text/event-stream"}, jsonType},
		{[]string{"text/event-stream, application/json"}, eventType},
		{[]string{"application/json;q=0.5, text/event-stream;q=0.9"}, eventType},
		{[]string{"text/event-stream;q=0"}, jsonType},
		{[]string{"application/json", "application/x-ndjson"}, jsonType},
		{[]string{"text/html", "application/x-ndjson"}, lineType},
		{[]string{"text/event-stream;q=much", ";;", "application/x-ndjson;q=0.1"}, lineType},
	} {
		r := &http.Request{Header: http.Header{"Accept": c.accept}}
		if got := negotiate(r, jsonType, eventType, lineType); got != c.want {
			t.Errorf("Accept %q: got %s, want %s", c.accept, got, c.want)
		}
	}
}
