package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/edge"
)

// hubFlags are the flags of a command that talks to a hub, and the streams that it prints to.
type hubFlags struct {
	Streams
	hub, token, grpc, ca, cert, key string
	json, wide, insecure            bool

	context func() (name, given string) // the hub that is kept, and the flag or variable that names it; "" for none
	named   func() string               // the flag or variable that hub was given in
	again   func() string               // the flag that names it in another command, with a blank before; "" if there is none
	changed func(flag string) bool
}

// addHubFlags declares --hub, --context and --token, and --json if jsonUsage describes it.
func addHubFlags(fs *pflag.FlagSet, io Streams, jsonUsage string) *hubFlags {
	to := &hubFlags{Streams: io, changed: fs.Changed}
	const name, flag = "DRAGOMAN_HUB", "hub"
	fromEnviron := variable(name)
	of := fs.String("context", "", "`name` of a hub that 'dragoman login' has kept, in place of --hub and --token (DRAGOMAN_CONTEXT)")
	to.context = func() (string, string) {
		switch {
		case *of != "":
			return *of, "--context"
		case fs.Changed(flag) || fromEnviron != "":
			return "", ""
		}
		return variable("DRAGOMAN_CONTEXT"), "DRAGOMAN_CONTEXT"
	}
	fs.StringVar(&to.hub, flag, cmp.Or(fromEnviron, "http://127.0.0.1:8080"), "`address` of the hub, or addresses of several hubs of a cluster with commas between: the next one is asked where one does not answer (DRAGOMAN_HUB)")
	to.named = func() string {
		if fromEnviron != "" && !fs.Changed(flag) {
			return name
		}
		return "--" + flag
	}
	to.again = func() string {
		switch {
		case *of != "":
			return " --context " + quoted(*of)
		case fs.Changed(flag):
			return " --" + flag + " " + quoted(to.hub)
		}
		return ""
	}
	fs.StringVar(&to.token, "token", variable("DRAGOMAN_TOKEN"), "`token` to authenticate with (DRAGOMAN_TOKEN)")
	fs.Lookup("token").DefValue = "" // the help shows no secret
	addTrustFlags(fs, to)
	if jsonUsage != "" {
		fs.BoolVar(&to.json, "json", false, jsonUsage)
	}
	return to
}

// addTrustFlags declares the flags for certificates: those to trust, and the one to present.
func addTrustFlags(fs *pflag.FlagSet, to *hubFlags) {
	fs.StringVar(&to.ca, "ca", variable("DRAGOMAN_CA"), "PEM `file` with authorities to trust beside those of the system, for a hub at https (DRAGOMAN_CA)")
	fs.Lookup("ca").DefValue = ""
	fs.StringVar(&to.cert, "cert", variable("DRAGOMAN_CERT"), "PEM `file` with a certificate to authenticate with, at a hub with tls.client_ca (DRAGOMAN_CERT)")
	fs.StringVar(&to.key, "key", variable("DRAGOMAN_KEY"), "PEM `file` with the private key of --cert (DRAGOMAN_KEY)")
	fs.Lookup("cert").DefValue, fs.Lookup("key").DefValue = "", ""
	if fs.Lookup("insecure") == nil { // that of 'check' is a setting: it sends no token in clear
		fs.BoolVar(&to.insecure, "insecure", false, "send the token unencrypted to a hub beyond this machine too")
	}
}

// variable returns the value of a variable.
func variable(name string) string { return edge.Word(os.Getenv(name)) }

// address returns the hub of the flags. A hub that is kept comes with its credential, which flags override and
// variables do not.
func (to *hubFlags) address() client.Hub {
	at := client.Hub{
		URL: to.hub, Named: to.named(), GRPC: to.grpc, Token: edge.Word(to.token), Insecure: to.insecure,
		CA: to.ca, Cert: to.cert, Key: to.key,
	}
	name, given := to.context()
	switch {
	case name == "":
		return at
	case to.changed("hub"):
		at.Wrong = client.AddressError{Err: errors.New("--hub and --context: give one of them")}
		return at
	}
	one, err := contextNamed(name, given)
	at.URL, at.Named, at.Wrong, at.Insecure = one.Hub, given, err, at.Insecure || one.Insecure
	for flag, of := range map[string]struct{ to, kept *string }{"token": {&at.Token, &one.Token}, "ca": {&at.CA, &one.CA}, "cert": {&at.Cert, &one.Cert}, "key": {&at.Key, &one.Key}} {
		if !to.changed(flag) {
			*of.to = *of.kept
		}
	}
	return at
}

func (to *hubFlags) client() *client.Client { return to.address().Client() }

// print prints a line, or v if --json is given.
func (to *hubFlags) print(v any, line string) error {
	if to.json {
		return printJSON(to.Out, v)
	}
	_, err := fmt.Fprintln(to.Out, visible(line))
	return err
}

// printList prints a table of items, or v if --json is given. Without items it prints the
// text none on stderr.
func printList[T any](to *hubFlags, v any, items []T, none string, heads []string, row func(T) []string) error {
	switch {
	case to.json:
		return printJSON(to.Out, v)
	case len(items) == 0:
		fmt.Fprintln(to.Err, none)
		return nil
	}
	t := newTable(to.Out, heads...)
	if to.fits() {
		t.fit()
	}
	for _, item := range items {
		t.row(row(item)...)
	}
	return t.flush()
}

// waitFlag declares --wait.
func waitFlag(fs *pflag.FlagSet, what string) *time.Duration {
	d := timeFlag(fs, "wait", 0, "wait up to `time` for "+what+" that is not running yet (--wait=30s)")
	fs.Lookup("wait").NoOptDefVal = waitUsual
	return d
}

// checkWait returns a usage error for "--wait 30s", where 30s would be an argument.
func checkWait(c *cobra.Command, args []string, what string) error {
	if _, isTime := config.ParseTime(args[0]); isTime && c.Flags().Changed("wait") {
		return usagef("%s would be %s: write --wait=%[1]s", args[0], what)
	}
	return nil
}

// waitUsual is the value of --wait without a time.
const waitUsual = "5m"
