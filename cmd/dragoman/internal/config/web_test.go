package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHostsAndOriginsAreKeptAsTheyAreCompared(t *testing.T) {
	c, err := configOf(t, `
hosts: [Hub.Example.com, "tunnel.example:8443", "::1", "[::1]:80", "[fe80::1]", 192.0.2.1, "name.", my_hub, xn--bcher-kva.example]
origins: ["https://Console.Example.com/", "http://localhost:3000", "http://[::1]:8080", chrome-extension://abcdefgh, tauri://localhost]
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"hub.example.com", "tunnel.example", "::1", "::1", "fe80::1", "192.0.2.1", "name", "my_hub", "xn--bcher-kva.example"}
	origins := []string{"https://console.example.com", "http://localhost:3000", "http://[::1]:8080", "chrome-extension://abcdefgh", "tauri://localhost"}
	if diff := cmp.Diff([][]string{hosts, origins}, [][]string{c.Hosts, c.Origins}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeAHostOrAnOriginIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`hosts: ["https://hub.example.com/x"]`:     `hosts[0]: got "https://hub.example.com/x": it is a URL: write hub.example.com`,
		`hosts: [a.example, "b.example/x"]`:        `hosts[1]: got "b.example/x": it has a path: write b.example`,
		`hosts: ["a.example:70000"]`:               `hosts[0]: got "a.example:70000": "70000" is no port from 1 to 65535, and ports are not compared: write a.example`,
		`hosts: ["*.example.com"]`:                 `hosts[0]: got "*.example.com": wildcards are not supported: write each name`,
		`hosts: ["bücher.example"]`:                `hosts[0]: got "bücher.example": browsers send such a name in ASCII`,
		`hosts: [""]`:                              `hosts[0]: got "": want a name such as hub.example.com, or an IP address`,
		`hosts: "a b"`:                             `hosts[0]: got "a b": want a name such as hub.example.com`,
		`hosts: [1.2.3.4.5]`:                       `hosts[0]: got "1.2.3.4.5": want a name`,
		`hosts: ["[::1"]`:                          `hosts[0]: got "[::1": want a name`,
		`origins: [console.example.com]`:           `origins[0]: got "console.example.com": the scheme is missing: write https://console.example.com`,
		`origins: ["localhost:3000"]`:              `origins[0]: got "localhost:3000": the scheme is missing: write https://localhost:3000`,
		`origins: ["https://a.example/app"]`:       `origins[0]: got "https://a.example/app": an origin has no user, path or query: write https://a.example`,
		`origins: ["https://a.example?x"]`:         `origins[0]: got "https://a.example?x": an origin has no user, path or query: write https://a.example`,
		`origins: ["https://me@a.example"]`:        `an origin has no user, path or query: write https://a.example`,
		`origins: ["https://*.example.com"]`:       `origins[0]: got "https://*.example.com": wildcards are not supported: write each name`,
		`origins: ["*"]`:                           `origins[0]: got "*": the scheme is missing`,
		`origins: ["https://a.example:99999"]`:     `origins[0]: got "https://a.example:99999": its port is no number from 1 to 65535`,
		`origins: ["https://a.example:x"]`:         `origins[0]: got "https://a.example:x": its port is no number from 1 to 65535`,
		`origins: ["https://a.example:443"]`:       `origins[0]: got "https://a.example:443": browsers leave out the port 443: write https://a.example`,
		`origins: ["http://a.example:80"]`:         `browsers leave out the port 80: write http://a.example`,
		`origins: ["https://"]`:                    `origins[0]: got "https://": want scheme://host or scheme://host:port`,
		`origins: ["null"]`:                        `origins[0]: got "null": pages that are files`,
		`origins: ["file:///home/x"]`:              `pages that are files`,
		`origins: ["http://bücher.example"]`:       `browsers send such a name in ASCII`,
		"hosts: [a.example]\norigins: [b.example]": `dragoman.yaml:2: origins[0]: got "b.example": the scheme is missing`,
	} {
		if _, err := configOf(t, text, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	_, err := configOf(t, "", []string{"DRAGOMAN_ORIGINS=https://a.example,b.example"})
	if want := `DRAGOMAN_ORIGINS[1]: got "b.example": the scheme is missing: write https://b.example`; err == nil || err.Error() != want {
		t.Errorf("a variable: got %v, want %s", err, want)
	}
}
