package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// mayQuestion is the question of 'check --may'.
type mayQuestion struct {
	asked                        bool
	roles, capabilities, domains []string
	hub                          *hubFlags
}

// questionFlags are its flags, which make no sense without --may.
var questionFlags = []string{"role", "capability", "domain", "hub", "token", "ca", "cert", "key"}

func (q *mayQuestion) addFlags(c *cobra.Command, io Streams) {
	f := c.Flags()
	f.BoolVar(&q.asked, "may", false, "answer whether a principal has a right on a receiver")
	f.StringArrayVar(&q.roles, "role", nil, "with --may: a `name` of a role that the principal has, instead of those of its tokens and keys; may be repeated")
	f.StringArrayVar(&q.capabilities, "capability", nil, "with --may: a `name` of a capability that the receiver has; may be repeated")
	f.StringArrayVar(&q.domains, "domain", nil, "with --may: a `name` of a domain that the receiver has; may be repeated")
	q.hub = addHubFlags(f, io, "")
	f.Lookup("hub").Usage = "with --may: `address` of a running hub that is asked what the receiver has declared"
	f.Lookup("hub").DefValue = ""
	for _, name := range []string{"ca", "cert", "key"} {
		f.Lookup(name).Usage = "with --hub: " + f.Lookup(name).Usage
	}
	f.Lookup("token").Usage = "with --hub: `token` to authenticate with (DRAGOMAN_TOKEN)"
}

