package control_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax/control"
)

func TestOnlyAddressesOfThePublicInternetAreTargets(t *testing.T) {
	none := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") })
	withControl(t, control.Options{Transport: none}, func(f *fixture) {
		for address, want := range map[string]bool{
			"93.184.216.34": true, "2606:2800:220:1::1": true,
			"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.0.1": false, "169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false,
			"224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false, "240.0.0.1": false, "192.0.2.1": false,
			"::1": false, "::": false, "fe80::1": false, "fd00::1": false, "::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::7f00:1": false, "ff02::1": false,
		} {
			host := address
			if netip.MustParseAddr(address).Is6() {
				host = "[" + address + "]"
			}
			code, text := f.call("POST", "/api/executions", `{"capability":"shouting","input":"hello","webhook":{"url":"https://`+host+`/"}}`)
			if got := code == http.StatusAccepted; got != want || !got && !strings.Contains(text, "is no address of the public Internet") {
				f.Errorf("%s: got %d %s, want public %t", address, code, text, want)
			}
		}
	})
}
