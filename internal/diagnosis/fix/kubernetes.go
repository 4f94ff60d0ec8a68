package fix

import (
	"slices"
	"strings"
)

// Kubernetes is an action on Kubernetes objects.
type Kubernetes struct {
	Verb            string   // "patch", "delete", "edit", "get", …
	Group, Resource string   // "apps", "deployment"
	Namespace       string   // empty for cluster-scoped objects
	Names           []string // empty: only the words of the command select the objects
	PatchType       string   // "merge" or "json"
	Patch           string   // JSON; empty if joiner correct prints the patch
	Correct         []string // arguments with which joiner prints the patch; empty: Patch contains the patch
	Claims          []Claim  // NodeClaims to be deleted, with their preconditions
}

func (k Kubernetes) clone() Kubernetes {
	k.Names, k.Correct, k.Claims = slices.Clone(k.Names), slices.Clone(k.Correct), slices.Clone(k.Claims)
	return k
}

// Claim is a NodeClaim to be deleted, with its preconditions.
type Claim struct {
	Name     string // of the NodeClaim
	Instance string // instance ID that status.providerID must have; empty: any
	Joined   bool   // the NodeClaim may have a Node; false: it is deleted only while it has none
}

// Object is a Kubernetes object of a kind that fixes may change.
type Object struct {
	group, resource string
	namespace, name Value
}

func clusterWide(group, resource, name string) Object {
	return Object{group: group, resource: resource, name: Name(name)}
}

func namespaced(group, resource, namespace, name string) Object {
	return Object{group: group, resource: resource, namespace: Namespace(namespace), name: Name(name)}
}

// NodeClass is an EC2NodeClass.
func NodeClass(name string) Object { return clusterWide("karpenter.k8s.aws", "ec2nodeclass", name) }

// NodePool is a NodePool.
func NodePool(name string) Object { return clusterWide("karpenter.sh", "nodepool", name) }

// NodeClaim is a NodeClaim.
func NodeClaim(name string) Object { return clusterWide("karpenter.sh", "nodeclaim", name) }

// Node is a Node.
func Node(name string) Object { return clusterWide("", "node", name) }

// Pod is a Pod.
func Pod(namespace, name string) Object { return namespaced("", "pod", namespace, name) }

// Deployment is a Deployment.
func Deployment(namespace, name string) Object {
	return namespaced("apps", "deployment", namespace, name)
}

// DaemonSet is a DaemonSet.
func DaemonSet(namespace, name string) Object {
	return namespaced("apps", "daemonset", namespace, name)
}

// ServiceAccount is a ServiceAccount.
func ServiceAccount(namespace, name string) Object {
	return namespaced("", "serviceaccount", namespace, name)
}

// AuthMap is the ConfigMap aws-auth.
func AuthMap() Object { return namespaced("", "configmap", "kube-system", "aws-auth") }

// Workload returns the owner of a pod, given by kind and name: "Deployment/web". ok is false for kinds without a pod
// template that a patch can change.
func Workload(namespace, owner string) (o Object, ok bool) {
	kind, name, _ := strings.Cut(owner, "/")
	switch kind {
	case "Deployment", "StatefulSet", "DaemonSet":
		return namespaced("apps", strings.ToLower(kind), namespace, name), true
	}
	return Object{}, false
}

func (o Object) invalid() []Value {
	var out []Value
	if o.namespace.kind != "" {
		out = append(out, o.namespace.invalid()...)
	}
	return append(out, o.name.invalid()...)
}

// words returns the words of a kubectl command in the object's namespace. rest are the words after the namespace.
func (o Object) words(rest ...string) []Word {
	out := toWords("kubectl")
	if o.namespace.text != "" {
		out = append(out, toWords("-n", o.namespace.text)...)
	}
	return append(out, toWords(rest...)...)
}

func toWords(texts ...string) []Word {
	out := make([]Word, len(texts))
	for i, t := range texts {
		out[i] = Word{Text: t}
	}
	return out
}

