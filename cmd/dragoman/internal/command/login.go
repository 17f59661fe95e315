package command

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/edge"
)

func loginCommand(io Streams) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use: "login [URL]", Short: "Keep the address and credential of a hub, or list those that are kept", Args: cobra.MaximumNArgs(1),
		Long: `Keep the address of a hub, and the credential for it, under a name, for --context. The
token is asked for at a terminal, without showing it, and else read from stdin; none is
needed with --cert, or for a hub without tokens: an empty line. Nothing is kept that the hub
refuses. Without URL the hubs that are kept are listed.`,
		Example: `  dragoman login https://hub.example.com --context work
  dragoman login https://hub.example.com < token
  dragoman agents --context work`,
	}
	f := c.Flags()
	to := &hubFlags{Streams: io}
	f.StringVar(&name, "context", "", "`name` to keep it under; default: the host of the address")
	addTrustFlags(f, to)
	completeFlag(c, "context", completeContexts)
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			if err := refuseFlags(c, "without URL", "context", "ca", "cert", "key", "insecure"); err != nil {
				return err
			}
			return listContexts(io)
		}
		if err := refuseEmpty(c, "context", "ca", "cert", "key"); err != nil {
			return err
		}
		all, err := readContexts() // before somebody types a token
		if err != nil {
			return err
		}
		one, err := to.toKeep(args[0])
		if err != nil {
			return err
		}
		at := client.Hub{URL: one.Hub, Named: "URL", CA: one.CA, Cert: one.Cert, Key: one.Key, Insecure: one.Insecure}
		if err := at.CheckURL(); err != nil {
			return err
		}
		if one.Cert == "" {
			if one.Token, err = readToken(io, one.Hub); err != nil {
				return err
			}
		}
		at.Token = one.Token
		var hub struct{ Version string }
		if err := at.Client().Get(c.Context(), "/v1/hub", &hub); err != nil {
			return fmt.Errorf("nothing was kept: %w", err)
		}
		if name == "" {
			name = hostOf(one.Hub)
		}
		all[name] = one
		if err := writeContexts(all); err != nil {
			return err
		}
		_, err = fmt.Fprintf(io.Out, "kept %s as %s: 'dragoman agents --context %[2]s' lists who is there, DRAGOMAN_CONTEXT=%[2]s is for all commands\n", visible(one.Hub), quoted(name))
		return err
	}
	return c
}

func logoutCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "logout NAME", Short: "Forget the address and credential of a hub", Args: cobra.ExactArgs(1),
		Long:              `Forget the address and credential of a hub that 'dragoman login' has kept.`,
		ValidArgsFunction: inOrder(completeContexts),
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		all, err := readContexts()
		if err != nil {
			return err
		}
		if _, known := all[args[0]]; !known {
			return unknownContext(args[0], all)
		}
		delete(all, args[0])
		if err := writeContexts(all); err != nil {
			return err
		}
		_, err = fmt.Fprintf(io.Out, "forgot %s\n", quoted(args[0]))
		return err
	}
	return c
}

// toKeep returns what is kept of a hub at an address, with the paths of files as they are from any directory.
func (to *hubFlags) toKeep(address string) (one kept, err error) {
	one = kept{Hub: strings.TrimSuffix(address, "/"), Insecure: to.insecure}
	for _, f := range []struct {
		flag, path string
		whole      *string
	}{{"ca", to.ca, &one.CA}, {"cert", to.cert, &one.Cert}, {"key", to.key, &one.Key}} {
		if f.path == "" {
			continue
		}
		if *f.whole, err = config.ExpandHome(f.path); err == nil {
			*f.whole, err = filepath.Abs(*f.whole)
		}
		if err != nil {
			return one, usagef("--%s %s: %w", f.flag, quoted(f.path), err)
		}
	}
	return one, nil
}

// maxToken is more than a token has, in bytes.
const maxToken = 64 << 10

// readToken reads a token from a person, who does not see it, or from a pipe.
func readToken(from Streams, hub string) (string, error) {
	if !isTerminal(from.In) {
		text, err := io.ReadAll(io.LimitReader(from.In, maxToken))
		return edge.Word(string(text)), err
	}
	fmt.Fprintf(from.Err, "Token for %s (it is not shown; nothing for none): ", visible(hub))
	fd := int(from.In.(*os.File).Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	read, interrupted := make(chan line, 1), make(chan struct{}, 1)
	stop := onInterrupt(func(int) { interrupted <- struct{}{} })
	defer stop()
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		fmt.Fprintln(from.Err)
		return edge.Word(string(l.text)), l.err
	case <-interrupted: // nothing ends the read
		_ = term.Restore(fd, before)
		fmt.Fprintln(from.Err)
		return "", &exit{ExitInterrupted, errLeft}
	}
}

// hostOf returns the host of an address, without its port.
func hostOf(address string) string {
	u, err := url.Parse(strings.Split(address, ",")[0])
	if err != nil {
		return address
	}
	return u.Hostname()
}

// listContexts prints the hubs that are kept, without their secrets.
func listContexts(io Streams) error {
	all, err := readContexts()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(io.Err, "no hub is kept: 'dragoman login URL' keeps one")
		return nil
	}
	t := newTable(io.Out, "CONTEXT", "CREDENTIAL", "HUB")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		credential := "-"
		switch one := all[name]; {
		case one.Cert != "":
			credential = "certificate"
		case one.Token != "":
			credential = "token"
		}
		t.row(name, credential, all[name].Hub)
	}
	return t.flush()
}

// completeContexts completes with the names of the hubs that are kept.
func completeContexts(*cobra.Command, []string, string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	all, _ := readContexts()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		names = append(names, cobra.CompletionWithDesc(name, all[name].Hub))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
