package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/controller/nodeclass"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

func TestNodeClassStatus(t *testing.T) {
	t.Parallel()
	ptrTo := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		change func(*awsv1.EC2NodeClass)
		faults world.Faults

		want map[string]string // by condition: its status; optionally also its reason and a part of its message
	}{
		"a valid class": {
			change: func(*awsv1.EC2NodeClass) {},
			want:   map[string]string{karpv1.ConditionReady: "True"},
		},
		"no such subnet": {
			change: func(c *awsv1.EC2NodeClass) { c.Spec.SubnetSelectorTerms[0].Tags = map[string]string{"no": "such"} },
			want: map[string]string{
				awsv1.ConditionSubnetsReady:        "False SubnetsNotFound no=such",
				awsv1.ConditionValidationSucceeded: "Unknown DependenciesNotReady SubnetsReady",
				karpv1.ConditionReady:              "False UnhealthyDependents SubnetsReady=False",
			},
		},
		"no such group": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.SecurityGroupSelectorTerms[0] = awsv1.SecurityGroupSelectorTerm{Name: "absent"}
			},
			want: map[string]string{awsv1.ConditionSecurityGroupsReady: "False SecurityGroupsNotFound name=absent"},
		},
		"no such image": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{ID: "ami-00000000000000000"}}
			},
			want: map[string]string{awsv1.ConditionAMIsReady: "False AMINotFound ami-00000000000000000"},
		},
		"an alias without an image for the Kubernetes version": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.AMIFamily, c.Spec.AMISelectorTerms = nil, []awsv1.AMISelectorTerm{{Alias: "al2@latest"}}
			},
			want: map[string]string{awsv1.ConditionAMIsReady: "False UnsupportedAlias 1.33"},
		},
		"a role of another path": {
			change: func(c *awsv1.EC2NodeClass) { c.Spec.Role = "team/b/node" },
			want:   map[string]string{awsv1.ConditionInstanceProfileReady: "False RolePathMismatch spec.role"},
		},
		"no such role": {
			change: func(c *awsv1.EC2NodeClass) { c.Spec.Role = "absent" },
			want:   map[string]string{awsv1.ConditionInstanceProfileReady: "False RoleNotFound absent"},
		},
		"no such profile": {
			change: func(c *awsv1.EC2NodeClass) { c.Spec.Role, c.Spec.InstanceProfile = "", ptrTo("absent") },
			want:   map[string]string{awsv1.ConditionInstanceProfileReady: "False InstanceProfileNotFound absent"},
		},
		"a tag that Joiner sets": {
			change: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"joiner.sh/cluster-uid": "x"} },
			want:   map[string]string{awsv1.ConditionValidationSucceeded: "False TagValidationFailed joiner.sh/cluster-uid"},
		},
		"user data that is too long": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.UserData = ptrTo("#!/bin/sh\n# " + strings.Repeat("x", 17_000))
			},
			want: map[string]string{awsv1.ConditionValidationSucceeded: "False UserDataSizeLimitExceeded 16384"},
		},
		"invalid TOML as user data": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.AMIFamily, c.Spec.AMISelectorTerms, c.Spec.UserData = nil, []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}},
					ptrTo("[settings]\nmotd = hello\n")
			},
			want: map[string]string{awsv1.ConditionValidationSucceeded: "False UserDataInvalid spec.userData, line 2, column 8: it is not valid TOML"},
		},
		"invalid YAML as user data": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.UserData = ptrTo("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: [\n")
			},
			want: map[string]string{awsv1.ConditionValidationSucceeded: "False UserDataInvalid spec.userData, line 3: is not a NodeConfig"},
		},
		"an unknown kubelet setting": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.Kubelet = &awsv1.KubeletConfiguration{More: map[string]runtime.RawExtension{"maxPod": {Raw: []byte("5")}}}
			},
			want: map[string]string{awsv1.ConditionValidationSucceeded: "False InvalidKubeletConfiguration spec.kubelet.maxPod: the kubelet has no such setting"},
		},
		"a setting that the family cannot set": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.AMIFamily, c.Spec.AMISelectorTerms = nil, []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}
				c.Spec.Kubelet = &awsv1.KubeletConfiguration{More: map[string]runtime.RawExtension{"seccompDefault": {Raw: []byte("true")}}}
			},
			want: map[string]string{awsv1.ConditionValidationSucceeded: "False UnsupportedKubeletConfiguration Bottlerocket has no way to set seccompDefault"},
		},
		"a setting of the kubelet that AL2023 passes on": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.Kubelet = &awsv1.KubeletConfiguration{More: map[string]runtime.RawExtension{"seccompDefault": {Raw: []byte("true")}}}
			},
			want: map[string]string{karpv1.ConditionReady: "True"},
		},
		"user data with an open block": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.AMIFamily, c.Spec.AMISelectorTerms, c.Spec.UserData = nil, []awsv1.AMISelectorTerm{{Alias: "windows2022@latest"}},
					ptrTo("<powershell>\nhostname\n")
			},
			want: map[string]string{awsv1.ConditionValidationSucceeded: "False UserDataInvalid spec.userData has <powershell>"},
		},
		"a disk without a device": {
			change: func(c *awsv1.EC2NodeClass) {
				size := resource.MustParse("50Gi")
				c.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{EBS: &awsv1.BlockDevice{VolumeSize: &size}}}
			},
			want: map[string]string{awsv1.ConditionValidationSucceeded: "False BlockDeviceMappingInvalid deviceName"},
		},
		"a disk smaller than the image's snapshot": {
			change: func(c *awsv1.EC2NodeClass) {
				size := resource.MustParse("2Gi")
				c.Spec.AMIFamily, c.Spec.AMISelectorTerms = nil, []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}
				c.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{DeviceName: ptrTo("/dev/xvda"),
					EBS: &awsv1.BlockDevice{VolumeSize: &size, VolumeType: ptrTo("gp3")}}}
			},
			want: map[string]string{awsv1.ConditionValidationSucceeded: "False BlockDeviceMappingInvalid needs at least 4 GiB on /dev/xvda: write 4Gi"},
		},
		"a disk whose throughput its IOPS do not allow": {
			change: func(c *awsv1.EC2NodeClass) {
				size, iops, throughput := resource.MustParse("100Gi"), int64(3000), int64(1000)
				c.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{DeviceName: ptrTo("/dev/xvda"),
					EBS: &awsv1.BlockDevice{VolumeSize: &size, VolumeType: ptrTo("gp3"), IOPS: &iops, Throughput: &throughput}}}
			},
			want: map[string]string{awsv1.ConditionValidationSucceeded: "False BlockDeviceMappingInvalid throughput is 1000 MiB/s"},
		},
		"a sysctl as a number": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.AMIFamily, c.Spec.AMISelectorTerms = nil, []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}
				c.Spec.UserData = ptrTo("[settings.kernel.sysctl]\n\"net.core.somaxconn\" = 1048576\n")
			},
			want: map[string]string{
				awsv1.ConditionValidationSucceeded: "False UserDataInvalid settings.kernel.sysctl.net.core.somaxconn must be text",
				awsv1.ConditionPreflightPassed:     "False SettingInvalid settings.kernel.sysctl.net.core.somaxconn must be text",
			},
		},
		"no such placement group": {
			change: func(c *awsv1.EC2NodeClass) {
				c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: ptrTo("g")}
			},
			want: map[string]string{awsv1.ConditionPlacementGroupReady: "False PlacementGroupNotFound name g in this region"},
		},
		"no permission to describe": {
			change: func(*awsv1.EC2NodeClass) {},
			faults: world.Faults{Denials: []world.Denial{{Call: "ec2:DescribeSubnets"}}},
			want:   map[string]string{awsv1.ConditionSubnetsReady: "False Unauthorized DescribeSubnets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.Do(func(w *world.World, _ time.Time) { w.Faults = c.faults })
			class := r.class(t)
			c.change(class)
			if err := r.api.Update(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			r.reconcileClassAndPool(t)
			conditions := r.class(t).StatusConditions()
			for condition, want := range c.want {
				got, _ := conditions.Find(condition)
				status, rest, _ := strings.Cut(want, " ")
				reason, part, _ := strings.Cut(rest, " ")
				if string(got.Status) != status || rest != "" && (got.Reason != reason || !strings.Contains(got.Message, part)) {
					t.Errorf("%s is %s %s %q, want %s", condition, got.Status, got.Reason, got.Message, want)
				}
			}
			poolReady, _ := r.pool(t).StatusConditions().Find(karpv1.ConditionReady)
			classReady, _ := conditions.Find(karpv1.ConditionReady)
			if poolReady.Status != classReady.Status {
				t.Errorf("Ready of pool and class is %s and %s, want the same", poolReady.Status, classReady.Status)
			}
		})
	}
}

