package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joiner-sh/joiner/internal/cli"
)

var rewriteDocs = flag.Bool("rewrite", false, "write docs/reference/commands.md anew")

const commandsPage = "../../docs/reference/commands.md"

// TestCommandsPage compares docs/reference/commands.md with the commands.
func TestCommandsPage(t *testing.T) {
	root := cli.Root("test", cli.Streams{}, commands()...)
	var b strings.Builder
	b.WriteString("# Commands\n\nOne binary. It is also a plugin of kubectl: if it is named `kubectl-joiner` and is on the `PATH`, each command can be run as `kubectl joiner …`.\n\n" +
		"A test (`TestCommandsPage`) generates this page from the code, and fails if the page differs from the code.\n")
	describe(&b, root)
	if *rewriteDocs {
		if err := os.WriteFile(commandsPage, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == b.String() {
		return
	}
	have := strings.Split(string(got), "\n")
	for _, line := range strings.Split(b.String(), "\n") {
		if !slices.Contains(have, line) {
			t.Errorf("%s lacks the line: %s", commandsPage, line)
		}
	}
	t.Errorf("%s is stale: go test ./cmd/joiner -run TestCommandsPage -rewrite updates the page", commandsPage)
}

func describe(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
	if cmd.Name() == "completion" { // cobra's command; its subcommands document their output
		b.WriteString("Writes the script by which a shell completes commands, flags and the names of objects in the cluster. For kubectl, create a link\n" +
			"named `kubectl_complete-joiner` on the `PATH` that points to `kubectl-joiner`.\n")
		for _, c := range cmd.Commands() {
			fmt.Fprintf(b, "\n    %s --help", c.CommandPath())
		}
		b.WriteString("\n")
		return
	}
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	if cmd.DisableFlagParsing { // joiner controller: the settings at the end of its help have their own page
		about, _, _ = strings.Cut(about, "\nSettings:\n")
		about = strings.TrimSpace(about) + "\n\nIts settings: [settings.md](settings.md)."
	}
	fmt.Fprintf(b, "%s\n\n    %s\n", plainText(about), cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```sh\n%s\n```\n", removeIndent(cmd.Example))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n| command | |\n|---|---|\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "help" {
				fmt.Fprintf(b, "| [%s](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
			}
		}
	}
	describeFlags(b, cmd)
	for _, c := range cmd.Commands() {
		describe(b, c)
	}
}

func describeFlags(b *strings.Builder, cmd *cobra.Command) {
	rows := ""
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		column := "--" + f.Name
		if f.Shorthand != "" {
			column = "-" + f.Shorthand + ", " + column
		}
		if name != "" {
			column += " " + name
		}
		preset := ""
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" && f.DefValue != "0" {
			preset = "`" + f.DefValue + "`"
		}
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", column, preset, strings.ReplaceAll(usage, "|", "\\|"))
	})
	if rows != "" {
		b.WriteString("\n| flag | default | meaning |\n|---|---|---|\n" + rows)
	}
}

// plainText keeps a help text unchanged, except that lines indented with a tab become code.
func plainText(text string) string {
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if strings.HasPrefix(line, "\t") {
			line = "    " + strings.TrimPrefix(line, "\t")
		}
		out = append(out, strings.TrimRight(line, " "))
	}
	return strings.Join(out, "\n")
}

// removeIndent removes the two blanks at the start of the lines of examples.
func removeIndent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
