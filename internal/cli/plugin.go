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

// Program names by which kubectl finds its plugins and their shell completion.
const (
	pluginName   = "kubectl-joiner"
	completeName = "kubectl_complete-joiner"
)

// CalledAs adapts root to the name of the program, and returns the arguments to run root with. For kubectl-joiner, help
// texts have "kubectl joiner" in place of "joiner"; for kubectl_complete-joiner, the arguments also request shell
// completion. Call CalledAs after all commands are added to root.
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
	renameInTexts(root, regexp.MustCompile(`\b`+root.Name()+` (`+strings.Join(names, "|")+`)\b`))
	return args
}

// renameInTexts replaces "joiner plan" with "kubectl joiner plan" in the help texts of a command and its subcommands.
// commands matches joiner and a subcommand.
func renameInTexts(cmd *cobra.Command, commands *regexp.Regexp) {
	renamed := func(text string) string { return commands.ReplaceAllString(text, "kubectl ${0}") }
	cmd.Short, cmd.Long, cmd.Example = renamed(cmd.Short), renamed(cmd.Long), renamed(cmd.Example)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = renamed(f.Usage) })
	for _, c := range cmd.Commands() {
		renameInTexts(c, commands)
	}
}

// rejectUnknownSubcommands makes every command without a Run function print its help if it has no arguments, and return
// an error for an unknown subcommand. Cobra would print the help in both cases, with exit status 0.
func rejectUnknownSubcommands(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		rejectUnknownSubcommands(c)
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

// unknownCommand returns the error about an unknown subcommand of cmd. The error lists the subcommands or, for the root
// command, names the command that lists them.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if !cmd.HasParent() {
		return fmt.Errorf("unknown command %q%s: %s --help lists the commands", name, suggest.Hint(name, names), cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q for %q%s: want %s", name, cmd.CommandPath(), suggest.Hint(name, names), strings.Join(names, ", "))
}

// checkHelpTopic returns an error if the arguments ask for the help of an unknown command, as joiner plam --help does.
// Cobra would show the help of the parent command, with exit status 0.
func checkHelpTopic(root *cobra.Command, args []string) error {
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

// rejectUnknownHelpTopics makes the help command return an error for an unknown command.
func rejectUnknownHelpTopics(root *cobra.Command) {
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
		cmd.InitDefaultHelpFlag() // so that the help text lists --help
		return cmd.Help()
	}
}

// clarifyFlagError clarifies err, an error about the flags of cmd. For an unknown flag it adds a similar name. For an
// invalid value it returns an error with the valid values. It returns other errors unchanged.
func clarifyFlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if want := validValues(invalid.GetFlag(), invalid.GetValue()); want != "" {
			return fmt.Errorf("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
		return err
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err // names of one letter are all similar
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return fmt.Errorf("%w%s", err, suggest.Hint(unknown.GetSpecifiedName(), names))
}

// durationPattern matches well-formed durations. If a flag refuses a matching text, the duration is too long for a
// time.Duration.
var durationPattern = regexp.MustCompile(`^-?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// validValues describes the valid values of a flag that has an invalid value. It returns "" for flags whose own error
// describes the valid values.
func validValues(flag *pflag.Flag, value string) string {
	switch placeholder, _ := pflag.UnquoteUsage(flag); {
	case flag.Value.Type() == "bool":
		return "true or false"
	case flag.Value.Type() == "duration" && durationPattern.MatchString(value):
		return "a duration of at most 2562047h" // of a time.Duration
	case flag.Value.Type() == "duration":
		return "a duration with units s, m, h or d, for instance 90m, 2h or 1d"
	case flag.Value.Type() == "stringToInt":
		return placeholder + ", with a whole number behind the ="
	case strings.HasPrefix(flag.Value.Type(), "int"):
		return "a whole number"
	}
	return ""
}