// step returns a step on the object, without the words of its command.
func (o Object) step(kind Kind, verb string) Step {
	return Step{
		kind:    kind,
		invalid: o.invalid(),
		kube:    &Kubernetes{Verb: verb, Group: o.group, Resource: o.resource, Namespace: o.namespace.text, Names: []string{o.name.text}},
	}
}

// Merge is the step that applies a merge patch to an object.
func Merge(o Object, patch Tree) Step { return o.patch("merge", patch) }

// JSONPatch is the step that applies a JSON patch to an object.
func JSONPatch(o Object, operations ...Tree) Step { return o.patch("json", List(operations)) }

func (o Object) patch(patchType string, patch Tree) Step {
	s := o.step(Change, "patch")
	s.invalid = append(s.invalid, patch.invalid()...)
	s.hasPlaceholder = patch.hasPlaceholder()
	s.kube.PatchType, s.kube.Patch = patchType, marshal(patch)
	s.words = append(o.words("patch", o.resource, o.name.text, "--type", patchType, "-p"), Word{Text: s.kube.Patch})
	return s
}

// Correct is the step that applies the merge patch that joiner correct prints for an EC2NodeClass. The step does not
// contain the patch, because user data may hold secrets. The options are constants and identifiers.
func Correct(class string, options ...Value) Step {
	o := NodeClass(class)
	s := o.step(Change, "patch")
	s.kube.PatchType = "merge"
	command := []string{"joiner", "correct", class}
	for _, v := range options {
		s.invalid = append(s.invalid, v.invalid()...)
		command = append(command, v.text)
	}
	s.kube.Correct = command[1:]
	s.words = append(o.words("patch", o.resource, o.name.text, "--type", "merge", "-p"), Word{From: toWords(command...)})
	return s
}

// Edit is the step in which the user edits an object.
func Edit(o Object) Step {
	s := o.step(ByHand, "edit")
	s.words = o.words("edit", o.resource, o.name.text)
	return s
}

// EditAll is the step in which the user edits objects of a kind whose names are not known.
func EditAll(resource constant) Step {
	return Step{kind: ByHand, words: toWords("kubectl", "edit", string(resource)), kube: &Kubernetes{Verb: "edit", Resource: string(resource)}}
}

// Apply is the step in which the user creates objects from a file or URL. from is a constant of the program.
func Apply(from constant) Step {
	return Step{kind: ByHand, words: toWords("kubectl", "apply", "-f", string(from)), kube: &Kubernetes{Verb: "apply"}}
}

// DeleteClaims is the step that deletes NodeClaims, so that their instances are terminated and replaced. The
// preconditions of each NodeClaim are checked when the step is carried out.
func DeleteClaims(claims ...Claim) Step {
	s := Step{
		kind:  Change,
		words: toWords("kubectl", "delete", "nodeclaim", "--wait=false"),
		kube:  &Kubernetes{Verb: "delete", Group: "karpenter.sh", Resource: "nodeclaim"},
	}
	for _, c := range claims {
		name := Name(c.Name)
		s.invalid = append(s.invalid, name.invalid()...)
		if c.Instance != "" {
			s.invalid = append(s.invalid, Instance(c.Instance).invalid()...)
		}
		s.words = append(s.words, Word{Text: c.Name})
		s.kube.Names, s.kube.Claims = append(s.kube.Names, c.Name), append(s.kube.Claims, c)
	}
	return s
}

// Delete is the step that deletes objects, at least one, all of the same kind and namespace.
func Delete(objects ...Object) Step {
	s := objects[0].step(Change, "delete")
	s.words = objects[0].words("delete", objects[0].resource)
	s.kube.Names, s.invalid = nil, nil
	for _, o := range objects {
		s.invalid = append(s.invalid, o.invalid()...)
		s.kube.Names = append(s.kube.Names, o.name.text)
		s.words = append(s.words, Word{Text: o.name.text})
	}
	return s
}

