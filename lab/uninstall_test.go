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

const uninstallGuide = "../docs/guides/uninstall.md"

// followUninstallGuide carries out the commands of the guide's first section, one after the other, with the chart's
// namespace instead of the guide's.
func (in *installation) followUninstallGuide() {
	in.t.Helper()
	text, err := os.ReadFile(uninstallGuide)
	if err != nil {
		in.t.Fatal(err)
	}
	page, _, _ := strings.Cut(string(text), "\n## ") // the other sections are for other cases
	commands, isCode := 0, false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			isCode = line == "```sh"
			continue
		}
		if isCode {
			in.runGuideCommand(strings.Fields(line))
			commands++
		}
	}
	if commands < 8 {
		in.t.Errorf("%s has only %d commands, want at least 8", uninstallGuide, commands)
	}
}

func (in *installation) runGuideCommand(words []string) {
	in.t.Helper()
	switch {
	case len(words) > 2 && words[0] == "kubectl":
		in.kubectl(slices.DeleteFunc(words[1:],
			func(w string) bool { return w == "--namespace" || w == "kube-system" || w == "--ignore-not-found" }))
	case len(words) > 2 && words[0] == "helm":
		in.stop() // the lab's kubelet does not stop the controllers when helm deletes their pods
		// words[1:3] are uninstall and the release. The third index makes append copy them.
		in.run(append(words[1:3:3], "-n", chartNamespace, "--wait", "--timeout", "60s")...)
	case strings.HasPrefix(words[0], "CLUSTER_UID="), words[0] == "aws":
		// awaitNothingNew reads everything in AWS, so these commands, which only list AWS resources, are skipped.
	default:
		in.t.Fatalf("%s has the command %q, which this test cannot carry out", uninstallGuide, words)
	}
}

// kubectl carries out a kubectl command that deletes, waits or lists. A list must be empty in the end.
func (in *installation) kubectl(words []string) {
	in.t.Helper()
	rest := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool { return strings.HasPrefix(w, "--") })
	isAll := slices.Contains(words, "--all")
	switch {
	case words[0] == "delete" && isAll:
		in.deleteAll(rest[0])
		in.awaitNone(rest[0]) // kubectl delete waits until the objects are removed
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
		in.awaitNone(rest[0])
	case words[0] == "get" && len(rest) == 1:
		for kind := range strings.SplitSeq(rest[0], ",") {
			in.awaitNone(kind)
		}
	default:
		in.t.Fatalf("%s has the command kubectl %q, which this test cannot carry out", uninstallGuide, words)
	}
}

// resourceOf returns the client of a resource by a name that kubectl accepts. For namespaced resources, it is the
// client of the chart's namespace.
func (in *installation) resourceOf(name string) metadata.ResourceInterface {
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
		return objects.Resource(mapping.Resource).Namespace(chartNamespace)
	}
	return objects.Resource(mapping.Resource)
}

func (in *installation) deleteAll(kind string) {
	in.t.Helper()
	if err := in.resourceOf(kind).DeleteCollection(in.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		in.t.Fatal(err)
	}
}

func (in *installation) delete(kind, name string) {
	in.t.Helper()
	if err := in.resourceOf(kind).Delete(in.t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		in.t.Fatal(err)
	}
}

func (in *installation) awaitNone(kind string) {
	in.t.Helper()
	objects := in.resourceOf(kind)
	within(in.t, in.l, time.Minute, "all "+kind+" to be removed", func(ctx context.Context) (bool, error) {
		list, err := objects.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
}

// awaitCompleteNodes waits until every DaemonSet has a ready pod on each of the given number of nodes. Then everything
// that Kubernetes creates for a node exists.
func (in *installation) awaitCompleteNodes(nodes int) {
	in.t.Helper()
	within(in.t, in.l, 30*time.Second, "every DaemonSet to have its pods", func(ctx context.Context) (bool, error) {
		sets, err := in.l.Kube.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(sets.Items, func(d appsv1.DaemonSet) bool { return int(d.Status.NumberReady) != nodes }), nil
	})
}

// inventory lists everything in the cluster and in AWS by name, with three exceptions. Events expire. Kubernetes
// deletes DaemonSet pods within a minute after their node. Objects that Kubernetes creates in every namespace count as
// part of the namespace: when several watches are late, Kubernetes creates them again in a namespace that has just been
// deleted (the race of kubernetes/kubernetes#36891).
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
				continue // the definition of the resource is being deleted
			}
			if err != nil {
				in.t.Fatal(err)
			}
			for _, o := range found.Items {
				if owner := metav1.GetControllerOf(&o); owner != nil && owner.Kind == "DaemonSet" || inEveryNamespace[r.Name+"/"+o.Name] {
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

// inEveryNamespace has the objects that Kubernetes creates in each namespace, by resource and name.
var inEveryNamespace = map[string]bool{"serviceaccounts/default": true, "configmaps/kube-root-ca.crt": true}

// awaitNothingNew waits until everything that is not in before is removed.
func (in *installation) awaitNothingNew(before map[string]bool) {
	in.t.Helper()
	within(in.t, in.l, 30*time.Second, "everything to be removed that did not exist before the chart", func(context.Context) (bool, error) {
		var added []string
		for thing := range in.inventory() {
			if !before[thing] {
				added = append(added, thing)
			}
		}
		if len(added) > 0 {
			slices.Sort(added)
			return false, fmt.Errorf("still there: %s", strings.Join(added, ", "))
		}
		return true, nil
	})
}
