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

// Limit is the maximum time, from the creation of the objects, in which doctor must find a cause.
const Limit = 2 * time.Minute

const (
	// fixTimeout is the maximum time from the end of a fix's commands until pods run.
	fixTimeout = time.Minute
	// clearTimeout is the maximum time from running pods until doctor reports no problem. It is also the maximum time
	// until the pods of healthy scenes run.
	clearTimeout = 90 * time.Second
)

// Stage is a lab with a controller, in which faults are played.
type Stage struct {
	Lab    *lab.Lab
	Joiner string // path of the joiner program
	// Say is called with each line of progress. nil disables the calls.
	Say func(string)

	sceneCount int      // number of scenes so far
	mode       string   // authentication mode of the last scene
	deleting   []*Scene // scenes whose fault was fixed and whose objects are being deleted
}

// Settings returns environment variables of the stage's controller. Their intervals are short, so that the controller
// detects a fix soon.
func Settings() []string {
	return []string{"DISABLE_LEADER_ELECTION=true", "SUBNET_REFRESH_INTERVAL=1s", "AMI_REFRESH_INTERVAL=1s", "SHORTAGE_BACKOFF=5s"}
}

// NewStage prepares a lab: it creates the controller's service account, as the chart does.
func NewStage(ctx context.Context, l *lab.Lab, joiner string) (*Stage, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "joiner", Namespace: metav1.NamespaceSystem,
		Annotations: map[string]string{"eks.amazonaws.com/role-arn": l.Roles.ARN(lab.ControllerRole)}}}
	if _, err := l.Kube.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, account,
		metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create the controller's service account: %w", err)
	}
	return &Stage{Lab: l, Joiner: joiner}, nil
}

// Finding is a finding in the format of `joiner doctor -o json`. The JSON has the same names in lower case.
type Finding struct {
	Check   string // ID of the check
	Verdict string // a diagnosis.Verdict
	Subject string // kind and name of the object
	Cause   string // description of the problem
	Fix     string // commands for a shell; empty if doctor has no fix
}

// NeedsAction reports whether the finding requires action.
func (f Finding) NeedsAction() bool {
	return f.Verdict == string(diagnosis.Broken) || f.Verdict == string(diagnosis.Suspicious)
}

// Result is the result of playing one fault.
type Result struct {
	Fault        Fault         // the fault that was played
	First        bool          // the first finding was the expected finding
	Found        bool          // one of the findings was the expected finding
	BeforeLaunch bool          // the fault was found before an instance was launched
	FoundAfter   time.Duration // until the fault was found: from the first launch, or else from the creation of the objects
	WrongFirst   []string      // unexpected first findings, without duplicates
	Fixed        bool          // the fix worked: pods run, and doctor reports no problem
	// ByHand means that the fix opens an editor, and that Fault.Edit made the change.
	ByHand  bool
	FixTime time.Duration // from the start of the fix until pods ran
	Err     error         // why the fault was not found or not fixed; nil if it was fixed
}

// Play injects a fault and runs doctor until it finds the fault. Then Play applies the printed fix, waits until pods
// run and doctor reports no problem, and cleans up.
func (s *Stage) Play(ctx context.Context, f Fault) Result {
	s.sceneCount++
	scene := NewScene(s.Lab, sceneName(s.sceneCount))
	r := Result{Fault: f}
	r.Err = s.play(ctx, scene, f, &r)
	cleanupCtx := context.WithoutCancel(ctx)
	if r.Err != nil {
		// The fault was not fixed. Undo it, so that it does not affect the next fault.
		r.Err = errors.Join(r.Err, scene.revert(cleanupCtx), scene.remove(cleanupCtx), scene.waitGone(cleanupCtx))
		return r
	}
	s.deleting = append(s.deleting, scene)
	if r.Err = scene.remove(cleanupCtx); r.Err == nil && f.IsExclusive {
		// The fix may have left changes that would affect the next fault.
		r.Err = errors.Join(scene.waitGone(cleanupCtx), scene.revert(cleanupCtx))
	}
	return r
}

// play does the work of Play, except for the clean-up. It sets the fields of r, except Err.
func (s *Stage) play(ctx context.Context, scene *Scene, f Fault, r *Result) error {
	fix, err := s.injectAndFind(ctx, scene, f, r)
	if err != nil {
		return err
	}
	s.say("%s: found, %s", f.Name, r.foundWhen())
	// Pods are pending before the fix, as in a user's cluster. The order also tests that the back-off of failed
	// launches does not delay the pods after the fix.
	if err := s.ensurePods(ctx, scene); err != nil {
		return err
	}
	started := time.Now()
	if r.ByHand = f.Edit != nil && strings.HasPrefix(fix, "kubectl edit "); r.ByHand {
		err = f.Edit(ctx, scene)
	} else {
		err = s.applyFix(ctx, fix)
	}
	if err != nil {
		return fmt.Errorf("the fix %q: %w", fix, err)
	}
	if err := scene.until(ctx, fixTimeout, "pods to run", scene.isRunning); err != nil {
		return fmt.Errorf("after the fix %q: %w", fix, err)
	}
	r.FixTime = time.Since(started)
	err = scene.until(ctx, clearTimeout, "doctor to report no problem", func(ctx context.Context) (bool, error) {
		all, err := s.runDoctor(ctx)
		if bad := slices.IndexFunc(all, Finding.NeedsAction); bad >= 0 {
			err = fmt.Errorf("doctor reports %s: %s", all[bad].Check, all[bad].Cause)
		}
		return err == nil, err
	})
	r.Fixed = err == nil
	return err
}

