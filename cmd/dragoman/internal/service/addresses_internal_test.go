package service

import (
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAHubTellsOthersWhereItsClientsReachIt(t *testing.T) {
	for _, c := range []struct{ http, listen, advertise, cert, want string }{
		{http: "10.0.0.1:8080", listen: "10.0.0.1:6222", want: "http://10.0.0.1:8080"},
		{http: "10.0.0.1:8080", listen: "10.0.0.1:6222", cert: "hub.crt", want: "https://10.0.0.1:8080"},
		{http: "127.0.0.1:8080", listen: "127.0.0.1:6222", want: "http://127.0.0.1:8080"},
		{http: "127.0.0.1:8080", listen: "10.0.0.1:6222"}, // behind a proxy, which it does not know
		{http: "127.0.0.1:8080"},
		{http: "[::]:8080", listen: "10.0.0.1:6222", want: "http://10.0.0.1:8080"},
		{http: "0.0.0.0:8080", listen: "0.0.0.0:6222", advertise: "hub-0.hubs:6222", want: "http://hub-0.hubs:8080"},
		{http: "0.0.0.0:8080", listen: "0.0.0.0:6222"},
		{http: "0.0.0.0:8080"}, // the hubs meet at an external server
		{http: "10.0.0.1:8080", want: "http://10.0.0.1:8080"},
		{http: "", listen: "10.0.0.1:6222"},
	} {
		settings := config.Config{Cluster: config.Cluster{Listen: c.listen, Advertise: c.advertise}, TLS: config.TLS{Cert: c.cert}}
		if got := (Addresses{HTTP: c.http}).forOthers(settings); got != c.want {
			t.Errorf("bound to %q, with cluster.listen %q and cluster.advertise %q: got %q, want %q", c.http, c.listen, c.advertise, got, c.want)
		}
	}
}
