// Command bench plans workloads with upstream's scheduler and with Joiner's, and writes a report that compares them.
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

// flags are the command's flags; parse documents each of them.
type flags struct {
	run    *regexp.Regexp
	quick  bool
	back   bool
	real   time.Duration
	only   string
	keep   string
	list   bool
	out    string
	traces string
	folder string // for CPU profiles
	budget time.Duration
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

// parse parses the command line. It returns flag.ErrHelp for -h and for invalid flags, whose error the flag package has
// printed.
func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	pattern := set.String("run", "", "only workloads whose name matches this `REGEXP`")
	set.BoolVar(&f.quick, "quick", false, "smoke test: one run per workload, at most 20 seconds for upstream")
	set.BoolVar(&f.back, "back", false, "run the consolidation benchmark instead: Joiner and upstream make the same wasteful fleets cheaper; writes that section of the report")
	set.DurationVar(&f.real, "real", 0, "with -back: maximum real `TIME` of one side for one fleet; 0: ten minutes, or 20 seconds with -quick")
	set.StringVar(&f.only, "only", "", "with -back: run only this `SIDE`, joiner or upstream; empty: both")
	set.StringVar(&f.keep, "keep", "", "with -back: store the results of each side in this `FOLDER`, and do not repeat runs whose results are stored; empty: store nothing")
	set.BoolVar(&f.list, "list", false, "print the workloads and exit")
	set.StringVar(&f.out, "o", "", "write the report to this `FILE` (Markdown), and plots beside it; empty: standard output")
	set.StringVar(&f.traces, "traces", "../shared/traces", "`FOLDER` with recorded workloads; a workload without its file is skipped")
	set.StringVar(&f.folder, "profile", "", "write a CPU profile of Joiner's runs of each workload to this `FOLDER`; empty: no profiles")
	set.DurationVar(&f.budget, "budget", 20*time.Minute, "approximate total `TIME`: after half of it, upstream runs once per workload; after all of it, upstream does not run")
	if err := set.Parse(args); err != nil {
		return f, flag.ErrHelp
	}
	if side := consolidation.Side(f.only); side != "" && side != consolidation.Joiner && side != consolidation.Upstream {
		return f, fmt.Errorf("read -only: %q is not a side; want %s or %s", f.only, consolidation.Joiner, consolidation.Upstream)
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
	if f.back {
		return f.consolidate(out, progress)
	}
	var rows []compare.Row
	patience := compare.Usual
	if f.quick {
		patience = compare.Quick
	}
	if f.folder != "" {
		patience.Watch = f.profile
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
			patience.TheirRuns = 1
		}
		late := spent > f.budget && !w.OursOnly
		w.OursOnly = w.OursOnly || late
		row, err := patience.Run(w, verify.Check)
		if err != nil {
			return err
		}
		if late {
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

// consolidate runs the consolidation benchmark, and writes its section of the report.
func (f flags) consolidate(out, progress io.Writer) error {
	patience := consolidation.Usual
	if f.quick {
		patience = consolidation.Quick
	}
	if f.real > 0 {
		patience.Real = f.real
	}
	patience.Only, patience.Keep = consolidation.Side(f.only), consolidation.Keep(f.keep)
	var rows []consolidation.Row
	for _, w := range workload.Wastes(f.traces) {
		if !f.run.MatchString(w.Name) {
			continue
		}
		if f.list {
			fmt.Fprintf(out, "%-20s %s\n", w.Name, w.About)
			continue
		}
		row, err := patience.Run(w)
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
	rest := strings.TrimSuffix(string(page), f.section())
	if rest != "" {
		rest += "\n"
	}
	if err := os.WriteFile(f.out, []byte(rest+consolidation.Report(rows)), 0o644); err != nil {
		return fmt.Errorf("write the section: %w", err)
	}
	return nil
}

// section returns the report's section on consolidation, the last of the page. It is written by a run with -back. It is
// empty if the page has no such section.
func (f flags) section() string {
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

// write writes the report, and the plot if the report goes to a file.
func (f flags) write(out io.Writer, rows []compare.Row) error {
	if f.out == "" {
		_, err := io.WriteString(out, compare.Report(rows, ""))
		return err
	}
	plot := strings.TrimSuffix(f.out, filepath.Ext(f.out)) + ".svg"
	if err := os.WriteFile(plot, []byte(compare.Growth(rows)), 0o644); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	if err := os.WriteFile(f.out, []byte(compare.Report(rows, filepath.Base(plot))+f.section()), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// profile starts a CPU profile. The returned function stops it.
func (f flags) profile(workload string) (func(), error) {
	file, err := os.Create(filepath.Join(f.folder, workload+".pprof"))
	if err != nil {
		return nil, fmt.Errorf("write the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, fmt.Errorf("sample the processor: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}, nil
}
