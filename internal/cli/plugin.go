package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joiner-sh/joiner/internal/suggest"
)

// The names by which kubectl finds the program: as a plugin, and to complete what is typed after it.
const (
	pluginName   = "kubectl-joiner"
	completeName = "kubectl_complete-joiner"
)

// CalledAs makes root speak of itself as it was called, by the program's path and name, and returns the arguments to run it with: as
// kubectl-joiner it is "kubectl joiner", and kubectl_complete-joiner completes. Call it when root has all of its commands.
func CalledAs(root *cobra.Command, program string, args []string) []string {
	switch strings.TrimSuffix(filepath.Base(program), ".exe") {
	case completeName:
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	case pluginName:
	default:
		return args
	}
	if root.Annotations == nil {
		root.Annotations = map[string]string{}
	}
	root.Annotations[cobra.CommandDisplayNameAnnotation] = "kubectl " + root.Name()
	var names []string
	for _, c := range root.Commands() {
		names = append(names, regexp.QuoteMeta(c.Name()))
	}
	speak(root, regexp.MustCompile(`\b`+root.Name()+` (`+strings.Join(names, "|")+`)\b`))
	return args
}

// speak writes "kubectl joiner plan" in place of "joiner plan" in the texts of a command and of those below it.
func speak(cmd *cobra.Command, own *regexp.Regexp) {
	as := func(text string) string { return own.ReplaceAllString(text, "kubectl ${0}") }
	cmd.Short, cmd.Long, cmd.Example = as(cmd.Short), as(cmd.Long), as(cmd.Example)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = as(f.Usage) })
	for _, c := range cmd.Commands() {
		speak(c, own)
	}
}

// group makes every command that only holds others print its help when it is alone, and refuse a name that none of them has. Cobra would
// print the help of both, and end as if all were well.
func group(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		group(c)
	}
	if !cmd.HasSubCommands() || cmd.Runnable() {
		return
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
}

// unknownCommand is the error about a name that no command below cmd has, with what there is.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	there := cmd.CommandPath() + " --help lists them"
	if cmd.HasParent() {
		there = "want " + strings.Join(names, ", ")
	}
	return fmt.Errorf("unknown command %q for %q%s: %s", name, cmd.CommandPath(), suggest.Hint(name, names), there)
}

// strayHelp is the error about a name that no command has and for which help was asked: cobra would show the help of the command above it,
// and end as if all were well. Nil if there is none.
func strayHelp(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil || !cmd.HasSubCommands() {
		return nil
	}
	name, isHelp := "", false
	for _, arg := range rest {
		switch {
		case arg == "--":
			return nil
		case arg == "--help" || arg == "-h":
			isHelp = true
		case !strings.HasPrefix(arg, "-") && name == "":
			name = arg
		}
	}
	if !isHelp || name == "" {
		return nil
	}
	return unknownCommand(cmd, name)
}

// helpful makes "help" refuse a command that is not there.
func helpful(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil || help == root {
		return
	}
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		switch {
		case err != nil:
			return err
		case len(rest) > 0 && cmd.HasSubCommands():
			return unknownCommand(cmd, rest[0])
		}
		cmd.InitDefaultHelpFlag() // which its help lists
		return cmd.Help()
	}
}

// flagProblem adds to the error about a flag that is not there which one was probably meant.
func flagProblem(cmd *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		if want := valueOf(wrong.GetFlag(), wrong.GetValue()); want != "" {
			return fmt.Errorf("--%s %q: want %s", wrong.GetFlag().Name, wrong.GetValue(), want)
		}
		return err
	}
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) || missing.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return fmt.Errorf("%w%s", err, suggest.Hint(missing.GetSpecifiedName(), names))
}

// isLong matches durations that are written as they should be, and so are longer than a time.Duration can be.
var isLong = regexp.MustCompile(`^-?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// valueOf says what a flag takes that was given a value which it does not; empty for one whose own words for it are not those of Go.
func valueOf(flag *pflag.Flag, value string) string {
	switch name, _ := pflag.UnquoteUsage(flag); {
	case flag.Value.Type() == "bool":
		return "true or false"
	case flag.Value.Type() == "duration" && isLong.MatchString(value):
		return "a duration of at most 2562047h"
	case flag.Value.Type() == "duration":
		return "a duration with units s, m, h or d, for instance 90m, 2h or 1d"
	case flag.Value.Type() == "stringToInt":
		return name + ", with a whole number behind the ="
	case strings.HasPrefix(flag.Value.Type(), "int"):
		return "a whole number"
	}
	return ""
}
