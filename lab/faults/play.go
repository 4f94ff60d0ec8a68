package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

// Limit is how long doctor may take after the launch to find a cause.
const Limit = 2 * time.Minute

const (
	// fixTakes is how long pods may take to run after a fix was pasted, without the time to run the commands of the fix.
	fixTakes = time.Minute
	// clearTakes is how long doctor may take to find nothing once pods run.
	clearTakes = 90 * time.Second
)

// Stage is a lab with a controller, in which faults are played.
type Stage struct {
	Lab    *lab.Lab
	Joiner string // path of the program
	// Say receives progress lines. nil discards them.
	Say func(string)

	played int
	mode   string   // authentication mode of the last scene
	left   []*Scene // scenes that are fixed and being deleted
}

// Settings are additional settings of the stage's controller: short refresh intervals, so that it sees a fix soon.
func Settings() []string {
	return []string{"DISABLE_LEADER_ELECTION=true", "SUBNET_REFRESH_INTERVAL=1s", "AMI_REFRESH_INTERVAL=1s", "SHORTAGE_BACKOFF=5s"}
}

// NewStage prepares a lab: it creates the controller's service account, as the chart does. The lab's authentication mode must be
// world.AuthBoth.
func NewStage(ctx context.Context, l *lab.Lab, joiner string) (*Stage, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "joiner", Namespace: metav1.NamespaceSystem,
		Annotations: map[string]string{"eks.amazonaws.com/role-arn": l.Roles.ARN(lab.ControllerRole)}}}
	if _, err := l.Kube.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, account,
		metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("make the controller's service account: %w", err)
	}
	return &Stage{Lab: l, Joiner: joiner}, nil
}

// Found is a finding in the format of `joiner doctor -o json`.
type Found struct{ Check, Verdict, Subject, Cause, Fix string }

// Bad reports whether the finding requires action.
func (f Found) Bad() bool {
	return f.Verdict == string(diagnosis.Broken) || f.Verdict == string(diagnosis.Suspicious)
}

// Result is the result of playing one fault.
type Result struct {
	Fault Fault
	First bool          // the first finding was the expected one
	AtAll bool          // one of the findings was the expected one
	Early bool          // found before any instance was launched
	After time.Duration // from the launch, or without a launch from the creation of the objects, until found
	Wrong []string      // other findings that came first on the way
	Fixed bool          // the fix worked: pods run, and doctor reports no problem
	// ByHand means that the fix opens an editor, and the lab made the edit.
	ByHand bool
	Ran    time.Duration // from pasting the fix until pods ran; they were pending before
	Err    error         // why the fault was not found, or not fixed
}

// Play plays a fault: it breaks the lab, asks doctor until the fault is found, applies the printed fix, waits until pods run and doctor
// reports no problem, and cleans up.
func (s *Stage) Play(ctx context.Context, f Fault) Result {
	s.played++
	scene := NewScene(s.Lab, nameOf(s.played))
	r := Result{Fault: f}
	r.Err = s.play(ctx, scene, f, &r)
	tidy := context.WithoutCancel(ctx)
	if r.Err != nil {
		// The fault was not fixed. Undo it, so that it does not affect the next fault.
		r.Err = errors.Join(r.Err, scene.undone(tidy), scene.remove(tidy), scene.gone(tidy))
		return r
	}
	s.left = append(s.left, scene)
	if r.Err = scene.remove(tidy); r.Err == nil && f.Alone {
		r.Err = errors.Join(scene.gone(tidy), scene.undone(tidy)) // the fix may have left changes that would break another fault
	}
	return r
}

func (s *Stage) play(ctx context.Context, scene *Scene, f Fault, r *Result) error {
	fix, err := s.find(ctx, scene, f, r)
	if err != nil {
		return err
	}
	s.say("%s: found, %s", f.Name, r.when())
	// Pods are pending before the fix is pasted, as those of a user are. The back-off of earlier attempts must not delay them after the
	// fix.
	if err := s.ensurePods(ctx, scene); err != nil {
		return err
	}
	began := time.Now()
	if r.ByHand = f.Edit != nil && strings.HasPrefix(fix, "kubectl edit "); r.ByHand {
		err = f.Edit(ctx, scene)
	} else {
		err = s.applyFix(ctx, fix)
	}
	if err != nil {
		return fmt.Errorf("the fix %q: %w", fix, err)
	}
	if err := scene.until(ctx, fixTakes, "pods to run", scene.running); err != nil {
		return fmt.Errorf("after the fix %q: %w", fix, err)
	}
	r.Ran = time.Since(began)
	err = scene.until(ctx, clearTakes, "doctor to find nothing", func(ctx context.Context) (bool, error) {
		all, err := s.ask(ctx)
		if bad := slices.IndexFunc(all, Found.Bad); bad >= 0 {
			err = fmt.Errorf("it finds %s: %s", all[bad].Check, all[bad].Cause)
		}
		return err == nil, err
	})
	r.Fixed = err == nil
	return err
}

