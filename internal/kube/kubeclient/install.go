package kubeclient

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/api/crds"
)

// DefinitionInstaller installs the CustomResourceDefinitions of the API with server-side apply. It does not change a
// CRD that is newer than this program's, or whose objects are stored in a version that this program does not know.
type DefinitionInstaller struct {
	// Live reads and writes at the API server, without a cache, and knows apiextensions.k8s.io/v1: see NewDefinitions.
	Live client.Client
	// Force also replaces a CRD of another program that has fields unknown to this program.
	Force bool
}

// NewDefinitions returns the DefinitionInstaller for the cluster of cfg.
func NewDefinitions(cfg *rest.Config) (*DefinitionInstaller, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	live, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", cfg.Host, err)
	}
	return &DefinitionInstaller{Live: live}, nil
}

const definitionOwner = "joiner" // field manager

const servedWithin = 10 * time.Second // time limit of waitServed

// Selection says which definitions to install.
type Selection string

// The selections. Each includes those before it.
const (
	SelectMissing  Selection = "lacking" // definitions that do not exist
	SelectOutdated Selection = "stale"   // also definitions of an older revision or of another program
	SelectAll      Selection = "every"   // also definitions of this revision, in case they were changed by hand
)

// Compare compares the cluster's definitions with the program's, by name. It writes nothing.
func (d *DefinitionInstaller) Compare(ctx context.Context) ([]DefinitionComparison, error) {
	var out []DefinitionComparison
	ours, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	for _, own := range ours {
		found := &apiextensionsv1.CustomResourceDefinition{}
		err := d.Live.Get(ctx, client.ObjectKeyFromObject(own), found)
		switch {
		case apierrors.IsNotFound(err):
			found = nil
		case err != nil:
			return nil, fmt.Errorf("read definition %s: %w", own.Name, err)
		}
		out = append(out, CompareDefinition(own, found))
	}
	return out, nil
}

// Install installs the selected definitions and waits until the API server serves all definitions that exist. It
// returns the comparisons from before the installation, sorted by name; Installed marks the definitions that were
// written. Every error can be passed to Classify.
func (d *DefinitionInstaller) Install(ctx context.Context, selection Selection) ([]DefinitionComparison, error) {
	all, err := d.Compare(ctx)
	if err != nil {
		return nil, err
	}
	for i, c := range all {
		if !c.isSelected(selection, d.Force) {
			continue
		}
		version, err := d.apply(ctx, c)
		if err != nil {
			return all, err
		}
		all[i].Installed = version != c.version // an apply that changes nothing keeps the version
	}
	for _, c := range all {
		if !c.Installed && c.version == "" {
			continue
		}
		// Also wait for definitions that were not installed here: another controller that starts at the same time may
		// be installing them.
		if err := d.waitServed(ctx, c.Name); err != nil {
			return all, err
		}
	}
	return all, nil
}

// apply writes the program's definition and returns its resourceVersion. It sends the resourceVersion of the compared
// definition, so that a newer definition written meanwhile is not overwritten.
func (d *DefinitionInstaller) apply(ctx context.Context, c DefinitionComparison) (string, error) {
	object, err := ownDefinition(c.Name)
	if err != nil {
		return "", err
	}
	object.SetResourceVersion(c.version)
	config := client.ApplyConfigurationFromUnstructured(object)
	if err := d.Live.Apply(ctx, config, client.FieldOwner(definitionOwner), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("apply definition %s: %w", c.Name, err)
	}
	return object.GetResourceVersion(), nil
}

// ownDefinition returns the program's definition with this name and the annotation with the revision. It has only the
// fields of the definition's file, because the apply would own each further field.
func ownDefinition(name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	for _, m := range crds.Manifests() {
		if m.Name != name {
			continue
		}
		if err := yaml.Unmarshal([]byte(m.YAML), &object.Object); err != nil {
			return nil, fmt.Errorf("read definition %s: %w", name, err)
		}
	}
	annotations := object.GetAnnotations()
	annotations[crds.KeyRevision] = strconv.Itoa(crds.Revision())
	object.SetAnnotations(annotations)
	return object, nil
}

// DefinitionManifests returns the program's definitions as YAML, one document each, sorted by name.
func DefinitionManifests() (string, error) {
	var b strings.Builder
	for _, m := range crds.Manifests() {
		object, err := ownDefinition(m.Name)
		if err != nil {
			return "", err
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("write definition %s: %w", m.Name, err)
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.String(), nil
}

func (d *DefinitionInstaller) waitServed(ctx context.Context, name string) error {
	why := "it has no conditions yet"
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, servedWithin, true, func(ctx context.Context) (bool, error) {
		found := &apiextensionsv1.CustomResourceDefinition{}
		if err := d.Live.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
			return false, err
		}
		for _, c := range found.Status.Conditions {
			switch {
			case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
				return true, nil
			case c.Status == apiextensionsv1.ConditionFalse:
				why = string(c.Type) + " is false: " + c.Message
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the API server serves %s (%s): %w", name, why, err)
	}
	return nil
}

// Remove deletes the program's CRDs, waits until they are gone, and returns their names. While objects of these kinds
// exist, it deletes nothing and returns an error that names the objects. The deletion of a CRD would delete its objects
// without terminating their instances.
func (d *DefinitionInstaller) Remove(ctx context.Context) ([]string, error) {
	ours, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	var remaining []string
	for _, own := range ours {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(listKind(own))
		err := d.Live.List(ctx, list)
		switch {
		case err == nil:
		case Classify(err) == Gone, isNoKind(err): // the CRD is not installed
			continue
		default:
			return nil, fmt.Errorf("list %s: %w", own.Spec.Names.Plural, err)
		}
		for _, o := range list.Items {
			remaining = append(remaining, own.Spec.Names.Singular+" "+o.GetName())
		}
	}
	if len(remaining) > 0 {
		shown := strings.Join(remaining[:min(5, len(remaining))], ", ")
		return nil, fmt.Errorf("there still are %d objects (%s): delete the NodePools first, wait until their nodes are gone, then delete the EC2NodeClasses and NodeOverlays", len(remaining), shown)
	}
	var removed []string
	for _, own := range ours {
		err := d.Live.Delete(ctx, own)
		if err == nil {
			removed = append(removed, own.Name)
		} else if !apierrors.IsNotFound(err) {
			return removed, fmt.Errorf("delete definition %s: %w", own.Name, err)
		}
	}
	for _, name := range removed {
		if err := d.awaitGone(ctx, name); err != nil {
			return removed, fmt.Errorf("wait until definition %s is gone: %w", name, err)
		}
	}
	return removed, nil
}

// awaitGone waits until the CRD is gone. The API server first deletes its objects.
func (d *DefinitionInstaller) awaitGone(ctx context.Context, name string) error {
	return wait.PollUntilContextCancel(ctx, goneInterval, true, func(ctx context.Context) (bool, error) {
		err := d.Live.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// goneInterval is the interval at which awaitGone checks whether the CRD is gone.
const goneInterval = 100 * time.Millisecond