// Setup injects the fault and creates the scene's objects. It creates the pods only if withPods is true or the fault
// needs them.
func (s *Stage) Setup(ctx context.Context, scene *Scene, f Fault, withPods bool) error {
	mode := cmp.Or(f.AuthMode, ekscluster.AuthBoth)
	if mode != s.mode {
		// Wait until the old scenes are deleted. Otherwise doctor could report the roles of these scenes, because the
		// new mode may have no mapping for them.
		for _, old := range s.deleting {
			if err := old.waitGone(ctx); err != nil {
				return err
			}
		}
		s.mode, s.deleting = mode, nil
	}
	if err := scene.ChangeCluster(func(c *ekscluster.Cluster) { c.AuthMode = mode }); err != nil {
		return err
	}
	if err := f.Break(ctx, scene); err != nil {
		return fmt.Errorf("break the lab: %w", err)
	}
	if err := scene.create(ctx, scene.ExtraObjects...); err != nil {
		return err
	}
	if err := scene.create(ctx, scene.Class, scene.Pool); err != nil {
		return err
	}
	if err := scene.waitConditionSet(ctx); err != nil {
		return err
	}
	if withPods || f.NeedsPods {
		if err := s.ensurePods(ctx, scene); err != nil {
			return err
		}
	}
	if f.AfterCreate != nil {
		return f.AfterCreate(ctx, scene)
	}
	return nil
}

func (s *Stage) ensurePods(ctx context.Context, scene *Scene) error {
	if slices.ContainsFunc(scene.created, func(o client.Object) bool { return o == client.Object(scene.Pods) }) {
		return nil
	}
	return scene.create(ctx, scene.Pods)
}

// injectAndFind injects the fault, runs doctor until the expected finding is first, and returns the printed fix.
func (s *Stage) injectAndFind(ctx context.Context, scene *Scene, f Fault, r *Result) (fix string, err error) {
	if err := s.Setup(ctx, scene, f, f.NeedsInstance); err != nil {
		return "", err
	}
	started := time.Now()
	err = scene.until(ctx, Limit, "the first finding to be "+f.Check, func(ctx context.Context) (bool, error) {
		all, err := s.runDoctor(ctx)
		if err != nil {
			return false, err
		}
		launched := firstLaunch(scene)
		r.Found = r.Found || slices.ContainsFunc(all, f.matches)
		if len(all) == 0 || !f.matches(all[0]) {
			// A finding of the right check with another cause or verdict is not recorded as wrong.
			if len(all) > 0 && all[0].NeedsAction() && all[0].Check != f.Check {
				r.addWrongFirst(all[0])
			}
			// Some causes are visible only with an instance. Create the pods, so that the controller launches an
			// instance.
			return false, errors.Join(s.ensurePods(ctx, scene), fmt.Errorf("the first finding is %s", describeFirst(all)))
		}
		r.First, r.BeforeLaunch, r.FoundAfter, fix = true, launched.IsZero(), time.Since(started), all[0].Fix
		if !launched.IsZero() {
			r.FoundAfter = time.Since(launched)
		}
		return true, nil
	})
	if err == nil && !r.BeforeLaunch && !f.NeedsInstance {
		err = fmt.Errorf("the fault was found %s after a launch, but must be found before a launch", r.FoundAfter)
	}
	return fix, err
}

// firstLaunch returns the launch time of the scene's first instance, or zero without an instance.
func firstLaunch(scene *Scene) time.Time {
	instances := scene.Instances()
	if len(instances) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(instances, func(a, b world.Instance) int { return a.LaunchedAt.Compare(b.LaunchedAt) }).LaunchedAt
}

// matches reports whether a finding is the one that the fault must cause.
func (f Fault) matches(found Finding) bool {
	verdict := diagnosis.Broken
	if f.ExpectSuspicious {
		verdict = diagnosis.Suspicious
	}
	return found.Check == f.Check && strings.Contains(found.Cause, f.Cause) && found.Verdict == string(verdict)
}

func (r *Result) addWrongFirst(f Finding) {
	line := f.Check + " " + f.Verdict + ": " + f.Cause
	if !slices.Contains(r.WrongFirst, line) {
		r.WrongFirst = append(r.WrongFirst, line)
	}
}

func (r Result) foundWhen() string {
	if r.BeforeLaunch {
		return "before the launch"
	}
	return fmt.Sprintf("%.1f s after the launch", r.FoundAfter.Seconds())
}

func describeFirst(all []Finding) string {
	if len(all) == 0 {
		return "no finding"
	}
	return fmt.Sprintf("%s %s: %s", all[0].Check, all[0].Verdict, all[0].Cause)
}

// runDoctor runs doctor with read-only permissions, and returns its findings.
func (s *Stage) runDoctor(ctx context.Context) ([]Finding, error) {
	printed, _, err := s.Lab.Doctor(ctx, s.Joiner, "-o", "json")
	if err != nil {
		return nil, err
	}
	var report struct{ Findings []Finding }
	if err := json.Unmarshal([]byte(printed), &report); err != nil {
		return nil, fmt.Errorf("parse the output of doctor: %w", err)
	}
	return report.Findings, nil
}

func (s *Stage) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(fmt.Sprintf(format, args...))
	}
}
