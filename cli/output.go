package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/spelling"
)

// output is how a command writes its answer: the value of -o.
type output string

const (
	asTable output = "table"
	asJSON  output = "json"
	asYAML  output = "yaml"
)

// flag adds -o to a command.
func (o *output) flag(flags *pflag.FlagSet) {
	*o = asTable
	flags.VarP(o, "output", "o", "table, json or yaml")
}

// String returns the value of the flag.
func (o *output) String() string { return string(*o) }

// Type names the kind of value, for the help text.
func (o *output) Type() string { return "format" }

// Set reads the value of the flag.
func (o *output) Set(text string) error {
	switch output(text) {
	case asTable, asJSON, asYAML:
		*o = output(text)
		return nil
	}
	return fmt.Errorf("want table, json or yaml%s", spelling.Hint(text, []string{string(asTable), string(asJSON), string(asYAML)}))
}

// write writes text as a table, or value as JSON or YAML.
func (o *output) write(w io.Writer, text func() string, value func() any) error {
	if *o == asTable {
		_, err := io.WriteString(w, text())
		return err
	}
	data, err := json.MarshalIndent(value(), "", "  ")
	if err != nil {
		return fmt.Errorf("write the answer as JSON: %w", err)
	}
	data = append(data, '\n')
	if *o == asYAML {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("write the answer as YAML: %w", err)
		}
	}
	_, err = w.Write(data)
	return err
}
