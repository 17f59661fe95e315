package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAHubThatStopsIsNoHubAndUnreachable(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("Server is shutting down\n")) // as a hub answers
	}))
	defer server.Close()
	_, err := client.DialWebSocket(t.Context(), client.Hub{URL: server.URL}, "/ws/native", nil, client.MaxNativeBytes)
	if !client.IsNoHub(err) || !errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) {
		t.Errorf("got %v, want that there is no hub yet, by an unreachable Fault", err)
	}
}
