// Package install installs programs of others for tests, from npm, from Debian and from the Go
// module proxy. A test whose programs cannot be installed is told as NOT RUN, or fails with
// -install.required. Only tests import it.
package install
