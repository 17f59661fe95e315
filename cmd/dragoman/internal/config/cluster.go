package config

// Cluster are the settings of a hub that is one of several.
type Cluster struct {
	Name, Listen, Advertise, SecretFile string
	Peers                               []string
	TLS                                 ClusterTLS
}

// ClusterTLS are the certificates of the connections between hubs.
type ClusterTLS struct{ Cert, Key, CA string }

func (c *Cluster) settings(t *table) {
	const name = `^[A-Za-z0-9_-]+$`
	add(t, "name", &c.Name, "dragoman", "Name of the cluster, the same at all of its hubs.").matching(name, "letters, digits, - and _")
	add(t, "listen", &c.Listen, "", "Address at which this hub takes the connections of the other hubs, host:port. Empty for a hub alone, or with journal.nats_url.").flag("cluster-listen", "address")
	add(t, "peers", &c.Peers, []string{}, "Addresses of the hubs of the cluster, as they are reached from here; the own one may be among them.").flag("cluster-peers", "addresses")
	add(t, "advertise", &c.Advertise, "", "Address at which the other hubs reach this one, if that is not cluster.listen, as behind NAT or in a container.")
	add(t, "secret_file", &c.SecretFile, "", "File with the secret that all hubs of the cluster share, of at least 16 bytes. It also encrypts their connections, without cluster.tls.").path()
	tls := t.group("tls", "Certificates for the connections between hubs.")
	add(tls, "cert", &c.TLS.Cert, "", "PEM file with the certificate of this hub for the others.").path()
	add(tls, "key", &c.TLS.Key, "", "PEM file with the private key of cluster.tls.cert.").path()
	add(tls, "ca", &c.TLS.CA, "", "PEM file with the authorities of the hubs' certificates.").path()
}

// Clustered reports whether the hub is one of several: it has a name, and a way to the others.
func (c Config) Clustered() bool {
	return c.HubName != "" && (c.Cluster.Listen != "" || c.Journal.NATSURL != "")
}
