package live

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/process"
)

type run struct {
	Spec
	lab        *lab.Lab
	joiner     string // path of the program, for `joiner plan`
	log        func(string)
	loads      []workload
	controller *lab.Controller

	share    float64 // current share of the workloads' full scale
	version  int     // version of the pod templates
	expected int     // number of pods that the script creates in the current phase
	started  time.Time
	phases   []Phase

	mu        sync.Mutex
	samples   []Sample
	pods      map[types.UID]*podTimes // all pods of the workloads that were seen
	instances map[string]*instanceTimes
	sampleErr error // the error that ended sampling; nil while samples are taken
}

type podTimes struct {
	created, ran, gone time.Time // first seen, first running, and deletion requested; zero: not yet
}

type instanceTimes struct {
	launched, ended time.Time // when a sample first saw the instance, and that it has ended; zero: not yet
}

const samplePeriod = time.Second

// observe starts to watch pods and to take samples, until ctx ends. It returns after settleTime.
func (r *run) observe(ctx context.Context) error {
	r.started, r.pods, r.instances = time.Now(), map[types.UID]*podTimes{}, map[string]*instanceTimes{}
	factory := informers.NewSharedInformerFactoryWithOptions(r.lab.Kube, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	note := func(object any, isGone bool) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if pod, ok := object.(*corev1.Pod); ok {
			r.notePod(pod, isGone)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note(object, false) },
		UpdateFunc: func(_, object any) { note(object, false) },
		DeleteFunc: func(object any) { note(object, true) },
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := r.sample(); err != nil {
		return err
	}
	go func() {
		tick := time.NewTicker(samplePeriod)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := r.sample(); err != nil {
				r.mu.Lock()
				r.sampleErr = err
				r.mu.Unlock()
				return
			}
		}
	}()
	return pause(ctx, settleTime)
}

func (r *run) notePod(pod *corev1.Pod, isGone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[pod.UID]
	if p == nil {
		p = &podTimes{created: time.Now()}
		r.pods[pod.UID] = p
	}
	if pod.Status.Phase == corev1.PodRunning && p.ran.IsZero() {
		p.ran = time.Now()
	}
	if (isGone || pod.DeletionTimestamp != nil) && p.gone.IsZero() {
		p.gone = time.Now()
	}
}

func (r *run) sample() error {
	usage, err := process.UsageOf(r.controller.PID())
	if err != nil {
		return err
	}
	s := Sample{CPU: usage.CPU, Memory: usage.Memory}
	instances := r.lab.Instances()
	for _, i := range instances {
		if i.Alive() {
			s.Instances++
			s.Price += r.lab.Price(i).Dollars()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.noteInstances(instances, now)
	for _, p := range r.pods {
		switch {
		case !p.gone.IsZero(): // not counted
		case !p.ran.IsZero():
			s.Running++
		default:
			s.Pending++
		}
	}
	s.At = now.Sub(r.started)
	r.samples = append(r.samples, s)
	return nil
}

// noteInstances records the times of instances. The caller holds the lock.
func (r *run) noteInstances(all []world.Instance, now time.Time) {
	for _, i := range all {
		t := r.instances[i.ID]
		if t == nil {
			t = &instanceTimes{launched: now}
			r.instances[i.ID] = t
		}
		if !i.Alive() && t.ended.IsZero() {
			t.ended = now
		}
	}
}

// last returns the last sample and sampleErr.
func (r *run) last() (Sample, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.samples[len(r.samples)-1], r.sampleErr
}

func (r *run) result() Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Result{Spec: r.Spec, Phases: r.phases, Samples: r.samples, Log: r.controller.Tail(maxLogLines)}
}

// requests returns the number of requests that all clients have sent to the API server since its start. It does not
// count watches.
func (r *run) requests(ctx context.Context) (int, error) {
	text, err := r.lab.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	total := 0.0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || strings.Contains(line, `verb="WATCH"`) {
			continue
		}
		fields := strings.Fields(line)
		n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("read the metrics of the API server: %w", err)
		}
		total += n
	}
	return int(total), nil
}
