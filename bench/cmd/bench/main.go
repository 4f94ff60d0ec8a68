// Command bench compares Joiner with upstream, which is Karpenter. It plans workloads with both schedulers and writes a
// report. With -back, it instead runs the consolidation of both on the same fleets.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/bench/compare"
	"github.com/joiner-sh/joiner/bench/consolidation"
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

type flags struct {
	run              *regexp.Regexp
	quick            bool
	runConsolidation bool
	maxTime          time.Duration
	onlySide         string
	resultFolder     string
	list             bool
	out              string
	traces           string
	budget           time.Duration

	profileFolder string
}

func main() {
	f, err := parse(os.Args[1:])
	if err == nil {
		err = f.bench(os.Stdout, os.Stderr)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parse parses the command line. It returns flag.ErrHelp for -h and for invalid flags. For invalid flags, package flag
// has already printed the error.
func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	pattern := set.String("run", "", "only workloads whose name matches this `REGEXP`")
	set.BoolVar(&f.quick, "quick", false, "smoke test: upstream runs once per workload, for at most 20 seconds")
	set.BoolVar(&f.runConsolidation, "back", false, "run the consolidation benchmark instead: Joiner and upstream make the same wasteful fleets cheaper; replaces the consolidation section of the report")
	set.DurationVar(&f.maxTime, "real", 0, "with -back: maximum elapsed `TIME` of one side for one fleet; 0: ten minutes, or 20 seconds with -quick")
	set.StringVar(&f.onlySide, "only", "", "with -back: run only this `SIDE`, joiner or upstream; empty: both")
	set.StringVar(&f.resultFolder, "keep", "", "with -back: store the results of each side in this `FOLDER`, and do not repeat runs whose results are stored; empty: store nothing")
	set.BoolVar(&f.list, "list", false, "print the workloads and exit")
	set.StringVar(&f.out, "o", "", "write the report to this `FILE` (Markdown), and plots beside it; empty: standard output")
	set.StringVar(&f.traces, "traces", "../shared/traces", "`FOLDER` with recorded workloads; a workload without its file is skipped")
	set.StringVar(&f.profileFolder, "profile", "", "write a CPU profile of Joiner's runs of each workload to this `FOLDER`; empty: no profiles")
	set.DurationVar(&f.budget, "budget", 20*time.Minute, "approximate total `TIME`: after half of it, upstream runs once per workload; after all of it, upstream does not run")
	if err := set.Parse(args); err != nil {
		return f, flag.ErrHelp
	}
	if side := consolidation.Side(f.onlySide); side != "" && side != consolidation.Joiner && side != consolidation.Upstream {
		return f, fmt.Errorf("read -only: %q is not a side; want %s or %s", f.onlySide, consolidation.Joiner, consolidation.Upstream)
	}
	var err error
	if f.run, err = regexp.Compile(*pattern); err != nil {
		return f, fmt.Errorf("read -run: %w", err)
	}
	return f, nil
}

// bench does what the flags select: the consolidation benchmark, a list of the workloads, or a run of the workloads and
// their report.
func (f flags) bench(out, progress io.Writer) error {
	if f.runConsolidation {
		return f.consolidate(out, progress)
	}
	var rows []compare.Row
	limits := compare.Usual
	if f.quick {
		limits = compare.Quick
	}
	if f.profileFolder != "" {
		limits.StartProfile = f.startProfile
	}
	start := time.Now()
	for _, w := range workload.All(f.traces) {
		if !f.run.MatchString(w.Name) {
			continue
		}
		if f.list {
			fmt.Fprintf(out, "%-20s %s\n", w.Name, w.About)
			continue
		}
		spent := time.Since(start)
		if spent > f.budget/2 {
			limits.TheirRuns = 1
		}
		overBudget := spent > f.budget && !w.OursOnly // leaves out upstream
		w.OursOnly = w.OursOnly || overBudget
		row, err := limits.Run(w, verify.Check)
		if err != nil {
			return err
		}
		if overBudget {
			row.NotRun = fmt.Sprintf("the time budget of %s was used up", f.budget)
		}
		fmt.Fprintln(progress, compare.Line(&row))
		rows = append(rows, row)
	}
	if f.list {
		return nil
	}
	return f.write(out, rows)
}

// consolidate replaces the last section of the report with new results of the consolidation benchmark.
func (f flags) consolidate(out, progress io.Writer) error {
	options := consolidation.Usual
	if f.quick {
		options = consolidation.Quick
	}
	if f.maxTime > 0 {
		options.Real = f.maxTime
	}
	options.Only, options.Results = consolidation.Side(f.onlySide), consolidation.ResultFolder(f.resultFolder)
	var rows []consolidation.Row
	for _, w := range workload.WastefulFleets(f.traces) {
		if !f.run.MatchString(w.Name) {
			continue
		}
		if f.list {
			fmt.Fprintf(out, "%-20s %s\n", w.Name, w.About)
			continue
		}
		row, err := options.Run(w)
		if err != nil {
			return err
		}
		fmt.Fprintln(progress, consolidation.Line(&row))
		rows = append(rows, row)
	}
	if f.list {
		return nil
	}
	if f.out == "" {
		_, err := io.WriteString(out, consolidation.Report(rows))
		return err
	}
	page, err := os.ReadFile(f.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the report: %w", err)
	}
	sectionsBefore := strings.TrimSuffix(string(page), f.consolidationSection())
	if sectionsBefore != "" {
		sectionsBefore += "\n"
	}
	if err := os.WriteFile(f.out, []byte(sectionsBefore+consolidation.Report(rows)), 0o644); err != nil {
		return fmt.Errorf("write the section: %w", err)
	}
	return nil
}

// consolidationSection returns the last section of the stored report, which only -back writes; empty without one.
func (f flags) consolidationSection() string {
	page, err := os.ReadFile(f.out)
	if err != nil {
		return ""
	}
	at := strings.Index(string(page), "\n"+consolidation.Title)
	if at < 0 {
		return ""
	}
	return string(page[at:])
}

// write writes the report. Beside a file it also writes the plots, and it keeps the file's section on consolidation.
func (f flags) write(out io.Writer, rows []compare.Row) error {
	if f.out == "" {
		_, err := io.WriteString(out, compare.Report(rows, ""))
		return err
	}
	plot := strings.TrimSuffix(f.out, filepath.Ext(f.out)) + ".svg"
	if err := os.WriteFile(plot, []byte(compare.Growth(rows)), 0o644); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	if err := os.WriteFile(f.out, []byte(compare.Report(rows, filepath.Base(plot))+f.consolidationSection()), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// startProfile starts a CPU profile of the runs of a workload. stop ends the profile.
func (f flags) startProfile(name string) (stop func(), err error) {
	file, err := os.Create(filepath.Join(f.profileFolder, name+".pprof"))
	if err != nil {
		return nil, fmt.Errorf("write the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, fmt.Errorf("start the CPU profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}, nil
}
