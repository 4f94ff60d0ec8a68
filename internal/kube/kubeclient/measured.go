package kubeclient

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// MeasuredName is the name of the ConfigMap with the measured capacity of nodes: a key for each image, a line for each
// instance type. See catalog.Measurements.Encode.
const MeasuredName = "joiner-measured-capacity"

// annotationAbout explains an object to users who find it in the cluster.
const annotationAbout = "joiner.sh/about"

const aboutMeasured = "Measured memory, disk and pod capacity of nodes, by image and instance type. Joiner plans with these values." +
	" To have everything measured again, delete this ConfigMap and restart Joiner."

// measuredLimit is the maximum size of the measurements in bytes: half of the mebibyte that the API server accepts,
// enough for about six thousand lines.
const measuredLimit = 512 << 10

// MeasuredStore stores measurements in the ConfigMap MeasuredName. Every error it returns can be passed to Classify.
type MeasuredStore struct {
	Live      client.Reader // reads from the API server, because informers would hold every ConfigMap of the cluster
	Writer    client.Writer // writes to the API server
	Namespace string        // the controller's namespace
}

// Read returns the stored measurements; none if the ConfigMap does not exist. If some lines cannot be read, it returns
// the other measurements and an error that names the lines. The measurements are nil only if the ConfigMap cannot be
// read.
func (s MeasuredStore) Read(ctx context.Context) (catalog.Measurements, error) {
	found, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := catalog.DecodeMeasurements(found.Data)
	if err != nil {
		err = fmt.Errorf("read configmap %s/%s: %w", s.Namespace, MeasuredName, err)
	}
	return kept, err
}

// Write adds m to the stored measurements, drops those that no node has confirmed on or after the day since, and
// returns the result. It also drops lines that cannot be read. If another client wrote meanwhile, nothing is written,
// and Classify returns Reread.
func (s MeasuredStore) Write(ctx context.Context, m catalog.Measurements, since catalog.Day) (catalog.Measurements, error) {
	found, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	kept, _ := catalog.DecodeMeasurements(found.Data) // Read has reported the errors
	kept = kept.Merge(m)
	kept.Forget(since)
	data := kept.Encode(measuredLimit)
	switch {
	case found.ResourceVersion == "":
		found.Annotations = map[string]string{annotationAbout: aboutMeasured}
		found.Data = data
		err = s.Writer.Create(ctx, found)
	case !maps.Equal(data, found.Data):
		found.Data = data
		err = s.Writer.Update(ctx, found)
	}
	if err != nil {
		return nil, fmt.Errorf("write configmap %s/%s: %w", s.Namespace, MeasuredName, err)
	}
	return kept, nil
}

// get returns the ConfigMap; if it does not exist, an object without resourceVersion.
func (s MeasuredStore) get(ctx context.Context) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: MeasuredName}, found)
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: MeasuredName}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configmap %s/%s: %w", s.Namespace, MeasuredName, err)
	}
	return found, nil
}
