package auth

import "testing"

func FuzzReadKeySet(f *testing.F) {
	f.Add(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
	f.Add(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"RSA","n":"AQAB","e":"AQAB"},{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := readKeySet([]byte(text))
		if (err == nil) != (len(keys) > 0) {
			t.Errorf("got %d keys and %v, want one of both", len(keys), err)
		}
		for _, key := range keys {
			if key.public == nil || len(key.methods) == 0 {
				t.Errorf("got %+v, want a key with algorithms", key)
			}
		}
	})
}

func FuzzReadRegistered(f *testing.F) {
	f.Add(`{"fingerprint":"0000000000000000000000000000000000000000000000000000000000000000","principal":"a","status":"revoked","since":"2026-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var one registered
		if err := readRegistered([]byte(text), &one); err == nil && (one.Principal == "" || one.Status == 0 || len(one.Fingerprint) != 64) {
			t.Errorf("got %+v, want it refused", one)
		}
	})
}
