package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joiner-sh/joiner/spelling"
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

// group makes a command that only holds others: alone it prints its help; a name that none of them has is an error with the nearest
// that one has.
func group(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		return fmt.Errorf("unknown command %q for %q%s: %s --help lists them", args[0], cmd.CommandPath(), spelling.Hint(args[0], names), cmd.CommandPath())
	}
}

// flagProblem adds to the error about a flag that is not there which one was probably meant.
func flagProblem(cmd *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		if want := valueOf(wrong.GetFlag()); want != "" {
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
	return fmt.Errorf("%w%s", err, spelling.Hint(missing.GetSpecifiedName(), names))
}

// valueOf says what a flag takes whose own words for it are those of Go; empty for any other.
func valueOf(flag *pflag.Flag) string {
	switch name, _ := pflag.UnquoteUsage(flag); {
	case flag.Value.Type() == "bool":
		return "true or false"
	case flag.Value.Type() == "duration":
		return "a duration with its unit, for instance 30s"
	case flag.Value.Type() == "stringToInt":
		return name + ", with a whole number behind the ="
	case strings.HasPrefix(flag.Value.Type(), "int"):
		return "a whole number"
	}
	return ""
}
