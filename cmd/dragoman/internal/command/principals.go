package command

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core"
)

func principalsCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "principals", Short: "List who may connect, and decide on those who registered themselves",
		Long: `List who may connect to a hub, and decide on SSH keys that registered themselves. For
operators. Those who connect with a certificate or a JSON Web Token are not in the list:
the hub does not know them before.

  dragoman principals list
  dragoman principals approve agent-29d97ee7`,
		Args: subcommand, Run: printHelp,
	}
	c.AddCommand(principalsListCommand(io), decideCommand(io, "approve", "Let a principal that registered itself connect",
		`Let a principal connect that registered itself with an SSH key. The decision survives a
restart of a hub with a data directory. One that was revoked can be approved again.`, "may connect now"),
		decideCommand(io, "revoke", "Refuse a principal that registered itself",
			`Refuse a principal that registered itself with an SSH key. Its sessions end at once. A
principal with a token or a key in the settings is removed there, followed by SIGHUP.`, "is refused from now on, and its sessions have ended"))
	return c
}

func principalsListCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List who may connect", Args: usageArgs(cobra.NoArgs),
		Long: `List the principals of tokens and SSH keys, and the SSH keys that registered themselves.
Those that wait for a decision come first. A principal has a line for each credential.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var list principalList
		if err := to.client().Get(c.Context(), "/v1/principals", &list); err != nil {
			return err
		}
		const none = "the hub knows no principals: nobody has to authenticate, or all do with certificates or JSON Web Tokens"
		heads := []string{"PRINCIPAL", "STATUS", "CREDENTIAL", "KIND", "OPERATOR", "ROLES", "AGENTS", "SINCE", "EXPIRES", "FINGERPRINT"}
		return printList(to, list, list.Principals, none, heads, principalCells)
	}
	return c
}

// principalCells is the row of a principal.
func principalCells(p core.KnownPrincipal) []string {
	kind, operator, status := "-", "-", p.Status.String()
	if p.Status == core.PrincipalApproved && !p.Expires.IsZero() && time.Now().After(p.Expires) {
		status = "expired"
	}
	if p.Kind != 0 {
		kind = p.Kind.String()
	}
	if p.Operator {
		operator = "yes"
	}
	return []string{
		p.Principal, status, p.Credential, kind, operator, orDash(strings.Join(p.Roles, ",")), orDash(strings.Join(p.Agents, ",")),
		when(p.Since), when(p.Expires), orDash(p.Fingerprint),
	}
}

// when formats a time of the hub as a cell.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// decideCommand returns principals approve or revoke.
func decideCommand(io Streams, name, short, long, done string) *cobra.Command {
	c := &cobra.Command{
		Use: name + " PRINCIPAL", Short: short, Args: usageArgs(cobra.ExactArgs(1)),
		Long: long + "\n\n  dragoman principals " + name + " agent-29d97ee7",
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.ValidArgsFunction = inOrder(fromHub(to, principalIDs))
	c.RunE = func(c *cobra.Command, args []string) error {
		var answer struct {
			Principal string `json:"principal"`
			Status    string `json:"status"`
		}
		if err := to.client().Send(c.Context(), http.MethodPost, "/v1/principals/"+url.PathEscape(args[0])+"/"+name, struct{}{}, &answer); err != nil {
			return err
		}
		return to.print(answer, answer.Principal+" "+done)
	}
	return c
}