// complete completes the arguments.
func (q *mayQuestion) complete(c *cobra.Command, args []string, given string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 1:
		return fixed(rightNames()...)(c, args, given)
	case 2:
		return fromHub(q.hub, agentIDs)(c, args, given)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// mayAnswer is the answer for one credential of the principal.
type mayAnswer struct {
	// With names the credential; "" if there is one answer for all.
	With    string `json:"with,omitempty"`
	Allowed bool   `json:"allowed"`
	// Line is the line of the rule that decides; 0 for none.
	Line   int    `json:"line,omitempty"`
	Answer string `json:"answer"`
}

// answer prints whether the principal of the arguments has the right, and why. It returns
// errQuiet for no.
func (q *mayQuestion) answer(c *cobra.Command, settings config.Config, io Streams, args []string, asJSON bool) error {
	right, err := policy.ParseRight(args[1])
	if err != nil {
		return usagef("%w", err)
	}
	to, err := policy.ParseTarget(cmp.Or(strings.Join(args[2:], ""), "hub"))
	if err != nil {
		return usagef("%w", err)
	}
	about := policy.Object{Target: to}
	if about, err = q.known(c.Context(), about, settings, c.Flags().Changed("hub")); err != nil {
		return err
	}
	auth, err := credentials.ReadAuth(settings.Auth)
	if err != nil {
		return wrongSettings(err)
	}
	var table *policy.Table
	if settings.Auth.Rules != "" {
		if table, err = credentials.ReadRules(settings.Auth.Rules); err != nil {
			return wrongSettings(err)
		}
	}
	answers := decideAll(table, asWhom(ownersIn(auth), args[0], q.roles), right, about)
	allowed := !slices.ContainsFunc(answers, func(a mayAnswer) bool { return !a.Allowed })
	if asJSON {
		err = printJSON(io.Out, map[string]any{"allowed": allowed, "answers": answers})
	} else {
		err = printAnswers(io.Out, answers)
	}
	if err == nil && !allowed {
		return errQuiet
	}
	return err
}

// ownersIn returns the owners of the tokens and keys of the settings.
func ownersIn(s auth.Settings) (all []owner) {
	for i, t := range s.Tokens {
		all = append(all, owner{t.Owner(), fmt.Sprintf("token %d", i+1)})
	}
	for _, k := range s.Keys {
		all = append(all, owner{k.Owner(), "the SSH key " + k.Fingerprint.String()[:16]})
	}
	return all
}

// printAnswers prints a line for each answer.
func printAnswers(out io.Writer, answers []mayAnswer) error {
	for _, a := range answers {
		text := a.Answer
		if a.With != "" {
			text = "with " + a.With + ": " + text
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return nil
}

// rightNames are the names of all rights.
func rightNames() (all []string) {
	for _, right := range policy.Rights() {
		all = append(all, right.String())
	}
	return all
}

// known adds what the agent of the question has declared: by flags, in the settings, or at a
// running hub.
func (q *mayQuestion) known(ctx context.Context, about policy.Object, settings config.Config, ask bool) (policy.Object, error) {
	to := &about.Target
	if to.Agent == "" && len(q.capabilities)+len(q.domains) > 0 {
		return about, usagef("--capability and --domain are for agents: name one")
	}
	to.Capabilities = append(to.Capabilities, q.capabilities...)
	to.Domains = append(to.Domains, q.domains...)
	if to.Agent == "" || to.Agent == "*" {
		return about, nil
	}
	if ask {
		var a hub.AgentStatus
		if err := q.hub.client().Get(ctx, "/v1/agents/"+url.PathEscape(string(to.Agent)), &a); err != nil {
			return about, err
		}
		declared := policy.TargetOf(a.Card)
		to.Agent, about.Provider = declared.Agent, a.Principal
		to.Capabilities, to.Domains = append(to.Capabilities, declared.Capabilities...), append(to.Domains, declared.Domains...)
		return about, nil
	}
	for _, a := range settings.Agents {
		if core.AgentID(a.Name) == to.Agent {
			to.Capabilities, to.Domains = append(to.Capabilities, a.Capabilities...), append(to.Domains, a.Domains...)
		}
	}
	return about, nil
}

// owner is a principal with the name of its credential.
type owner struct {
	core.Principal
	with string
}

// asWhom returns the principal as each of its credentials makes it, or with the given roles.
func asWhom(owners []owner, name string, roles []string) []owner {
	bare := owner{Principal: core.Principal{ID: name, Authenticated: true}}
	if len(roles) > 0 {
		bare.Credential = &core.Credential{Roles: roles}
		return []owner{bare}
	}
	owners = slices.DeleteFunc(owners, func(o owner) bool { return o.ID != name })
	if len(owners) == 0 {
		return []owner{bare}
	}
	return owners
}

// decideAll returns the answer for each credential, or one if all have the same.
func decideAll(table *policy.Table, owners []owner, right core.Right, about policy.Object) (all []mayAnswer) {
	for _, o := range owners {
		a := decideOne(table, o.Principal, right, about)
		a.With = o.with
		all = append(all, a)
	}
	if !slices.ContainsFunc(all, func(a mayAnswer) bool { return a.Answer != all[0].Answer }) {
		all[0].With = ""
		return all[:1]
	}
	return all
}

func decideOne(table *policy.Table, p core.Principal, right core.Right, about policy.Object) mayAnswer {
	if table == nil {
		return withoutRules(p, right, about)
	}
	d := table.Explain(p, right, about.Target)
	a := mayAnswer{Allowed: d.Allowed, Answer: d.String()}
	if d.Rule != nil {
		a.Line = d.Rule.Line
	}
	switch may := table.May(p, right, about); {
	case may && !d.Allowed:
		a = mayAnswer{Allowed: true, Answer: "yes: the agent is its own"}
	case !may && d.Allowed:
		a = mayAnswer{Answer: "no: nobody approves what an agent of its own does"}
	}
	return a
}

// withoutRules decides where there is no file of rules: about tasks of others, since everybody
// has those rights on its own.
func withoutRules(p core.Principal, right core.Right, about policy.Object) mayAnswer {
	switch right {
	case core.RightRead, core.RightSteer, core.RightApprove, core.RightAnswer:
		about.Owner = core.Principal{ID: p.ID + "?"} // anybody else
	}
	switch may := (policy.Default{}).May(p, right, about); {
	case may && p.Operator:
		return mayAnswer{Allowed: true, Answer: "yes: an operator may, and there are no rules (auth.rules)"}
	case may:
		return mayAnswer{Allowed: true, Answer: "yes: there are no rules (auth.rules)"}
	case about.Owner.ID != "":
		return mayAnswer{Answer: "no: without rules (auth.rules), only who asked for a task and operators may"}
	}
	return mayAnswer{Answer: "no: without rules (auth.rules), only operators may"}
}
