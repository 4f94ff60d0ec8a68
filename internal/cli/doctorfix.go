package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/cli/screen"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/doctor/remedy"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// applyFix applies the fixes of the check in d.fix, each different fix once. It prints the changes of a fix and,
// without --yes, asks the user before it makes them. It returns Findings if a fix was not confirmed.
func (d *doctorFlags) applyFix(ctx context.Context, s Streams, e diagnosis.Evidence, findings []diagnosis.Finding) error {
	id, err := checkID(d.fix)
	if err != nil {
		return err
	}
	chosen, err := d.fixableFindings(id, findings)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		_, err := fmt.Fprintf(s.Out, "%s is fine: nothing to fix\n", id)
		return err
	}
	clients, unconfirmed := d.fixClients(e), 0
	for _, f := range chosen {
		changes, err := remedy.Plan(ctx, f.Fix, clients)
		if err != nil {
			return fmt.Errorf("fix %s: %w", id, err)
		}
		if err := printChanges(s.Out, f, changes); err != nil {
			return err
		}
		yes, err := d.confirm(s, f)
		if err != nil {
			return err
		}
		if !yes {
			unconfirmed++
			continue
		}
		if _, err := remedy.Apply(ctx, changes); err != nil {
			return fmt.Errorf("fix %s: %w", id, err)
		}
		if _, err := fmt.Fprintln(s.Out, "done"); err != nil {
			return err
		}
	}
	if unconfirmed > 0 {
		return Findings{Count: unconfirmed}
	}
	return nil
}

// checkID returns the id of the check that name spells in any case. The error hints at a similar id.
func checkID(name string) (string, error) {
	var all []string
	for _, c := range checks.Checks() {
		if strings.EqualFold(c.ID, name) {
			return c.ID, nil
		}
		all = append(all, c.ID)
	}
	hint := "joiner doctor shows what is wrong, with the check in front"
	if near := suggest.Nearest(strings.ToUpper(name), all); near != "" {
		hint = "did you mean " + near + "?"
	}
	return "", fmt.Errorf("--fix %s: there is no such check: %s", name, hint)
}

// fixableFindings returns one finding of the check for each different fix; none if the check passed. It returns an
// error if the check could not run, if its problem follows from another one, or if the finding is not certain enough.
func (d *doctorFlags) fixableFindings(id string, findings []diagnosis.Finding) ([]diagnosis.Finding, error) {
	var out []diagnosis.Finding
	for _, f := range findings {
		switch {
		case f.Check != id || f.Verdict == diagnosis.Fine: // nothing to fix
		case f.Verdict == diagnosis.Unknown:
			return nil, fmt.Errorf("fix %s: it is not known whether the check fails: %s", id, f.Cause)
		case f.Follows != "":
			return nil, fmt.Errorf("fix %s: the problem follows from %s, whose fix also fixes this problem: joiner doctor --fix %s", id, f.Follows, f.Follows)
		case f.Certainty == diagnosis.Possible:
			return nil, fmt.Errorf("fix %s: this is only one of several explanations, so you must decide: %s", id, f.Cause)
		case d.yes && f.Certainty != diagnosis.Certain:
			return nil, fmt.Errorf("fix %s: it is likely and not certain, so --yes is not enough: run it in a terminal, and answer yes there", id)
		case !slices.ContainsFunc(out, func(o diagnosis.Finding) bool { return o.Fix.String() == f.Fix.String() }):
			out = append(out, f)
		}
	}
	return out, nil
}

// fixClients returns clients that apply changes with the permissions of the user.
func (d *doctorFlags) fixClients(e diagnosis.Evidence) remedy.Clients {
	out := remedy.Clients{NoKube: absenceReason(e.Identity), NoAWS: absenceReason(e.Cluster), RunCorrect: d.runCorrect}
	if cfg, err := d.cluster.config(); err != nil {
		out.NoKube = message.OneLine(err.Error())
	} else if p, err := kubeclient.NewPatcher(cfg); err != nil {
		out.NoKube = message.OneLine(withHint(err).Error())
	} else {
		out.Kube = p
	}
	if d.aws != nil {
		out.AWS = remedy.NewAWS(*d.aws, e.Caller.Value)
	}
	return out
}

// runCorrect runs joiner correct with the arguments after args[0] and the same kubeconfig, and returns its output.
func (d *doctorFlags) runCorrect(ctx context.Context, args []string) (string, error) {
	cmd := newCorrect()
	var out, notes bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(slices.Clone(args[1:]), "--kubeconfig="+d.cluster.kubeconfig, "--context="+d.cluster.context))
	if err := cmd.ExecuteContext(ctx); err != nil {
		return "", err
	}
	return out.String(), nil
}

func printChanges(w io.Writer, f diagnosis.Finding, changes []remedy.Change) error {
	lines := screen.FindingInFull(f)[:2] // the heading and the cause
	for _, c := range changes {
		for i, line := range strings.Split(c.Command, "\n") {
			lead := "run     "
			if i > 0 {
				lead = "        "
			}
			lines = append(lines, lead+message.OneLine(line))
		}
		lines = append(lines, "change  "+message.OneLine(c.What))
		if c.Before == c.After {
			lines = append(lines, "        nothing: no change is needed")
		}
		for _, line := range output.Difference(c.Before, c.After) {
			lines = append(lines, "  "+message.OneLine(line))
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// confirm asks the user whether to apply the fix, and returns the answer. It returns true with --yes, and false without
// a terminal.
func (d *doctorFlags) confirm(s Streams, f diagnosis.Finding) (bool, error) {
	if d.yes {
		return true, nil
	}
	if !isTerminal(s.In) {
		_, err := fmt.Fprintln(s.Out, "nothing was changed: standard input is not a terminal; --yes applies the fix without asking")
		return false, err
	}
	if _, err := fmt.Fprintf(s.Out, "Fix %s? Only yes applies it: ", f.Check); err != nil {
		return false, err
	}
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", message.WithoutSyscall(err))
	}
	if strings.EqualFold(strings.TrimSpace(answer), "yes") {
		return true, nil
	}
	_, err = fmt.Fprintln(s.Out, "nothing was changed")
	return false, err
}

// isTerminal reports whether the reader is a terminal: a character device other than the null device.
func isTerminal(r io.Reader) bool {
	file, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	nullDevice, err := os.Stat(os.DevNull) // also a character device
	return err != nil || !os.SameFile(info, nullDevice)
}
