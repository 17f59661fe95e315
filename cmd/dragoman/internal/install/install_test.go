package install

import "testing"

func TestANetworkErrorOfAnInstallerIsRecognized(t *testing.T) {
	for printed, want := range map[string]bool{
		"npm error code EAI_AGAIN\nnpm error syscall getaddrinfo":                                            true,
		"FetchError: network timeout at: https://registry.example/ws":                                        true,
		"Err:1 http://deb.example stable InRelease\n  Temporary failure resolving 'deb.x'":                   true,
		"Could not connect to deb.example:80 (192.0.2.1), connection timed out":                              true,
		`x@v1: Get "https://proxy.example/x/@v/v1.zip": dial tcp: lookup proxy.example: no such host`:        true,
		`x@v1: Get "https://proxy.example/x/@v/v1.zip": dial tcp 192.0.2.1:443: connect: connection refused`: true,
		"npm error code E404\nnpm error 404 Not Found":                                                       false,
		"npm error code EINTEGRITY":                                            false,
		"E: Unable to locate package python3-websockets":                       false,
		"E: The repository 'http://deb.example stable Release' is not signed.": false,
		"no required module provides package example.com/x; to add it:":        false,
	} {
		if got := unreachable.MatchString(printed); got != want {
			t.Errorf("%q: got %v, want %v", printed, got, want)
		}
	}
}