// DeletePending is the step that deletes the pending pods of a namespace.
func DeletePending(namespace string) Step {
	n := Namespace(namespace)
	return Step{kind: Change, invalid: n.invalid(), kube: &Kubernetes{Verb: "delete", Resource: "pod", Namespace: namespace},
		words: toWords("kubectl", "-n", namespace, "delete", "pods", "--field-selector", "status.phase=Pending")}
}

// Annotate is the step that sets an annotation.
func Annotate(o Object, key constant, value Value) Step {
	s := o.step(Change, "annotate")
	s.invalid, s.hasPlaceholder = append(s.invalid, value.invalid()...), value.isPlaceholder
	s.words = o.words("annotate", o.resource, o.name.text, string(key)+"="+value.text)
	return s
}

// SetEnv is the step that sets an environment variable in all containers of a Deployment.
func SetEnv(o Object, name constant, value Value) Step {
	s := o.step(Change, "set env")
	s.invalid, s.hasPlaceholder = append(s.invalid, value.invalid()...), value.isPlaceholder
	s.words = o.words("set", "env", o.resource+"/"+o.name.text, string(name)+"="+value.text)
	return s
}

// UnsetEnv is the step that removes an environment variable from all containers of a Deployment.
func UnsetEnv(o Object, name constant) Step {
	s := o.step(Change, "set env")
	s.words = o.words("set", "env", o.resource+"/"+o.name.text, string(name)+"-")
	return s
}

// Scale is the step that sets the replicas of a Deployment.
func Scale(o Object, replicas int) Step {
	s := o.step(Change, "scale")
	s.words = o.words("scale", o.resource, o.name.text, "--replicas="+Number(replicas).text)
	return s
}

// Untaint is the step that removes the taint with this key and effect from a node.
func Untaint(node string, key, effect Value) Step {
	o := Node(node)
	s := o.step(Change, "taint")
	s.invalid = append(s.invalid, append(key.invalid(), effect.invalid()...)...)
	s.words = o.words("taint", "node", node, key.text+":"+effect.text+"-")
	return s
}

// Show is the step that reads one object with a verb of kubectl, for example describe. The options are constants.
func Show(verb constant, o Object, options ...constant) Step {
	s := o.step(ReadOnly, string(verb))
	s.words = o.words(string(verb), o.resource, o.name.text)
	for _, option := range options {
		s.words = append(s.words, Word{Text: string(option)})
	}
	return s
}

// Save is the step that writes an object to a file before another step changes the object.
func Save(o Object, file constant) Step {
	s := Show("get", o, "-o", "yaml")
	s.kind, s.file = ByHand, string(file)
	return s
}

// Logs is the step that reads the logs of a pod.
func Logs(o Object) Step {
	s := o.step(ReadOnly, "logs")
	s.words = o.words("logs", o.name.text)
	return s
}

// Kubectl is the step with a read-only kubectl command. The words are constants and identifiers. The verb of the action
// is always get, even for logs.
func Kubectl(words ...Value) Step {
	s := Step{kind: ReadOnly, kube: &Kubernetes{Verb: "get"}, words: toWords("kubectl")}
	for _, v := range words {
		s.invalid = append(s.invalid, v.invalid()...)
		s.words = append(s.words, Word{Text: v.text})
	}
	return s
}

// Run is the step with a command that only the user runs, never joiner. The words are constants and identifiers.
func Run(words ...Value) Step {
	s := Step{kind: ByHand}
	for _, v := range words {
		s.invalid = append(s.invalid, v.invalid()...)
		s.hasPlaceholder = s.hasPlaceholder || v.isPlaceholder
		s.words = append(s.words, Word{Text: v.text})
	}
	return s
}

// SplitWords splits a constant of the program at spaces and returns the words.
func SplitWords(text constant) []Value {
	var out []Value
	for w := range strings.FieldsSeq(string(text)) {
		out = append(out, Value{text: w, valid: true})
	}
	return out
}
