package lab_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// uninstallGuide is what users read to be rid of all.
const uninstallGuide = "../docs/guides/uninstall.md"

// leaveAsTheGuideSays carries out the commands of the guide, one after the other, in the chart's namespace in place of the guide's.
func (in *installation) leaveAsTheGuideSays() {
	in.t.Helper()
	text, err := os.ReadFile(uninstallGuide)
	if err != nil {
		in.t.Fatal(err)
	}
	page, _, _ := strings.Cut(string(text), "\n## ") // what comes then is for other cases
	done, isCode := 0, false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			isCode = line == "```sh"
			continue
		}
		if isCode {
			in.carryOut(strings.Fields(line))
			done++
		}
	}
	if done < 8 {
		in.t.Errorf("%s has %d commands", uninstallGuide, done)
	}
}

// carryOut does what one command of the guide does.
func (in *installation) carryOut(words []string) {
	in.t.Helper()
	switch {
	case len(words) > 2 && words[0] == "kubectl":
		in.kubectl(slices.DeleteFunc(words[1:],
			func(w string) bool { return w == "--namespace" || w == "kube-system" || w == "--ignore-not-found" }))
	case len(words) > 2 && words[0] == "helm":
		in.stop() // as the kubelet does, when the pods go
		in.run(append(words[1:3:3], "-n", chartHome, "--wait", "--timeout", "60s")...)
	case strings.HasPrefix(words[0], "CLUSTER_UID="), words[0] == "aws":
		// nothingMoreThan reads everything in AWS, not only objects with the cluster's tag.
	default:
		in.t.Fatalf("%s says %q, which this test cannot carry out", uninstallGuide, words)
	}
}

// kubectl deletes, waits or looks as kubectl does.
func (in *installation) kubectl(words []string) {
	in.t.Helper()
	rest := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool { return strings.HasPrefix(w, "--") })
	isAll := slices.Contains(words, "--all")
	switch {
	case words[0] == "delete" && isAll:
		in.deleteAll(rest[0])
		in.none(rest[0]) // kubectl waits for what it deletes
	case words[0] == "delete" && strings.Contains(rest[0], "/"):
		for _, object := range rest {
			kind, name, _ := strings.Cut(object, "/")
			in.delete(kind, name)
		}
	case words[0] == "delete":
		for _, name := range rest[1:] {
			in.delete(rest[0], name)
		}
	case words[0] == "wait" && isAll && slices.Contains(words, "--for=delete"):
		in.none(rest[0])
	case words[0] == "get" && len(rest) == 1:
		for kind := range strings.SplitSeq(rest[0], ",") {
			in.none(kind)
		}
	default:
		in.t.Fatalf("%s says kubectl %q, which this test cannot carry out", uninstallGuide, words)
	}
}

// kind finds a resource by the name that users call it by.
func (in *installation) kind(name string) metadata.ResourceInterface {
	in.t.Helper()
	groups, err := restmapper.GetAPIGroupResources(in.l.Kube.Discovery())
	if err != nil {
		in.t.Fatal(err)
	}
	if name == "crd" { // as kubectl abbreviates it
		name = "customresourcedefinitions"
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	resource, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: name})
	if err != nil {
		in.t.Fatal(err)
	}
	kind, err := mapper.KindFor(resource)
	if err != nil {
		in.t.Fatal(err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind())
	if err != nil {
		in.t.Fatal(err)
	}
	objects, err := metadata.NewForConfig(in.l.Config)
	if err != nil {
		in.t.Fatal(err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return objects.Resource(mapping.Resource).Namespace(chartHome)
	}
	return objects.Resource(mapping.Resource)
}

func (in *installation) deleteAll(kind string) {
	in.t.Helper()
	if err := in.kind(kind).DeleteCollection(in.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		in.t.Fatal(err)
	}
}

func (in *installation) delete(kind, name string) {
	in.t.Helper()
	if err := in.kind(kind).Delete(in.t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		in.t.Fatal(err)
	}
}

// none waits until there is none of a kind.
func (in *installation) none(kind string) {
	in.t.Helper()
	objects := in.kind(kind)
	within(in.t, in.l, time.Minute, kind+" to be gone", func(ctx context.Context) (bool, error) {
		list, err := objects.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
}

// settled waits until each of the given number of nodes has what every node has.
func (in *installation) settled(nodes int) {
	in.t.Helper()
	within(in.t, in.l, 30*time.Second, "the nodes to have all that nodes have", func(ctx context.Context) (bool, error) {
		sets, err := in.l.Kube.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(sets.Items, func(d appsv1.DaemonSet) bool { return int(d.Status.NumberReady) != nodes }), nil
	})
}

// inventory is everything that there is, in the cluster and in AWS, by name; but for events, which go by themselves,
// and for the pods of DaemonSets, which Kubernetes takes away within a minute of their node. What Kubernetes makes in
// every namespace counts with the namespace: where several watches are late it makes it once more in one that has just
// gone (kubernetes/kubernetes#36891 is of that race).
func (in *installation) inventory() map[string]bool {
	in.t.Helper()
	out := map[string]bool{}
	lists, err := in.l.Kube.Discovery().ServerPreferredResources()
	if err != nil {
		in.t.Fatal(err)
	}
	objects, err := metadata.NewForConfig(in.l.Config)
	if err != nil {
		in.t.Fatal(err)
	}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			in.t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Name == "events" {
				continue
			}
			found, err := objects.Resource(group.WithResource(r.Name)).List(in.t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue // a definition that is just going
			}
			if err != nil {
				in.t.Fatal(err)
			}
			for _, o := range found.Items {
				if owner := metav1.GetControllerOf(&o); owner != nil && owner.Kind == "DaemonSet" || ofEveryNamespace[r.Name+"/"+o.Name] {
					continue
				}
				out[strings.TrimPrefix(r.Name+"."+group.Group+" "+o.Namespace+"/"+o.Name, " ")] = true
			}
		}
	}
	in.l.Emulator.Do(func(w *world.World, _ time.Time) {
		region, account := w.Region(in.l.Account, in.l.Region), w.Account(in.l.Account)
		for _, i := range region.Instances.All() {
			if i.Alive() {
				out["instance "+i.ID] = true
			}
		}
		for _, template := range region.LaunchTemplates.All() {
			out["launch template "+template.Name] = true
		}
		for _, profile := range account.Profiles("/") {
			out["instance profile "+profile.Name] = true
		}
	})
	return out
}

// ofEveryNamespace is what Kubernetes makes in each namespace, by resource and name.
var ofEveryNamespace = map[string]bool{"serviceaccounts/default": true, "configmaps/kube-root-ca.crt": true}

// nothingMoreThan waits until there is nothing that there was not before.
func (in *installation) nothingMoreThan(before map[string]bool) {
	in.t.Helper()
	within(in.t, in.l, 30*time.Second, "everything to be as it was before the chart", func(context.Context) (bool, error) {
		var more []string
		for thing := range in.inventory() {
			if !before[thing] {
				more = append(more, thing)
			}
		}
		if len(more) > 0 {
			slices.Sort(more)
			return false, fmt.Errorf("there is still: %s", strings.Join(more, ", "))
		}
		return true, nil
	})
}
