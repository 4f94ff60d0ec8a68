package cli

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/manifest"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// objects returns the NodePools and EC2NodeClasses of the manifests in r.files, or those of the cluster if there are no
// files.
func (r *renderFlags) objects(ctx context.Context, s Streams) (manifest.Manifests, error) {
	if len(r.files) > 0 {
		return manifest.ReadFiles(r.files, s.In)
	}
	cfg, err := r.live.config()
	if err != nil {
		return manifest.Manifests{}, err
	}
	scheme, err := kubeclient.Scheme()
	if err != nil {
		return manifest.Manifests{}, fmt.Errorf("register the kinds of objects: %w", err)
	}
	api, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return manifest.Manifests{}, withHint(fmt.Errorf("reach the API server %s: %w", cfg.Host, err))
	}
	var classes awsv1.EC2NodeClassList
	var pools karpv1.NodePoolList
	for _, list := range []client.ObjectList{&classes, &pools} {
		if err := api.List(ctx, list); err != nil {
			return manifest.Manifests{}, withHint(fmt.Errorf("read the cluster at %s: %w", cfg.Host, err))
		}
	}
	var m manifest.Manifests
	for i := range classes.Items {
		m.Classes = append(m.Classes, &classes.Items[i])
	}
	for i := range pools.Items {
		m.Pools = append(m.Pools, &pools.Items[i])
	}
	return m, nil
}

// objectSource names the source of the method objects, for error messages.
func (r *renderFlags) objectSource() string {
	if len(r.files) > 0 {
		return "among the manifests"
	}
	return "in the cluster"
}

func poolNames(m manifest.Manifests) []string {
	var names []string
	for _, p := range m.Pools {
		names = append(names, p.Name)
	}
	return names
}

func classNames(m manifest.Manifests) []string {
	var names []string
	for _, c := range m.Classes {
		names = append(names, c.Name)
	}
	return names
}

func typeNames(types []catalog.Type) []string {
	var names []string
	for _, t := range types {
		names = append(names, t.Name)
	}
	return names
}
