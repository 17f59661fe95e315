package config

// TLS are the settings of encryption.
type TLS struct {
	// Cert and Key are the paths of the certificate with its chain, and of its key. ClientCA
	// is that of the authorities of client certificates.
	Cert, Key, ClientCA string
}

func (s *TLS) settings(t *table) {
	add(t, "cert", &s.Cert, "", "PEM file with the certificate of the hub and those between it and the authority. With one, every TCP listener speaks TLS only.").path()
	add(t, "key", &s.Key, "", "PEM file with the private key of tls.cert.").path()
	add(t, "client_ca", &s.ClientCA, "", "PEM file with the authorities whose client certificates are accepted. A client may present one; its URI, else its common name, is the principal.").path()
}

// Authenticates reports whether those who connect have to authenticate.
func (c Config) Authenticates() bool { return c.Auth.Required() || c.TLS.ClientCA != "" }
