package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addGroups adds all commands in the groups in which the help shows them.
func addGroups(root *cobra.Command, io Streams) {
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Talk", []*cobra.Command{askCommand(io), chatCommand(io), againCommand(io), delegateCommand(io), injectCommand(io), notifyCommand(io), cancelCommand(io), callCommand(io), threadsCommand(io), searchCommand(io)}},
		{"Decide", []*cobra.Command{approvalsCommand(io), approveCommand(io), denyCommand(io), questionsCommand(io), answerCommand(io)}},
		{"Watch", []*cobra.Command{tasksCommand(io), tailCommand(io), watchCommand(io), framesCommand(io), usageCommand(io), auditCommand(io)}},
		{"Agents", []*cobra.Command{addCommand(io), agentsCommand(io), packsCommand(io), agentCommand(io), stdioCommand(io), editorCommand(io), loginCommand(io), logoutCommand(io)}},
		{"Run a hub", []*cobra.Command{serveCommand(io), checkCommand(io), configCommand(io), tokenCommand(io), principalsCommand(io), hubsCommand(io), drainCommand(io)}},
		{"Develop", []*cobra.Command{demoCommand(io), versionCommand(io)}},
		{"", []*cobra.Command{reapCommand(), guardCommand(io)}},
	} {
		if g.title != "" {
			root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		}
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
}

// connectionFlags select the hub and the credential.
var connectionFlags = []string{"hub", "context", "token", "ca", "cert", "key", "insecure"}

// groupFlags has the help of each command with --hub show the connection flags below a heading of their own.
func groupFlags(root *cobra.Command) {
	plain := new(cobra.Command).UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		connection := pflag.NewFlagSet("", pflag.ContinueOnError)
		if c.Flags().Lookup("hub") != nil {
			for _, name := range connectionFlags {
				connection.AddFlag(c.Flags().Lookup(name))
			}
		}
		usages := connection.FlagUsages()
		connection.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
		defer connection.VisitAll(func(f *pflag.Flag) { f.Hidden = false })
		err := plain(c)
		if usages != "" {
			c.Printf("\nConnection:\n%s", usages)
		}
		return err
	})
}
