package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/lab"
)

// Healthy is the result of PlayHealthy: the findings of doctor in scenes without a fault.
type Healthy struct {
	Scenes     int      // number of scenes that were played
	DoctorRuns int      // number of runs of doctor: before pods were created, while they were pending, and when they ran
	Alarms     []string // false alarms: findings of doctor, without duplicates
}

// variant is the scene of NewScene with a change that is no fault.
type variant struct {
	name   string
	mode   string // authentication mode; empty: ekscluster.AuthBoth
	change func(ctx context.Context, s *Scene) error
}

func variants() []variant {
	alias := func(name string) func(context.Context, *Scene) error {
		return func(_ context.Context, s *Scene) error {
			s.Class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: name}}
			return nil
		}
	}
	setRequirement := func(index int, r karpv1.Requirement) func(context.Context, *Scene) error {
		return func(_ context.Context, s *Scene) error {
			s.Pool.Spec.Template.Spec.Requirements[index] = r
			return nil
		}
	}
	return []variant{
		{name: "al2023", change: alias("al2023@latest")},
		{name: "bottlerocket", change: alias("bottlerocket@latest")},
		{name: "al2", change: func(_ context.Context, s *Scene) error {
			family := "AL2"
			s.Class.Spec.AMIFamily, s.Class.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{ID: s.Lab.AL2Image}}
			return nil
		}},
		{name: "custom", change: useCustomImage(func(text string) string { return text })},
		{name: "arm64", change: setRequirement(0, In(corev1.LabelArchStable, "arm64"))},
		{name: "both-architectures", change: setRequirement(0, In(corev1.LabelArchStable, "amd64", "arm64"))},
		{name: "spot", change: setRequirement(1, In(karpv1.LabelCapacityType, "spot"))},
		{name: "devices", change: requestGPU("device-plugin-tolerating-all", corev1.Toleration{Operator: corev1.TolerationOpExists})},
		{name: "own-group", change: changeGroup(func(*network.SecurityGroup) {})},
		{name: "own-subnet", change: changeSubnet(func(*Scene, *network.Subnet, *network.RouteTable) {})},
		{name: "own-profile", change: func(_ context.Context, s *Scene) error {
			s.Class.Spec.Role, s.Class.Spec.InstanceProfile = "", &s.Name
			return s.ChangeAWS(func(w *world.World, now time.Time) error {
				account := w.Account(s.Lab.Account)
				_, err := account.CreateProfile(now, identity.Profile{Name: s.Name})
				return errors.Join(err, account.AddRoleToProfile(s.Name, lab.NodeRole))
			})
		}},
		{name: "entry", change: mapByEntry(ekscluster.EntryEC2Linux)},
		{name: "entry-api", mode: ekscluster.AuthAPI, change: mapByEntry(ekscluster.EntryEC2Linux)},
		{name: "row", mode: ekscluster.AuthConfigMap, change: mapByRow()},
	}
}

// PlayHealthy plays the scenes without a fault, and runs doctor until the pods of all scenes run. Scenes with the same
// authentication mode run at the same time.
func (s *Stage) PlayHealthy(ctx context.Context) (Healthy, error) {
	var out Healthy
	for _, mode := range []string{ekscluster.AuthBoth, ekscluster.AuthAPI, ekscluster.AuthConfigMap} {
		if err := s.playHealthy(ctx, mode, &out); err != nil {
			return out, fmt.Errorf("healthy scenes in mode %s: %w", mode, err)
		}
	}
	return out, nil
}

func (s *Stage) playHealthy(ctx context.Context, mode string, out *Healthy) error {
	var scenes []*Scene
	defer func() {
		for _, scene := range scenes {
			_ = scene.remove(context.WithoutCancel(ctx))
		}
		for _, scene := range scenes {
			_ = scene.waitGone(context.WithoutCancel(ctx))
		}
	}()
	const withPods = false // doctor runs before the pods are created
	for _, v := range variants() {
		isDefaultMode := v.mode == "" && mode == ekscluster.AuthBoth
		if v.mode != mode && !isDefaultMode {
			continue
		}
		s.sceneCount++
		scene := NewScene(s.Lab, fmt.Sprintf("healthy-%s-%d", v.name, s.sceneCount))
		scenes = append(scenes, scene)
		if err := s.Setup(ctx, scene, Fault{Name: v.name, AuthMode: mode, Break: v.change}, withPods); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	out.Scenes += len(scenes)
	if err := s.recordAlarms(ctx, out); err != nil {
		return err
	}
	for _, scene := range scenes {
		if err := s.ensurePods(ctx, scene); err != nil {
			return err
		}
	}
	for _, scene := range scenes {
		err := scene.until(ctx, clearTimeout, "the pods of "+scene.Name+" to run", func(ctx context.Context) (bool, error) {
			err := s.recordAlarms(ctx, out)
			running, podErr := scene.isRunning(ctx)
			return running, errors.Join(err, podErr)
		})
		if err != nil {
			return err
		}
	}
	return s.recordAlarms(ctx, out)
}

// recordAlarms runs doctor, and adds the findings that require action to the alarms.
func (s *Stage) recordAlarms(ctx context.Context, out *Healthy) error {
	all, err := s.runDoctor(ctx)
	if err != nil {
		return err
	}
	out.DoctorRuns++
	for _, f := range all {
		if line := fmt.Sprintf("%s %s, %s: %s", f.Check, f.Verdict, f.Subject, f.Cause); f.NeedsAction() && !slices.Contains(out.Alarms, line) {
			out.Alarms = append(out.Alarms, line)
		}
	}
	return nil
}
