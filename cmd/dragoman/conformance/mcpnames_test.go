package conformance

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// mcpPack is the name of the pack with the tools of the suite.
const mcpPack = "conformance"

// withoutPack serves a hub under the names of tools that the suite asks for: those of a hub begin with the
// name of their pack. Everything else passes as it is. It returns the address.
func withoutPack(t *testing.T, h hub, names []string) string {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: h.http}
	full := func(name string) string {
		if slices.Contains(names, name) {
			return mcpPack + "." + name
		}
		return name
	}
	srv := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1, // streams are passed on at once
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			if name := r.In.Header.Get("Mcp-Name"); name != "" {
				r.Out.Header.Set("Mcp-Name", full(name))
			}
			if r.In.Body == nil {
				return
			}
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				return // the client has gone
			}
			m := strictjson.ParseValid(body)
			if name, ok := m.Get("params", "name").Text(); ok {
				params := m.Get("params").Set(strictjson.Field{Key: "name", Value: strictjson.Encode(full(name))})
				body = m.Set(strictjson.Field{Key: "params", Value: params})
			}
			r.Out.Body, r.Out.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
		},
		ModifyResponse: func(r *http.Response) error {
			if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			short := strings.ReplaceAll(string(body), `"name":"`+mcpPack+`.`, `"name":"`)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(short)), int64(len(short))
			r.Header.Set("Content-Length", strconv.Itoa(len(short)))
			return err
		},
	})
	t.Cleanup(srv.Close)
	return srv.URL + "/mcp"
}
