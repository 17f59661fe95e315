package web

import (
	"encoding/json"
	"net/http"
)

// problem is the body of an application/problem+json answer (RFC 9457).
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code,omitempty"`
}

// Problem answers a request with an error as application/problem+json: the status,
// its standard title, a code for programs and a detail for people, which should
// say what to change. Nothing may have been written before.
func Problem(w http.ResponseWriter, status int, code, detail string) {
	body, err := json.Marshal(problem{"about:blank", http.StatusText(status), status, detail, code})
	if err != nil { // five plain fields always encode
		panic(err)
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Del("Content-Encoding")
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
