package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/sizing"
)

// The markers around the measured table in the documentation page.
const (
	tableBegin = "<!-- written by make %s -->\n" // with the name of the make target
	tableEnd   = "<!-- end of what is written -->\n"
)

// sizingCommand returns the command lab sizing, which measures the controller's resource usage in clusters of several
// sizes.
func sizingCommand() *cobra.Command {
	var joiner, path string
	var nodes []int
	p := sizing.Plan{}
	cmd := &cobra.Command{
		Use: "sizing", Short: "measure the CPU and memory of the controller in clusters of several sizes", Args: withJoiner(&joiner),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, n := range nodes {
				if n < 1 || n > 5000 {
					return fmt.Errorf("--nodes %d: must be 1 to 5000, the number of nodes that fit into the subnets of a lab", n)
				}
				p.Sizes = append(p.Sizes, sizing.Size{Nodes: n, MemoryLimitMiB: memoryLimit(n)})
			}
			dir, err := os.MkdirTemp("", "joiner-")
			if err != nil {
				return fmt.Errorf("make a folder for the program: %w", err)
			}
			defer func() { _ = os.RemoveAll(dir) }()
			if p.Joiner = joiner; joiner == "" {
				if p.Joiner, err = lab.BuildJoiner(cmd.Context(), dir); err != nil {
					return err
				}
			}
			p.Say = func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) }
			results, err := sizing.Run(cmd.Context(), p)
			if len(results) == 0 {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), sizing.Markdown(results))
			if path == "" {
				return err
			}
			return errors.Join(err, replaceMarkedText(path, "sizing", sizing.Markdown(results)))
		},
	}
	cmd.Flags().StringVar(&joiner, "joiner", "", "the joiner program; empty: build it from the checkout of the working folder")
	cmd.Flags().StringVarP(&path, "output", "o", "", "write the table into this page, between the two marker comments")
	cmd.Flags().IntSliceVar(&nodes, "nodes", []int{100, 500, 1000, 2000, 5000}, "numbers of nodes of the clusters")
	cmd.Flags().DurationVar(&p.IdleTime, "idle-time", time.Minute, "how long the idle controller is measured")
	return cmd
}

// memoryLimit returns the controller's memory limit, in MiB, for a number of nodes: the value in the table of the Helm
// chart.
func memoryLimit(nodes int) int64 {
	switch {
	case nodes <= 500:
		return 1024
	case nodes <= 1000:
		return 1536
	case nodes <= 2000:
		return 3072
	}
	return 6144
}

// replaceMarkedText replaces the text between the two markers of a page. target is the make target in the first marker.
func replaceMarkedText(path, target, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	begin := fmt.Sprintf(tableBegin, target)
	before, rest, hasBegin := strings.Cut(string(page), begin)
	_, after, hasEnd := strings.Cut(rest, tableEnd)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("write the table: %s does not have the two marker comments", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+text+tableEnd+after), 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}
