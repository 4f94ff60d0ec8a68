package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/live"
)

type liveFlags struct {
	programs live.Programs
	seeds    []int
	scripts  []string
	mixes    []string
	sides    []string
	spot     bool
	arm      bool
	boots    string
	vary     bool
	keep     string
	parallel int
	out      string
}

// liveCommand returns the command lab live, which measures what a cluster pays with Joiner and with Karpenter.
func liveCommand() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use: "live", Short: "measure what a cluster pays with Joiner and with Karpenter's own controller", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().StringVar(&f.programs.Joiner, "joiner", "", "the joiner program (required)")
	cmd.Flags().StringVar(&f.programs.Upstream, "karpenter", "", "Karpenter's controller; required for the side upstream")
	cmd.Flags().IntSliceVar(&f.seeds, "seeds", []int{101}, "seeds of the workloads and of the boot times")
	cmd.Flags().StringSliceVar(&f.scripts, "scripts", []string{"scale"}, "load scripts: scale, roll, waves, slow, reclaim, price, drift")
	cmd.Flags().StringSliceVar(&f.mixes, "mixes", []string{string(live.Constrained)}, "workloads: plain, constrained")
	cmd.Flags().StringSliceVar(&f.sides, "sides", []string{string(live.Joiner), string(live.Upstream)},
		"controllers: joiner, upstream (Karpenter)")
	cmd.Flags().BoolVar(&f.spot, "spot", false, "also allow spot instances; the scripts reclaim and price always do")
	cmd.Flags().BoolVar(&f.arm, "arm64", false, "also allow arm64")
	cmd.Flags().StringVar(&f.boots, "boots", string(lab.BootEven), "boot times: even, stragglers")
	cmd.Flags().BoolVar(&f.vary, "vary", false, "let the seed select mix, capacity types, architectures and boot times, instead of the flags for them")
	cmd.Flags().StringVar(&f.keep, "keep", "", "folder for the results and the controllers' logs; a run with a result in the folder is not repeated; empty: results are not kept")
	cmd.Flags().IntVar(&f.parallel, "parallel", 1, "runs at the same time, each in a process of its own; more than 1 needs --keep, and a core for each run")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "write the tables into this page, between the two marker comments, and plots beside it; empty: print the tables")
	return cmd
}

func (f liveFlags) run(cmd *cobra.Command) error {
	if f.parallel > 1 {
		if f.keep == "" {
			return errors.New("--parallel needs --keep: each run stores its result in a folder")
		}
		if err := f.runInProcesses(cmd); err != nil {
			return err
		}
	}
	var all []live.Result
	for _, spec := range f.specs() {
		r, err := f.resultOf(cmd, spec)
		if err != nil {
			return fmt.Errorf("%s: %w", resultName(spec), err)
		}
		all = append(all, r)
	}
	kinds := live.Kinds(all)
	if f.out == "" {
		fmt.Fprint(cmd.OutOrStdout(), live.Markdown(kinds, nil))
		return nil
	}
	plots, err := writePlots(f.out, kinds)
	if err != nil {
		return err
	}
	return replaceMarkedText(f.out, "bench-live", live.Markdown(kinds, plots))
}

// runInProcesses carries out the runs without a stored result, several at the same time. Each run has a separate
// process, because package live allows only one lab at a time in a process.
func (f liveFlags) runInProcesses(cmd *cobra.Command) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(cmd.Context())
	group.SetLimit(f.parallel)
	for _, spec := range f.specs() {
		if _, err := os.Stat(f.pathOf(spec)); err == nil {
			continue
		}
		group.Go(func() error {
			run := exec.CommandContext(ctx, program, "live", "--joiner", f.programs.Joiner, "--karpenter", f.programs.Upstream,
				"--scripts", spec.Script, "--mixes", string(spec.Mix), "--seeds", fmt.Sprint(spec.Seed), "--sides", string(spec.Side),
				"--boots", string(spec.Boots), fmt.Sprint("--spot=", f.spot), fmt.Sprint("--arm64=", f.arm), fmt.Sprint("--vary=", f.vary),
				"--keep", f.keep)
			run.Stderr = cmd.ErrOrStderr()
			run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
			if err := run.Run(); err != nil {
				return fmt.Errorf("%s: %w", resultName(spec), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// writePlots writes the plot of each kind beside the page. It returns the file names by title of the kind.
func writePlots(page string, kinds []live.Kind) (map[string]string, error) {
	base := strings.TrimSuffix(page, filepath.Ext(page))
	plots := map[string]string{}
	for _, k := range kinds {
		var svg bytes.Buffer
		if err := k.Plot(&svg); err != nil {
			return nil, err
		}
		path := base + "-" + k.Slug() + ".svg"
		if err := os.WriteFile(path, svg.Bytes(), 0o644); err != nil {
			return nil, fmt.Errorf("write plot: %w", err)
		}
		plots[k.Title] = filepath.Base(path)
	}
	return plots, nil
}

// specs returns one spec per run. Specs that differ only in the side are adjacent.
func (f liveFlags) specs() []live.Spec {
	var out []live.Spec
	for _, script := range f.scripts {
		for _, spec := range f.workloads() {
			spec.Script = script
			if script == "reclaim" || script == "price" {
				spec.Market.AllowSpot()
			}
			for _, side := range f.sides {
				spec.Side = live.Side(side)
				out = append(out, spec)
			}
		}
	}
	return out
}

// workloads returns the specs without script and side.
func (f liveFlags) workloads() []live.Spec {
	var out []live.Spec
	if f.vary {
		for _, seed := range f.seeds {
			out = append(out, live.Varied(uint64(seed)))
		}
		return out
	}
	for _, mix := range f.mixes {
		for _, seed := range f.seeds {
			market := live.OnDemand()
			if f.spot {
				market.AllowSpot()
			}
			if f.arm {
				market.Architectures = append(market.Architectures, "arm64")
			}
			out = append(out, live.Spec{Mix: live.Mix(mix), Market: market, Seed: uint64(seed), Boots: lab.BootTimes(f.boots)})
		}
	}
	return out
}

// resultName returns the file name of a run's result, without extension.
func resultName(s live.Spec) string {
	return strings.Join([]string{s.Script, string(s.Mix), strings.Join(slices.Concat(s.Market.CapacityTypes, s.Market.Architectures), "-"),
		string(s.Boots), fmt.Sprint(s.Seed), string(s.Side)}, "_")
}

func (f liveFlags) pathOf(s live.Spec) string { return filepath.Join(f.keep, resultName(s)+".json") }

// resultOf returns the stored result of a run. Without one, it carries out the run and stores its result.
func (f liveFlags) resultOf(cmd *cobra.Command, s live.Spec) (live.Result, error) {
	path := f.pathOf(s)
	if f.keep != "" {
		data, err := os.ReadFile(path)
		var r live.Result
		switch {
		case err == nil:
			err = json.Unmarshal(data, &r)
			return r, err
		case !errors.Is(err, os.ErrNotExist):
			return r, err
		}
	}
	log := func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), resultName(s)+": "+line) }
	r, err := live.Run(cmd.Context(), f.programs, s, log)
	if err != nil || f.keep == "" {
		return r, err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	logPath := strings.TrimSuffix(path, ".json") + ".log"
	return r, errors.Join(os.MkdirAll(f.keep, 0o755), os.WriteFile(logPath, []byte(r.Log), 0o644), os.WriteFile(path, data, 0o644))
}
