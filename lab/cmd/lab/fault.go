package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/faults"
)

// faultCommand returns the command lab fault, which injects a fault into a running lab.
func faultCommand() *cobra.Command {
	undo := false
	cmd := &cobra.Command{
		Use: "fault NAME", Short: "inject a fault into the running lab, for joiner doctor to find; KUBECONFIG selects one of several labs",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return err
			}
			_, err := faults.Find(args[0])
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := runningHome()
			if err != nil {
				return err
			}
			text, err := faults.Request(cmd.Context(), home, args[0], undo)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "undo the fault, and delete its objects")
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "list all faults: name, the check that must find the fault, and a description", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listFaults(cmd.OutOrStdout()) },
	})
	return cmd
}

func listFaults(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range faults.All() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Name, f.Check, f.What)
	}
	return table.Flush()
}

// diagnosisReportCommand returns the command lab diagnosis-report, which plays all faults and writes a report.
func diagnosisReportCommand() *cobra.Command {
	var joiner, path string
	var only []string
	p := faults.Plan{Labs: 2, Pairs: 12, Seed: 1}
	cmd := &cobra.Command{
		Use:   "diagnosis-report",
		Short: "play all faults in new labs, and write a report of the findings of joiner doctor",
		Args:  withJoiner(&joiner),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if err := faults.CheckTools(ctx); err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "joiner-")
			if err != nil {
				return fmt.Errorf("make a folder for the program: %w", err)
			}
			defer func() { _ = os.RemoveAll(dir) }()
			if p.Joiner = joiner; joiner == "" {
				if p.Joiner, err = lab.BuildJoiner(ctx, dir); err != nil {
					return err
				}
			}
			if p.Faults, err = selectFaults(only); err != nil {
				return err
			}
			p.Say = func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) }
			report, err := faults.Run(ctx, p)
			if err != nil {
				return err
			}
			if path != "" {
				if err := os.WriteFile(path, []byte(report.Markdown()), 0o644); err != nil {
					return fmt.Errorf("write the report: %w", err)
				}
			}
			return conclude(cmd.OutOrStdout(), report)
		},
	}
	cmd.Flags().StringVar(&joiner, "joiner", "", "the joiner program; empty: build it from the checkout of the working folder")
	cmd.Flags().StringVarP(&path, "output", "o", "", "write the report to this file, as Markdown")
	cmd.Flags().StringSliceVar(&only, "only", nil, "play only the faults with these names")
	cmd.Flags().BoolVar(&p.NoHealthy, "no-healthy", false, "skip the scenes without a fault")
	cmd.Flags().IntVar(&p.Labs, "labs", p.Labs, "number of labs that run in parallel")
	cmd.Flags().IntVar(&p.Pairs, "pairs", p.Pairs, "number of pairs of faults to play")
	cmd.Flags().Uint64Var(&p.Seed, "seed", p.Seed, "seed for the selection of the pairs")
	return cmd
}

func selectFaults(names []string) ([]faults.Fault, error) {
	if len(names) == 0 {
		return faults.All(), nil
	}
	var out []faults.Fault
	for _, name := range names {
		f, err := faults.Find(name)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// conclude prints the summary of the report, and returns an error if the results miss a target.
func conclude(out io.Writer, r faults.Report) error {
	s := r.Summary()
	fmt.Fprintf(out, "%d faults: %d found as the first finding, %d found, %d before the launch, %d fixed by the printed commands; median %.1f s, worst %.1f s\n",
		s.Faults, s.First, s.Found, s.BeforeLaunch, s.Pasted, s.Median.Seconds(), s.Worst.Seconds())
	fmt.Fprintf(out, "pairs: both found in %d of %d; false alarms in %d healthy scenes: %d\n",
		s.BothFound, s.Pairs, r.Healthy.Scenes, s.Alarms)
	missed := r.Failures()
	for _, line := range missed {
		fmt.Fprintln(out, line)
	}
	switch len(missed) {
	case 0:
		return nil
	case 1:
		return errors.New("1 target was missed")
	}
	return fmt.Errorf("%d targets were missed", len(missed))
}