func TestReadyClassStaysReady(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	before := r.class(t)
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "ec2:DescribeSubnets"}, {Call: "ec2:DescribeImages"}, {Call: "iam:GetInstanceProfile"}}
	})
	result, err := r.NodeClasses.Reconcile(t.Context(), named("default"))
	after := r.class(t)
	if err != nil || result.RequeueAfter <= 0 || !after.StatusConditions().IsReady() ||
		!slices.Equal(before.Status.Subnets, after.Status.Subnets) || len(after.Status.AMIs) != len(before.Status.AMIs) {
		t.Errorf("the reconcile returned %+v, %v; the class is not ready as before: %+v", result, err, after.Status)
	}
	if !strings.Contains(r.log.String(), "DescribeSubnets") {
		t.Error("the log does not report the failed call DescribeSubnets")
	}
}

// TestDeletedClassWaitsForItsClaims: a deleted class stays until its claims are gone. Then its instance profile and
// launch templates are deleted, and the class is gone.
func TestDeletedClassWaitsForItsClaims(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	if err := r.api.Delete(t.Context(), r.class(t)); err != nil {
		t.Fatal(err)
	}
	reconcile := func() {
		if _, err := r.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()
	if r.events.find("EC2NodeClass/WaitingOnNodeClaimTermination", onlyClaim(t, r).Name) == "" {
		t.Errorf("no event names the claim that the class waits for: %v", r.events.emitted)
	}
	if err := r.api.Delete(t.Context(), onlyClaim(t, r)); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
	reconcile()
	err := r.api.Get(t.Context(), named("default").NamespacedName, &awsv1.EC2NodeClass{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the class is not gone: %v\n%s", err, r.log)
	}
	r.Do(func(w *world.World, _ time.Time) {
		if left := w.Account("111122223333").Profiles(""); len(left) > 0 {
			t.Errorf("instance profiles are left: %v", left)
		}
	})
	if left := r.estate.Region.LaunchTemplates.All(); len(left) > 0 {
		t.Errorf("launch templates are left: %v", left)
	}
}

// TestEarlierErrorsDoNotDelayDeletion: only errors of the deletion itself delay it.
func TestEarlierErrorsDoNotDelayDeletion(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	for range 10 {
		r.NodeClasses.Failures.Fail(time.Now(), "default", "Request limit exceeded")
	}
	if err := r.api.Delete(t.Context(), r.class(t)); err != nil {
		t.Fatal(err)
	}
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.CallErrors = []*world.CallError{{Call: "*", Status: 503, Code: "ServiceUnavailable"}}
	})
	for _, maxDelay := range []time.Duration{time.Second, 2 * time.Second} { // as after a first and a second error
		got, err := r.NodeClasses.Reconcile(t.Context(), named("default"))
		if err != nil || got.RequeueAfter == 0 || got.RequeueAfter > maxDelay {
			t.Errorf("the deletion is tried again after %s, want at most %s; %v\n%s", got.RequeueAfter, maxDelay, err, r.log)
		}
	}
}

