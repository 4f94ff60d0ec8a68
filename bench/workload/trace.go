package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// ErrMissing reports that a workload needs a file that does not exist.
var ErrMissing = errors.New("file does not exist")

// traceFile is Alibaba's trace of a production GPU cluster, 2023.
const traceFile = "openb_pod_list_default.csv"

// tracePods returns the pods of the trace in the folder: all of them if gpus is true, otherwise those that request no
// GPU. A pod that shares a GPU in the trace requests a whole GPU here.
func tracePods(folder string, gpus bool) ([]*corev1.Pod, error) {
	lifetimes, err := readTrace(folder)
	var out []*corev1.Pod
	for _, l := range lifetimes {
		if _, hasGPU := l.pod.Spec.Containers[0].Resources.Requests[catalog.ResourceNVIDIA]; gpus || !hasGPU {
			out = append(out, l.pod)
		}
	}
	return out, err
}

// podLifetime is a pod of the trace with the start and end of its run, as times since the start of the trace.
type podLifetime struct {
	pod         *corev1.Pod
	from, until time.Duration
}

// readTrace returns the pods of the trace in the order of its rows. Rows without times have zero times.
func readTrace(folder string) ([]podLifetime, error) {
	path := filepath.Join(folder, traceFile)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", path, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var out []podLifetime
	for _, row := range rows[1:] {
		pod, err := podOfRow(row)
		if err != nil {
			return nil, fmt.Errorf("read %s, %s: %w", path, row[0], err)
		}
		l := podLifetime{pod: pod}
		if len(row) < 10 {
			out = append(out, l) // without times
			continue
		}
		for i, into := range []*time.Duration{&l.from, &l.until} { // columns creation_time and deletion_time
			seconds, err := strconv.ParseInt(row[8+i], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read %s, %s: %w", path, row[0], err)
			}
			*into = time.Duration(seconds) * time.Second
		}
		out = append(out, l)
	}
	return out, nil
}

// podOfRow returns the pod of a row, from the columns name, cpu_milli, memory_mib and num_gpu. The other columns do not
// affect a plan.
func podOfRow(row []string) (*corev1.Pod, error) {
	var n [3]int64 // millicores, MiB, GPUs
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(row[1+i], 10, 64); err != nil {
			return nil, err
		}
	}
	d := newDeployment(row[0], 1, n[0], n[1])
	if n[2] > 0 {
		d.template.Containers[0].Resources.Requests[catalog.ResourceNVIDIA] = *resource.NewQuantity(n[2], resource.DecimalSI)
	}
	pod := d.pod(0)
	pod.Name, pod.OwnerReferences = row[0], nil
	return pod, nil
}
