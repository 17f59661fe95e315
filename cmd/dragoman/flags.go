package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says of a flag that cannot be read what to write instead, as a usage
// error.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	said := err.Error()
	switch {
	case errors.As(err, &unknown):
		said = unknownFlag(c, unknown)
	case errors.As(err, &bare):
		said = fmt.Sprintf("--%s wants a value", bare.GetFlag().Name)
	case errors.As(err, &wrong):
		said = fmt.Sprintf("--%s %q: %s", wrong.GetFlag().Name, wrong.GetValue(), allowedBy(wrong.GetFlag(), wrong))
	}
	return &exit{exitUsage, fmt.Errorf("%s; see '%s --help'", said, c.CommandPath())}
}

// unknownFlag names the flag of the command that is most like the one that was
// given.
func unknownFlag(c *cobra.Command, given *pflag.NotExistError) string {
	if given.GetSpecifiedShortnames() != "" {
		return "unknown flag -" + given.GetSpecifiedName()
	}
	said := "unknown flag --" + given.GetSpecifiedName()
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := nearest(given.GetSpecifiedName(), known); near != "" {
		said += ": did you mean --" + near + "?"
	}
	return said
}

// allowedBy says what a flag takes. The texts of strconv and time are for
// programmers.
func allowedBy(f *pflag.Flag, err error) string {
	switch f.Value.Type() {
	case "duration":
		return "want a time such as 20s or 5m"
	case "int", "int64":
		return "want a whole number"
	case "bool":
		return "want true or false"
	}
	return errors.Unwrap(err).Error()
}

// refuseEmpty makes a usage error of a flag that was given an empty text: it stands
// for a variable of a script that is not set more often than for nothing.
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
			return &exit{exitUsage, fmt.Errorf("--%s is empty: give the %s, or leave it out", name, what)}
		}
	}
	return nil
}

// usageArgs makes a wrong number of arguments a usage error that names what is
// missing, or too much.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check(c, args) == nil {
			return nil
		}
		wrong := missing(c, len(args)) + " is missing"
		for n := range args {
			if check(c, args[:n]) == nil {
				wrong = fmt.Sprintf("%q is too much", strings.Join(args[n:], " "))
			}
		}
		return &exit{exitUsage, fmt.Errorf("%s: write '%s'; see '%s --help'", wrong, c.UseLine(), c.CommandPath())}
	}
}

// missing is the name of the first argument that was not given, as the line of use
// has it.
func missing(c *cobra.Command, given int) string {
	use := c.Use
	if _, after, ok := strings.Cut(use, " -- "); ok {
		return strings.Fields(after)[0] // what stands before are flags
	}
	if names := strings.Fields(use)[1:]; given < len(names) {
		return names[given]
	}
	return "something"
}
