package command

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/preset"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// speaksMCP is what --speaks calls a server of tools, which is a pack.
const speaksMCP = "mcp"

// addFlags are the flags of dragoman add.
type addFlags struct {
	speaks, url, tokenFile string
	env                    []string
}

func addCommand(to Streams) *cobra.Command {
	var a addFlags
	c := &cobra.Command{
		Use: "add [NAME] [flags] [-- COMMAND [ARG...]]", Short: "Add an agent, or a server of tools, to the settings of the hub",
		Long: `Write an agent into the settings file, of which everything else stays as it is, and let the
hub that runs take it at once. The file is that of the hub of yours that runs on this machine,
else the one that 'dragoman serve' would read here, else a new dragoman.yaml in this directory.

A NAME alone is one of the agents that are known: ` + strings.Join(presetNames(), ", ") + `.
They get the variables of their keys that are set here. Without a NAME, print which of them
this machine has, and how to install the others.

With a COMMAND or --url it is any other agent, which gets that NAME. --speaks says what it
speaks: text (the default), editor, pi-rpc or native as with 'dragoman agent', a2a (the
default with --url), or mcp for an MCP server, whose tools the hub then offers.`,
		Example: `  dragoman add                                              # what this machine has
  dragoman add claude
  dragoman add shout -- tr a-z A-Z
  dragoman add far --url https://example.com/agents/far
  dragoman add files --speaks mcp -- npx -y @modelcontextprotocol/server-filesystem .`,
		Args: cobra.ArbitraryArgs,
	}
	f := c.Flags()
	f.String("config", "", "YAML `file` with the settings")
	f.StringVar(&a.speaks, "speaks", "", "`dialect` of the agent: text, editor, pi-rpc, native, a2a or mcp; default: text, with --url a2a")
	f.StringVar(&a.url, "url", "", "`address` of an A2A agent or an MCP server, in place of a command")
	f.StringVar(&a.tokenFile, "token-file", "", "`file` with the token for --url")
	f.StringArrayVar(&a.env, "env", nil, "`variable` for the command: NAME passes on that of the hub, NAME=value sets one; may be repeated")
	completeFlag(c, "speaks", fixed(append(slices.Clone(config.Speaks), config.SpeaksA2A, speaksMCP)...))
	c.ValidArgsFunction = inOrder(fixed(presetNames()...))
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := refuseEmpty(c, "url", "token-file", "env"); err != nil {
			return err
		}
		if len(args) == 0 {
			if err := refuseFlags(c, "without a NAME", "speaks", "url", "token-file", "env"); err != nil {
				return err
			}
			file, _ := fileToAdd(c) // whatever is wrong with it is said when something is added
			return listPresets(to.Out, file.settings)
		}
		e, err := a.entry(c, args)
		if err != nil {
			return err
		}
		file, err := fileToAdd(c)
		if err != nil {
			return err
		}
		return file.add(c.Context(), to, e)
	}
	return c
}

// presetNames are the names of the agents that are known.
func presetNames() (all []string) {
	for _, a := range preset.Agents {
		all = append(all, a.Name)
	}
	return all
}

// newEntry is what is to be added to the settings.
type newEntry struct {
	list, name string
	value      any             // a *config.Agent or a *config.Pack
	process    *config.Process // its own
	note       string
}

func newAgent(a config.Agent) newEntry {
	return newEntry{list: "agents", name: a.Name, value: &a, process: &a.Process}
}

func newPack(p config.Pack) newEntry {
	return newEntry{list: "packs", name: p.Name, value: &p, process: &p.Process}
}

// check returns a usage error for what cannot be started, and warns of what may keep it from working.
func (e newEntry) check(warnings io.Writer) error {
	if p, is := e.value.(*config.Pack); is {
		return reportFindings(p.Check(), supervisor.Check(p.Process, p.Remote), warnings)
	}
	return checkEntry(*e.value.(*config.Agent), warnings)
}

// entry returns what the arguments add.
func (a addFlags) entry(c *cobra.Command, args []string) (newEntry, error) {
	name, dash := args[0], c.ArgsLenAtDash()
	command := args[1:]
	switch {
	case dash == 0:
		return newEntry{}, usagef("NAME is missing before --: write 'dragoman add NAME -- COMMAND'")
	case dash < 0 && len(command) > 0:
		return newEntry{}, usagef("unexpected argument %q: for a command write 'dragoman add %s -- %s'", command[0], quoted(name), strings.Join(command, " "))
	case dash > 1:
		return newEntry{}, usagef("one NAME stands before --, got %s", strings.Join(args[:dash], " "))
	case len(command) > 0 && a.url != "":
		return newEntry{}, usagef("--url is in place of a command: leave one of them out")
	case len(command) == 0 && a.url == "":
		return a.known(c, name)
	}
	process := config.Process{Command: command, Env: a.env}
	remote := config.Remote{URL: a.url, TokenFile: a.tokenFile}
	if a.speaks == speaksMCP {
		return newPack(config.Pack{Name: name, Process: process, Remote: remote}), nil
	}
	usual, choices := config.SpeaksText, append(slices.Clone(config.Speaks), speaksMCP)
	if a.url != "" {
		usual, choices = config.SpeaksA2A, []string{config.SpeaksA2A, speaksMCP}
	}
	speaks := cmp.Or(a.speaks, usual)
	if !slices.Contains(choices, speaks) {
		return newEntry{}, unknownSpeaks(speaks, choices)
	}
	return newAgent(config.Agent{Name: name, Dialect: speaks, Process: process, Remote: remote}), nil
}

// known returns one of the agents that are known.
func (a addFlags) known(c *cobra.Command, name string) (newEntry, error) {
	known, is := preset.Named(name)
	if !is {
		meant := "want " + choice(name, presetNames()) + "."
		if near := suggest.Nearest(name, presetNames()); near != "" {
			meant = "did you mean " + near + "?"
		}
		return newEntry{}, usagef("unknown agent %q: %s For another one write 'dragoman add %s -- COMMAND', or --url", name, meant, quoted(name))
	}
	if err := refuseFlags(c, "without a command or --url", "speaks", "token-file"); err != nil {
		return newEntry{}, err
	}
	if _, err := exec.LookPath(known.Program()); err != nil {
		return newEntry{}, usagef("%s is not here: %s is not found in PATH. Install it %s", known.Title, known.Program(), known.Install())
	}
	agent := known.Entry(os.Environ())
	agent.Env = append(agent.Env, a.env...)
	e := newAgent(agent)
	e.note = known.Note
	return e, nil
}

// listPresets prints the agents that are known, and what to do next with each.
func listPresets(out io.Writer, settings config.Config) error {
	t := newTable(out, "NAME", "AGENT", "PROGRAM", "NEXT")
	for _, a := range preset.Agents {
		program, err := exec.LookPath(a.Program())
		next := "dragoman add " + a.Name
		switch {
		case slices.Contains(settings.Agents.Names(), a.Name):
			next = "dragoman ask " + a.Name + " hello"
		case err != nil && a.Package == "":
			continue // known where it is installed
		case err != nil:
			program, next = "-", "npm install --global "+a.Package
		}
		t.row(a.Name, a.Title, program, next)
	}
	return t.flush()
}
