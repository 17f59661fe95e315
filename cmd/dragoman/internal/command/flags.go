package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// flagError returns a usage error for a flag that cannot be parsed, with what to write
// instead.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	text := err.Error()
	switch {
	case errors.As(err, &unknown):
		text = unknownFlag(c, unknown)
	case errors.As(err, &bare):
		text = fmt.Sprintf("--%s needs a value", bare.GetFlag().Name)
	case errors.As(err, &wrong):
		text = fmt.Sprintf("--%s %q: %s", wrong.GetFlag().Name, wrong.GetValue(), allowedBy(wrong.GetFlag(), wrong.GetValue(), wrong))
	}
	see := "; see"
	if strings.HasSuffix(text, "?") {
		see = " See"
	}
	return usagef("%s%s '%s --help'", text, see, c.CommandPath())
}

// optionFlag adds --option, which may be repeated.
func optionFlag(f *pflag.FlagSet, what string) *[]string {
	return f.StringArray("option", nil, "`NAME=VALUE` that "+what+", as it announces them, such as mode=plan; may be repeated")
}

// optionsOf returns the values of --option.
func optionsOf(given []string) (core.Options, error) {
	var all core.Options
	for _, o := range given {
		name, value, is := strings.Cut(o, "=")
		if !is || name == "" || value == "" {
			return nil, usagef("--option %s: want NAME=VALUE, such as mode=plan", quoted(o))
		}
		if all == nil {
			all = core.Options{}
		}
		all[name] = value
	}
	return all, nil
}

// unknownFlag suggests the closest flag of the command.
func unknownFlag(c *cobra.Command, given *pflag.NotExistError) string {
	if given.GetSpecifiedShortnames() != "" {
		return "unknown flag -" + given.GetSpecifiedName()
	}
	text := "unknown flag --" + given.GetSpecifiedName()
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := suggest.Nearest(given.GetSpecifiedName(), known); near != "" {
		text += ": did you mean --" + near + "?"
	}
	return text
}

// allowedBy returns what a flag accepts. The errors of strconv and time are for programmers.
func allowedBy(f *pflag.Flag, given string, err error) string {
	switch f.Value.Type() {
	case "duration":
		text := "want a time such as " + config.TimeForms
		if _, ok := config.ParseTime(given); ok {
			text = "want a time that is not negative, such as " + config.TimeForms
		}
		if n, err := strconv.ParseUint(given, 10, 16); err == nil {
			text += fmt.Sprintf(": write it with its unit, such as %ds", n)
		}
		return text
	case "int", "int64":
		return "want a whole number"
	case "bool":
		return "want true or false"
	}
	return errors.Unwrap(err).Error()
}

// choice lists what may be written instead of a text, or the one that was probably meant.
func choice(text string, from []string) string {
	if near := suggest.Nearest(text, from); near != "" {
		return near
	}
	last := len(from) - 1
	return strings.Join(from[:last], ", ") + " or " + from[last]
}

// timeFlag declares a flag for a duration, which may be in days.
func timeFlag(fs *pflag.FlagSet, name string, otherwise time.Duration, usage string) *time.Duration {
	d := otherwise
	fs.Var((*config.TimeValue)(&d), name, usage)
	return &d
}

// refuseEmpty returns a usage error for an empty flag value, which is usually an unset
// variable of a script.
func refuseEmpty(c *cobra.Command, names ...string) error {
	for _, name := range names {
		f := c.Flags().Lookup(name)
		if !f.Changed {
			continue
		}
		given := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			given = list.GetSlice()
		}
		if len(given) == 0 || slices.Contains(given, "") {
			what, _ := pflag.UnquoteUsage(f)
			return usagef("--%s is empty: give the %s, or leave it out", name, what)
		}
	}
	return nil
}

// refuseFlags returns a usage error for a flag that does nothing here.
func refuseFlags(c *cobra.Command, here string, names ...string) error {
	for _, name := range names {
		if c.Flags().Changed(name) {
			return usagef("--%s has no effect %s: leave it out", name, here)
		}
	}
	return nil
}

// memberFlags are the flags whose values the members of a request to the hub have.
var memberFlags = map[string]string{
	"deadline_ms:": "timeout", "max_tokens:": "max-tokens", "context:": "background", "max_concurrent:": "max-concurrent",
	"heartbeat_interval_ms:": "heartbeat", "?before=": "before",
}

// refusedFlag returns the flag that a refusal by the hub is about, as the prefix of the error;
// "" if it is about none that was given.
func refusedFlag(c *cobra.Command, err error) string {
	var refused client.Refusal
	if !errors.As(err, &refused) {
		return ""
	}
	for member, flag := range memberFlags {
		if strings.HasPrefix(refused.Message, member) && c.Flags().Changed(flag) {
			return "--" + flag + ": "
		}
	}
	return ""
}

// usageArgs wraps an argument check: its usage error names the argument that is missing,
// empty or unexpected.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		fits, wrong := check(c, args) == nil, ""
		if !fits {
			wrong = nameOf(c, len(args)) + " is missing"
		}
		for n, arg := range args {
			switch name := nameOf(c, n); {
			case !fits && check(c, args[:n]) == nil:
				wrong = fmt.Sprintf("unexpected argument %q", strings.Join(args[n:], " "))
			case fits && wrong == "" && arg == "" && !strings.HasSuffix(name, "..."): // which may be empty
				wrong = name + " is empty"
			}
		}
		if wrong == "" {
			return nil
		}
		if near := nearCommand(c, cmp.Or(args...)); len(args) > 0 && args[0] != "" && near != "" { // such as 'agents restrat bob'
			wrong += fmt.Sprintf(": did you mean '%s %s'? Else", c.CommandPath(), near)
			return usagef("%s write '%s'; see '%s --help'", wrong, c.UseLine(), c.CommandPath())
		}
		return usagef("%s: write '%s'; see '%s --help'", wrong, c.UseLine(), c.CommandPath())
	}
}

// nameOf returns the name of the nth argument in the usage line. The last name is that of
// all further arguments.
func nameOf(c *cobra.Command, n int) string {
	_, names, _ := strings.Cut(c.Use, " ")
	if _, after, ok := strings.Cut(names, " -- "); ok {
		names = after // flags come before
	}
	all := strings.Fields(names)
	if len(all) == 0 {
		return ""
	}
	return strings.Trim(all[min(n, len(all)-1)], "[]")
}