// Break breaks the lab, and creates the objects; pods only if pods is true or the fault needs them.
func (s *Stage) Break(ctx context.Context, scene *Scene, f Fault, pods bool) error {
	mode := cmp.Or(f.AuthMode, ekscluster.AuthBoth)
	if mode != s.mode {
		// A role that is mapped in one mode may not be mapped in another, so wait until the old scenes are gone: doctor would report them.
		for _, other := range s.left {
			if err := other.gone(ctx); err != nil {
				return err
			}
		}
		s.mode, s.left = mode, nil
	}
	if err := scene.Cluster(func(c *ekscluster.Cluster) { c.AuthMode = mode }); err != nil {
		return err
	}
	if err := f.Break(ctx, scene); err != nil {
		return fmt.Errorf("break the lab: %w", err)
	}
	if err := scene.make(ctx, scene.More...); err != nil {
		return err
	}
	if err := scene.make(ctx, scene.Class, scene.Pool); err != nil {
		return err
	}
	if err := scene.settled(ctx); err != nil {
		return err
	}
	if pods || f.NeedsPods {
		if err := s.ensurePods(ctx, scene); err != nil {
			return err
		}
	}
	if f.Then != nil {
		return f.Then(ctx, scene)
	}
	return nil
}

// ensurePods creates the scene's pods, unless they exist.
func (s *Stage) ensurePods(ctx context.Context, scene *Scene) error {
	if slices.ContainsFunc(scene.made, func(o client.Object) bool { return o == client.Object(scene.Pods) }) {
		return nil
	}
	return scene.make(ctx, scene.Pods)
}

// find breaks the lab, asks doctor until its first finding is the expected one, and returns the printed fix.
func (s *Stage) find(ctx context.Context, scene *Scene, f Fault, r *Result) (fix string, err error) {
	if err := s.Break(ctx, scene, f, f.After); err != nil {
		return "", err
	}
	began := time.Now()
	err = scene.until(ctx, Limit, "the first finding to be "+f.Check, func(ctx context.Context) (bool, error) {
		all, err := s.ask(ctx)
		if err != nil {
			return false, err
		}
		launched := launch(scene)
		r.AtAll = r.AtAll || slices.ContainsFunc(all, f.is)
		if len(all) == 0 || !f.is(all[0]) {
			if len(all) > 0 && all[0].Bad() && all[0].Check != f.Check { // a first finding that is only suspicious is not counted as wrong
				r.wrong(all[0])
			}
			// A cause that is not visible without an instance needs the pods, which get one.
			return false, errors.Join(s.ensurePods(ctx, scene), fmt.Errorf("it is %s", firstOf(all)))
		}
		r.First, r.Early, r.After, fix = true, launched.IsZero(), time.Since(began), all[0].Fix
		if !launched.IsZero() {
			r.After = time.Since(launched)
		}
		return true, nil
	})
	if err == nil && !r.Early && !f.After {
		err = fmt.Errorf("it was found %s after a launch, and could have been known before", r.After)
	}
	return fix, err
}

// launch returns when the scene's first instance was launched; zero if none was.
func launch(scene *Scene) time.Time {
	all := scene.Instances()
	if len(all) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(all, func(a, b world.Instance) int { return a.LaunchedAt.Compare(b.LaunchedAt) }).LaunchedAt
}

// is reports whether a finding is the expected one.
func (f Fault) is(found Found) bool {
	verdict := diagnosis.Broken
	if f.Hint {
		verdict = diagnosis.Suspicious
	}
	return found.Check == f.Check && strings.Contains(found.Cause, f.Cause) && found.Verdict == string(verdict)
}

func (r *Result) wrong(f Found) {
	line := f.Check + " " + f.Verdict + ": " + f.Cause
	if !slices.Contains(r.Wrong, line) {
		r.Wrong = append(r.Wrong, line)
	}
}

func (r Result) when() string {
	if r.Early {
		return "before anything was launched"
	}
	return fmt.Sprintf("%.1f s after the launch", r.After.Seconds())
}

func firstOf(all []Found) string {
	if len(all) == 0 {
		return "nothing at all"
	}
	return fmt.Sprintf("%s %s: %s", all[0].Check, all[0].Verdict, all[0].Cause)
}

// ask runs doctor with read-only permissions.
func (s *Stage) ask(ctx context.Context) ([]Found, error) {
	printed, _, err := s.Lab.Doctor(ctx, s.Joiner, "-o", "json")
	if err != nil {
		return nil, err
	}
	var report struct{ Findings []Found }
	if err := json.Unmarshal([]byte(printed), &report); err != nil {
		return nil, fmt.Errorf("read what doctor prints: %w", err)
	}
	return report.Findings, nil
}

func (s *Stage) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(fmt.Sprintf(format, args...))
	}
}
