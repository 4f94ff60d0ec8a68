// Package userdata parses user data and reports its problems, as the instance would run it.
//
// In: the AMI family, what is known of the image and of the cluster, and user data in any of its forms.
// Out: how the kubelet is started by it, where each argument came from, and what is wrong, as typed problems.
// Never: anything run, read or asked; nor a word of the user's in a problem, but names that are no secrets.
package userdata

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Input is what is to be read, and what is known of who reads it. Only Family
// must be given; what is not known is not judged.
type Input struct {
	Family string // of the node class, one of catalog's AMI families
	Image  string // name of the image, which may reveal its actual family
	Arch   string // of the image: "amd64" or "arm64"

	Cluster  string // name of the cluster that the node is to join
	Endpoint string // of its API server, "https://…"
	CA       string // its certificate authority, as base64 of PEM
	Version  string // of its Kubernetes, "1.33"

	// Own is the user's own user data, spec.userData; Data is what the instance
	// gets, into which it was merged. Without Data, Own is all there is.
	Own  string
	Data []byte
}

// Reading is what an instance makes of its user data.
type Reading struct {
	Form    string  `json:"form"` // "a MIME message", "a shell script", …; FormNothing if it is empty
	Kubelet Kubelet `json:"kubelet"`

	// What the kubelet will make of its arguments and its configuration, as far as the user data sets it.
	Cluster    Value   `json:"cluster,omitzero"` // name
	Endpoint   Value   `json:"endpoint,omitzero"`
	NodeIP     Value   `json:"nodeIP,omitzero"`
	MaxPods    Value   `json:"maxPods,omitzero"`
	ClusterDNS Value   `json:"clusterDNS,omitzero"` // several with commas between
	Taints     []Taint `json:"taints,omitempty"`
	Labels     []Label `json:"labels,omitempty"`

	// Problems are what is wrong, the gravest first.
	Problems []Problem `json:"problems,omitempty"`
}

// Kubelet is how the kubelet is started.
type Kubelet struct {
	// Flags are the arguments that the user data gives it, in their order.
	Flags []string `json:"flags"`
	// Config are fields of its KubeletConfiguration. A flag of the same meaning wins.
	Config map[string]any `json:"config"`
}

// Value is one setting. It is vague when the instance works it out, for instance by running a command.
type Value struct {
	Text  string `json:"text"`
	Vague bool   `json:"vague,omitempty"`
	At    Spot   `json:"at"`
}

// IsSet reports whether the user data sets it.
func (v Value) IsSet() bool { return v.Text != "" || v.Vague }

// Taint is a taint that the node registers with.
type Taint struct {
	requirements.Taint
	At Spot
}

// MarshalText writes the taint as the kubelet's flag has it, and its place.
func (t Taint) MarshalText() ([]byte, error) { return []byte(t.Taint.String() + at(t.At)), nil }

// Label is a label that the node registers with.
type Label struct {
	Key, Value string
	At         Spot
}

// String writes the label as the kubelet's flag has it.
func (l Label) String() string { return l.Key + "=" + l.Value }

// MarshalText writes the label as the kubelet's flag has it, and its place.
func (l Label) MarshalText() ([]byte, error) { return []byte(l.String() + at(l.At)), nil }

// Spot is a place in user data.
type Spot struct {
	Part   int  `json:"part,omitempty"` // of a MIME message, from 1; 0: it has no parts
	Line   int  `json:"line,omitempty"` // of the part, from 1; 0: all of it
	Column int  `json:"column,omitempty"`
	Ours   bool `json:"ours,omitempty"` // the user wrote none of it: it is what Joiner adds
}

// String is for instance "part 2, line 3, column 5".
func (s Spot) String() string {
	if s.Ours {
		return "written by Joiner"
	}
	var words []string
	for _, n := range []struct {
		name string
		at   int
	}{{"part", s.Part}, {"line", s.Line}, {"column", s.Column}} {
		if n.at > 0 {
			words = append(words, fmt.Sprintf("%s %d", n.name, n.at))
		}
	}
	return strings.Join(words, ", ")
}

func at(s Spot) string {
	if s == (Spot{}) {
		return ""
	}
	return " (" + s.String() + ")"
}

// The forms of user data.
const (
	FormNothing      = "nothing"
	FormMIME         = "a MIME message"
	FormScript       = "a shell script"
	FormNodeConfig   = "a NodeConfig"
	FormBottlerocket = "settings of Bottlerocket"
	FormPowerShell   = "PowerShell"
	FormCloudConfig  = "a cloud-config"
	FormUnknown      = "unknown"
)

// Read reads user data. It is total: whatever the data, there is a Reading.
func Read(in Input) Reading {
	r := &reader{in: in}
	r.out.Form, r.out.Kubelet.Config = FormUnknown, map[string]any{}
	r.files = map[string]text{}
	if r.judgeImage() {
		r.read()
		r.judge()
		r.settle()
		r.place()
	}
	r.out.Problems = ordered(r.out.Problems)
	return r.out
}

// Foreign reads the user's own user data by itself, where nothing could be merged
// with it, and returns what is wrong with its form: a form of another family, a
// message without parts, text that is no TOML. The second result says whether
// there is anything.
func Foreign(in Input) (Problem, bool) {
	in.Data = nil
	if in.Family != familyCustom {
		in.Image = "" // whether it is the right one is another question
	}
	for _, p := range Read(in).Problems {
		switch p.Kind {
		case OtherFamily, BadMIME, SettingInvalid, NotUnpackable:
			return p, true
		}
	}
	return Problem{}, false
}

// reader is one reading on its way.
type reader struct {
	in     Input
	out    Reading
	starts []start // of the kubelet, in the order in which they would happen
	files  map[string]text
	// written is what files are made of, in the order in which it is written.
	written []written
	opaque  []string  // why it may come otherwise: what only the instance can know
	ours    int       // the part that Joiner wrote; 0: none, or all of it is rewritten
	flag    *argument // the one that says with which taints the node registers; nil: none does
}

// text is a text somewhere in the user data.
type text struct {
	body  string
	at    Spot // of its first character
	vague bool
}

// start is one way in which the user data starts the kubelet.
type start struct {
	by                        string // bySh, byNodeadm, …
	at                        Spot
	sure                      bool // it happens in any case
	cluster, endpoint, ca, ip Value
	flags                     []flag
	config                    map[string]any
	spots                     map[string]Spot             // of fields of config, by name
	within                    map[string]Spot             // of all fields of a NodeConfig, by path
	labels                    map[string]Spot             // of labels, by key, where each has a place of its own
	environment               map[string]map[string]Value // by service and name, of a NodeConfig
	hidden                    bool                        // some of its flags are not known
}

// What starts kubelets.
const (
	bySh      = "/etc/eks/bootstrap.sh"
	byNodeadm = "nodeadm"
	bySetting = "Bottlerocket"
	byPS      = "Start-EKSBootstrap.ps1"
)

// flag is one argument of the kubelet.
type flag struct {
	text string
	at   Spot
}

// problem notes what is wrong.
func (r *reader) problem(kind Kind, certainty Certainty, harm Harm, spot Spot, format string, args ...any) *Problem {
	r.out.Problems = append(r.out.Problems, Problem{Kind: kind, Certainty: certainty, Harm: harm, At: spot, Cause: fmt.Sprintf(format, args...)})
	return &r.out.Problems[len(r.out.Problems)-1]
}
