package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// addOwner makes the StatefulSet db the owner of all pods.
func (f *replicaRig) addOwner(t *testing.T) {
	t.Helper()
	for _, pod := range f.pods(t) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "db",
			Controller: ptr.To(true)}}
		f.check(t, f.api.Update(t.Context(), &pod))
	}
}

func (f *replicaRig) moveStore() kubeclient.MoveStore {
	return kubeclient.MoveStore{Live: f.api, Writer: f.api, Namespace: "kube-system"}
}

// TestHourlyMovesAreLimited: the moves of a workload's pods within the last hour are limited to two per pod. Moves of
// an earlier process count. The moves of this process are stored for the next process.
func TestHourlyMovesAreLimited(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 4, "1500m", "400m", "t3.medium")
	f.addOwner(t)
	before := disruption.PodMoves(nil).Add(f.now(), disruption.PodMove{
		At: f.now().Add(-10 * time.Minute), Workload: "StatefulSet ns/db", Pods: 8, Shape: "another", Reason: disruption.Underutilized,
	})
	f.check(t, f.moveStore().Write(t.Context(), before.Encode()))
	f.converge(t)
	if got := f.typeCounts(); got != "4 t3.medium" {
		t.Fatalf("8 moves of 4 pods were made within the hour; remaining: %s, want 4 t3.medium\n%s", got, f.log)
	}
	f.ahead += time.Hour
	f.converge(t)
	if got := f.typeCounts(); got != "1 t3.medium" {
		t.Fatalf("the moves are older than an hour; remaining: %s, want 1 t3.medium\n%s", got, f.log)
	}
	f.ahead += disruptor.MoveHistoryInterval
	f.runDisruption(t)
	text, err := f.moveStore().Read(t.Context())
	f.check(t, err)
	trips, unread := disruption.DecodeTrips(text)
	moved := 0
	for _, trip := range trips {
		if strings.HasPrefix(trip.Shape, "apps/t3.medium/us-") && trip.Workload == "StatefulSet ns/db" &&
			trip.Reason == disruption.Underutilized {
			moved += trip.Pods
			if trip.All < trip.Pods || trip.All > 4 {
				t.Errorf("the trip has %d moved pods of %d, but the workload has 4", trip.Pods, trip.All)
			}
		}
	}
	if unread != 0 || moved != 3 {
		t.Errorf("moves of %d pods are stored, and %d invalid lines; want 3 and 0:\n%s", moved, unread, text)
	}
}

func TestPoolRaisesLimitOfMoves(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 4, "1500m", "400m", "t3.medium")
	f.addOwner(t)
	f.changePool(t, func(p *karpv1.NodePool) { p.Annotations = map[string]string{karpv1.AnnotationMaximumMoves: "3"} })
	before := disruption.PodMoves(nil).Add(f.now(), disruption.PodMove{
		At: f.now().Add(-10 * time.Minute), Workload: "StatefulSet ns/db", Pods: 8, Shape: "another", Reason: disruption.Underutilized,
	})
	f.check(t, f.moveStore().Write(t.Context(), before.Encode()))
	f.converge(t)
	if got := f.typeCounts(); got != "1 t3.medium" {
		t.Fatalf("12 moves are allowed, 8 were made before; remaining: %s, want 1 t3.medium\n%s", got, f.log)
	}
}

// unreadableStore is an empty store that cannot be read until isReadable is true.
type unreadableStore struct{ isReadable bool }

func (s *unreadableStore) Read(context.Context) (string, error) {
	if s.isReadable {
		return "", nil
	}
	return "", errors.New("the store cannot be read")
}

func (s *unreadableStore) Write(context.Context, string) error { return nil }

func TestNoMoveWithoutHistory(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 4, "1500m", "400m", "t3.medium")
	store := &unreadableStore{}
	f.Moves.History.Store = store
	f.converge(t)
	if got := f.typeCounts(); got != "4 t3.medium" {
		t.Fatalf("remaining: %s, want 4 t3.medium", got)
	}
	store.isReadable = true
	f.converge(t)
	if got := f.typeCounts(); got != "1 t3.medium" {
		t.Fatalf("the record can be read; remaining: %s, want 1 t3.medium", got)
	}
}

// TestWorkloadsThatWouldMove: WorkloadsOf counts, by workload, the pods that must move with their node. DaemonSet pods,
// and pods that have ended or are being deleted, do not move.
func TestWorkloadsThatWouldMove(t *testing.T) {
	t.Parallel()
	podOf := func(kind, name string, change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}}}}
		if change != nil {
			change(pod)
		}
		return pod
	}
	got := disruptor.WorkloadsOf([]*corev1.Pod{
		podOf("StatefulSet", "db", nil), podOf("StatefulSet", "db", nil), podOf("DaemonSet", "agent", nil), podOf("Job", "once", nil),
		podOf("Job", "done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		podOf("StatefulSet", "web", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
		{}, // without an owner
	})
	if len(got) != 2 || got["StatefulSet ns/db"] != 2 || got["Job ns/once"] != 1 {
		t.Errorf("counted %v, want 2 pods of db and 1 of once", got)
	}
}

// TestMovesInProgressCount: moves that are not committed yet count against the hourly limit, here 2 for each of 4 pods.
func TestMovesInProgressCount(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	s := disruptor.HistoryInput{Claims: map[string]*karpv1.NodeClaim{}, Pods: map[string][]*corev1.Pod{}}
	in := disruption.Input{Now: now}
	for name, pods := range map[string]int{"a": 2, "b": 1, "c": 1} {
		s.Claims[name] = &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Claims[name].Status.NodeName = name
		in.Snapshot.Nodes = append(in.Snapshot.Nodes, cluster.Node{Name: name, Claim: name})
		for range pods {
			s.Pods[name] = append(s.Pods[name], &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", Controller: ptr.To(true)}}},
				Spec: corev1.PodSpec{NodeName: name},
			})
		}
	}
	history := &disruptor.MoveHistory{Trips: disruption.PodMoves(nil).Add(now,
		disruption.PodMove{At: now.Add(-time.Minute), Workload: "StatefulSet ns/db", Pods: 6, Shape: "x", Reason: disruption.Underutilized})}
	staying := func() int { return len(history.Stays(in, disruption.Underutilized, []string{"b"}, s, false)) }
	if n := staying(); n != 0 {
		t.Fatalf("6 of 8 moves are made, but one more is not allowed")
	}
	mark := nodestate.MoveMark{ID: "m", Reason: disruption.Underutilized, Started: now, Nodes: 1, Pods: 2}
	mark.Put(s.Claims["a"], now)
	if n := staying(); n != 1 {
		t.Errorf("6 of 8 moves are made and 2 are in progress, but one more is allowed")
	}
	mark.Committed = true // then it counts only as a trip
	mark.Put(s.Claims["a"], now)
	if n := staying(); n != 0 {
		t.Errorf("a committed move counts twice")
	}
}