// TestClassMetadata checks that the loop keeps the finalizers of others, and that Ready has a transition time.
func TestClassMetadata(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	class := r.class(t)
	class.Finalizers = []string{"example.com/other"}
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
	if got := r.class(t).Finalizers; !slices.Equal(got, []string{"example.com/other", awsv1.FinalizerTermination}) {
		t.Errorf("the class has the finalizers %v, want example.com/other and Joiner's", got)
	}
	if c, _ := r.class(t).StatusConditions().Find(karpv1.ConditionReady); c.LastTransitionTime == (metav1.Time{}) {
		t.Error("Ready has no transition time")
	}
}

// TestIsolatedClassNeedsNoIAM: a class that names its instance profile becomes ready without access to IAM, but only
// with the setting for an isolated VPC.
func TestIsolatedClassNeedsNoIAM(t *testing.T) {
	t.Parallel()
	for _, isolated := range []bool{false, true} {
		r := newRig(t, "t3.medium")
		profile := "made-by-hand"
		class := r.class(t)
		class.Spec.Role, class.Spec.InstanceProfile = "", &profile
		if err := r.api.Update(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		r.NodeClasses.Profiles = noIAM{}
		r.NodeClasses.Isolated = isolated
		r.reconcileClassAndPool(t)
		if got := r.class(t).StatusConditions().IsReady(); got != isolated {
			t.Errorf("isolated %t: the class is ready: %t, want the same: %+v", isolated, got, r.class(t).Status.Conditions)
		}
	}
}

type noIAM struct{ nodeclass.ProfileClient }

func (noIAM) Profile(context.Context, string) (iam.Profile, error) {
	return iam.Profile{}, &awserr.Error{Op: "GetInstanceProfile", Kind: awserr.Transient, Reason: "Timeout"}
}
